import type { ErrorCode } from '../../server/errors.ts'

/** What a source can be refused for in here. The names are those of the public error table. */
export type RefusalCode = Extract<
  ErrorCode,
  'source_encoding_invalid' | 'source_too_large' | 'source_too_complex' | 'source_unsupported_type' | 'source_empty'
>

/** Unwinds to the end of the thread's function, which hands it over as data: a class does not survive the way out. */
export class TextRefusalError extends Error {
  override name = 'TextRefusalError'
  readonly code: RefusalCode

  constructor(code: RefusalCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}
