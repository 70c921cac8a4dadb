// The literal assessment: quotes passages and gives no verdict. The search runs on a thread.
import { AppError } from '../../../server/errors.ts'
import type { Assessment } from '../../../server/interface/assessment.ts'
import type { Observation } from '../../../server/interface/observation.ts'
import { isExhausted, PAGE_LIMITS, type PageOptions, type Threads } from '../../../server/threads/pool.ts'
import type { Assessor } from '../assessor.ts'
import { assessEach, isFailure } from '../claims.ts'
import type { Verdict } from '../evidence.ts'
import { LITERAL_PROCEDURE } from '../procedure.ts'
import type { LiteralTask, LiteralTasks } from './search-thread.ts'

/** The assessor without a model: it quotes passages with the words of the claim, and gives no verdict. */
export function literalAssessor(threads: Threads): Assessor {
  const named = (verdict: Verdict): Assessment => ({ ...verdict, procedure: LITERAL_PROCEDURE })
  const assess: Assessor['assess'] = async ({ claim, observation, ...options }) =>
    named(await runThread<Verdict>(threads, 'assessLiterally', { claim, ...pageOf(observation) }, options))
  return {
    procedure: LITERAL_PROCEDURE,
    isRepeatable: true,
    assess,
    async assessAll({ claims, observation, ...options }) {
      const task: LiteralTasks = { claims, ...pageOf(observation) }
      try {
        return (await runThread<Verdict[]>(threads, 'assessAllLiterally', task, options)).map(named)
      } catch (error) {
        // Together they took more than one task may; one of them may be the cause.
        if (isFailure(error)) return assessEach({ claims, observation, ...options }, assess)
        throw error
      }
    },
  }
}

function pageOf({ source }: Observation) {
  const digests = { sourceSha256: source.content_sha256, textSha256: source.text_sha256 }
  return { text: source.normalized_text, digests }
}

async function runThread<T>(
  threads: Threads,
  name: string,
  task: LiteralTask | LiteralTasks,
  { signal, lane }: PageOptions,
): Promise<T> {
  try {
    return await threads.run<T>(literalThread, name, task, { ...PAGE_LIMITS, signal, lane })
  } catch (error) {
    if (isExhausted(error)) {
      throw new AppError('assessment_failed', 'The assessment takes more time or memory than it may.', { cause: error })
    }
    throw error
  }
}

const literalThread = new URL('./search-thread.ts', import.meta.url)
