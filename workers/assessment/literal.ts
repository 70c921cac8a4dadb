// The literal assessment: quotes passages and gives no verdict. The search runs on a thread.
import { openDeadline } from '../../server/deadline.ts'
import { AppError } from '../../server/errors.ts'
import { ThreadError, type Threads } from '../../server/threads/pool.ts'
import type { Assessor } from './assessor.ts'
import type { Verdict } from './evidence.ts'
import type { LiteralTask } from './literal-thread.ts'
import { LITERAL_PROCEDURE } from './procedure.ts'

/** The assessor without a model: it quotes passages with the words of the claim, and gives no verdict. */
export function literalAssessor(threads: Threads): Assessor {
  return {
    procedure: LITERAL_PROCEDURE,
    isRepeatable: true,
    async assess({ claim, observation: { source }, signal }) {
      const digests = { sourceSha256: source.content_sha256, textSha256: source.text_sha256 }
      const verdict = await runThread(threads, { claim, text: source.normalized_text, digests }, signal)
      return { ...verdict, procedure: LITERAL_PROCEDURE }
    },
  }
}

async function runThread(threads: Threads, task: LiteralTask, signal?: AbortSignal): Promise<Verdict> {
  using deadline = openDeadline(timeLimit)
  const limit = deadline.signal
  const ended = signal ? AbortSignal.any([signal, limit]) : limit
  try {
    return await threads.run<Verdict>(literalThread, 'assessLiterally', task, { signal: ended })
  } catch (error) {
    if (isExhausted(error, limit)) {
      throw new AppError('assessment_failed', 'The assessment takes more time or memory than it may.', { cause: error })
    }
    throw error
  }
}

const isExhausted = (error: unknown, limit: AbortSignal) =>
  error instanceof ThreadError && (error.code === 'out_of_memory' || (error.code === 'timed_out' && limit.aborted))

const literalThread = new URL('./literal-thread.ts', import.meta.url)

/** Milliseconds, the wait for a thread included. The longest text takes a fraction of one second. */
const timeLimit = 20_000
