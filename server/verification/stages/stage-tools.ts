// What the jobs that read, judge and sell pages use of the worker process that runs them.
import type { Assessor } from '../../../workers/assessment/assessor.ts'
import type { ObservationCache } from '../../../workers/retrieval/cache.ts'
import type { Observing } from '../../../workers/retrieval/observation.ts'
import type { Origins } from '../../../workers/retrieval/origins.ts'
import type { Core } from '../../context.ts'
import type { Batcher } from '../../db/batch.ts'
import type { Captures } from '../../evidence/store.ts'
import type { Claims } from '../request.ts'
import type { Completions } from './completion.ts'
import type { SlowWork } from './slow-work.ts'
import type { Steps } from './steps.ts'

export interface StageTools
  extends Pick<Core, 'db' | 'log' | 'metrics' | 'config' | 'secrets' | 'facilitator'>,
    ChangeEvents {
  steps: Steps
}

export interface ChangeEvents {
  /** Announces the id of a request that was completed or failed to the calls that wait for it. */
  changeEvents: Batcher<string, void>
}

/** One run of a job, as the queue describes it. */
export interface JobAttempt {
  /** Aborts when the process has to stop; the request or check is then handed back and does not fail. */
  signal: AbortSignal
  /** Attempts that may follow this one; 0 for the last. */
  attemptsLeft: number
}

/** What a job that reads a page uses. */
export interface ReadingTools extends Pick<Core, 'db' | 'log' | 'config'>, ChangeEvents, Observing {
  /** Makes the token of an attempt, from which other workers see who made it. */
  id: { make(): string }
  cache: ObservationCache
  origins: Origins
  slowWork: SlowWork
}

/** What the job of a verification uses from its first stage to its last. */
export interface VerificationTools extends StageTools, ReadingTools, Pick<Core, 'chain' | 'keys' | 'now' | 'tracing'> {
  assessor: Assessor
  /** Keeps what a page was made of; undefined where nothing is kept. */
  captures: Captures | undefined
  claims: Claims
  completions: Completions
  /** Seconds that a settlement usually takes; its result is that much older when it is served. */
  settleSeconds: number
  /** The `methodology_version` of this worker's results. */
  methodology: string
}
