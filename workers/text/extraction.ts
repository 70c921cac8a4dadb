// Extracts the text of a page on a thread, within limits of time and memory.
import { openDeadline } from '../../server/deadline.ts'
import { AppError } from '../../server/errors.ts'
import { ThreadError, type Threads } from '../../server/threads/pool.ts'
import type { Extraction, Outcome, PageBytes } from './text-thread.ts'

export type { PageBytes } from './text-thread.ts'

/**
 * The whole visible text of a page. Refusals are AppErrors: source_unsupported_type, source_encoding_invalid,
 * source_too_large, source_too_complex (also out of memory or time) and source_empty. Throws a ThreadError when the
 * signal aborts.
 */
export async function extractText(
  threads: Threads,
  { body, contentEncoding, contentType }: PageBytes,
  { signal }: { signal?: AbortSignal } = {},
): Promise<Extraction> {
  using deadline = openDeadline(timeLimit)
  const limit = deadline.signal
  // A view moves with its whole buffer, which may hold other data that is still in use.
  const whole = body.byteLength === body.buffer.byteLength ? body : body.slice()
  try {
    const outcome = await threads.run<Outcome>(
      textThread,
      'extract',
      { body: whole, contentEncoding, contentType },
      { transfer: [whole.buffer], signal: signal ? AbortSignal.any([signal, limit]) : limit },
    )
    if (!outcome.ok) throw new AppError(outcome.code, outcome.message)
    return outcome.extraction
  } catch (error) {
    if (isExhausted(error, limit)) {
      throw new AppError('source_too_complex', 'The markup takes more time or memory than a page may.', {
        cause: error,
      })
    }
    throw error
  }
}

const isExhausted = (error: unknown, limit: AbortSignal) =>
  error instanceof ThreadError && (error.code === 'out_of_memory' || (error.code === 'timed_out' && limit.aborted))

const textThread = new URL('./text-thread.ts', import.meta.url)

/**
 * Milliseconds, the wait for a thread included. The limits on size, depth and nodes end a page within about one second.
 */
const timeLimit = 20_000
