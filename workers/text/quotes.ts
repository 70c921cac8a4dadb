// Finds quotes in the text of a page on a thread, within a limit of time. Quote checks and citation watches use it.
import { openDeadline } from '../../server/deadline.ts'
import { AppError } from '../../server/errors.ts'
import { ThreadError, type Threads } from '../../server/threads/pool.ts'
import type { FoundQuote, QuoteTask } from './quote-thread.ts'

export type { FoundQuote, QuoteMatch, WantedQuote } from './quote-thread.ts'

/**
 * Says of each quote, in the order given, how and where the text has it. Throws AppError `execution_failed` where time or
 * memory does not suffice, and a ThreadError when the signal aborts.
 */
export async function findQuotes(threads: Threads, task: QuoteTask, signal?: AbortSignal): Promise<FoundQuote[]> {
  using deadline = openDeadline(timeLimit)
  const limit = deadline.signal
  const ended = signal ? AbortSignal.any([signal, limit]) : limit
  try {
    return await threads.run<FoundQuote[]>(quoteThread, 'findQuotes', task, { signal: ended })
  } catch (error) {
    if (isExhausted(error, limit))
      throw new AppError('execution_failed', 'The search takes more time or memory than it may.', { cause: error })
    throw error
  }
}

const isExhausted = (error: unknown, limit: AbortSignal) =>
  error instanceof ThreadError && (error.code === 'out_of_memory' || (error.code === 'timed_out' && limit.aborted))

const quoteThread = new URL('./quote-thread.ts', import.meta.url)

/** Milliseconds, the wait for a thread included. The most and longest quotes in the longest text take about one second. */
const timeLimit = 20_000
