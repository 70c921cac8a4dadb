// The reasons for which a page is refused while its text is extracted.
import type { ErrorCode } from '../../../server/errors.ts'

/** The codes of the public error table with which text extraction refuses a page. */
export type RefusalCode = Extract<
  ErrorCode,
  'source_encoding_invalid' | 'source_too_large' | 'source_too_complex' | 'source_unsupported_type' | 'source_empty'
>

/** Ends the extraction. The thread's function returns it as data, because a thread loses the class of an error. */
export class TextRefusalError extends Error {
  override name = 'TextRefusalError'
  readonly code: RefusalCode

  constructor(code: RefusalCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}
