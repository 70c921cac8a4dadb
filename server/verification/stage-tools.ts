// What the stages of a verification use of the worker process that runs them.
import type { Origins } from '../../workers/retrieval/origins.ts'
import type { Core } from '../context.ts'
import type { Batcher } from '../db/batch.ts'
import type { Steps } from './steps.ts'

export interface StageTools
  extends Pick<Core, 'db' | 'log' | 'metrics' | 'config' | 'secrets' | 'facilitator'>,
    ChangeEvents {
  steps: Steps
  origins: Pick<Origins, 'join'>
}

export interface ChangeEvents {
  /** Announces the id of a request that was completed or failed to the calls that wait for it. */
  changeEvents: Batcher<string, void>
}
