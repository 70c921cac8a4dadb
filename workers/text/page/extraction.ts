// Extracts the text of a page on a thread, within limits of time and memory.
import { AppError } from '../../../server/errors.ts'
import { isExhausted, PAGE_LIMITS, type PageOptions, type Threads } from '../../../server/threads/pool.ts'
import { LARGE_BYTES } from './length.ts'
import type { Extraction, Outcome, PageBytes } from './text-thread.ts'

export type { PageBytes } from './text-thread.ts'

/**
 * The whole visible text of a page. Refusals are AppErrors: source_unsupported_type, source_encoding_invalid,
 * source_too_large, source_too_complex (also out of memory or time) and source_empty. Throws a ThreadError when the
 * signal aborts or no thread becomes free.
 */
export async function extractText(
  threads: Threads,
  { body, contentEncoding, contentType }: PageBytes,
  options: PageOptions = {},
): Promise<Extraction> {
  // A view is cloned with its whole buffer, which may hold other data.
  const whole = body.byteLength === body.buffer.byteLength ? body : body.slice()
  const page = { body: whole, contentEncoding, contentType }
  const limits = { ...PAGE_LIMITS, ...options }
  try {
    const quick =
      whole.byteLength > LARGE_BYTES
        ? 'large'
        : await threads.run<Outcome | 'large'>(textThread, 'extractUnlessLarge', page, limits)
    // A large page goes to the threads of slow tasks at once. In a quick thread it would have to be ended for the pages behind it,
    // and they would wait for the start of a new thread.
    const outcome =
      quick === 'large' ? await threads.run<Outcome>(textThread, 'extract', page, { ...limits, isSlow: true }) : quick
    if (!outcome.ok) throw new AppError(outcome.code, outcome.message)
    return outcome.extraction
  } catch (error) {
    if (isExhausted(error)) {
      throw new AppError('source_too_complex', 'The markup takes more time or memory than a page may.', {
        cause: error,
      })
    }
    throw error
  }
}

const textThread = new URL('./text-thread.ts', import.meta.url)
