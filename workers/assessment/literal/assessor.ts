// The literal assessment: quotes passages and gives no verdict. The search runs on a thread.
import { PAGE_LIMITS, type Threads } from '../../../server/threads/pool.ts'
import { type Assessor, throwAsFailure } from '../assessor.ts'
import type { Verdict } from '../evidence.ts'
import { LITERAL_PROCEDURE } from '../procedure.ts'
import type { LiteralTask } from './search-thread.ts'

/** The assessor without a model: it quotes passages with the words of the claim, and gives no verdict. */
export function literalAssessor(threads: Threads): Assessor {
  return {
    procedure: LITERAL_PROCEDURE,
    isRepeatable: true,
    async assess({ claim, observation: { source }, signal, lane }) {
      const digests = { sourceSha256: source.content_sha256, textSha256: source.text_sha256 }
      const task: LiteralTask = { claim, text: source.normalized_text, digests }
      const searching = threads.run<Verdict>(THREAD, 'assessLiterally', task, { ...PAGE_LIMITS, signal, lane })
      return { ...(await searching.catch(throwAsFailure)), procedure: LITERAL_PROCEDURE }
    },
  }
}

const THREAD = new URL('./search-thread.ts', import.meta.url)
