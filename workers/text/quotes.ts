// Finds quotes in the text of a page on a thread, within a limit of time. Quote checks and citation watches use it.
import { AppError } from '../../server/errors.ts'
import { isExhausted, PAGE_LIMITS, type PageOptions, type Threads } from '../../server/threads/pool.ts'
import type { FoundQuote, QuoteTask } from './quote-thread.ts'

export type { FoundQuote, QuoteMatch, WantedQuote } from './quote-thread.ts'

/**
 * Says of each quote, in the order given, how and where the text has it. Throws AppError `execution_failed` where time or
 * memory does not suffice, and a ThreadError when the signal aborts or no thread becomes free.
 */
export async function findQuotes(threads: Threads, task: QuoteTask, options: PageOptions = {}): Promise<FoundQuote[]> {
  try {
    return await threads.run<FoundQuote[]>(quoteThread, 'findQuotes', task, { ...PAGE_LIMITS, ...options })
  } catch (error) {
    if (isExhausted(error))
      throw new AppError('execution_failed', 'The search takes more time or memory than it may.', { cause: error })
    throw error
  }
}

const quoteThread = new URL('./quote-thread.ts', import.meta.url)
