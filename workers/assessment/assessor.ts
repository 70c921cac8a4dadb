// The interface of an assessor, which finds out what a text says about a claim. Implementations: literal.ts, semantic.ts.
import type { Assessment } from '../../server/interface/assessment.ts'
import type { Observation } from '../../server/interface/observation.ts'

export interface AssessmentTask {
  claim: string
  observation: Observation
  signal?: AbortSignal
  /** Milliseconds since the epoch after which the assessment is of no use. */
  until?: number
}

export interface Assessor {
  /** Names everything that may change the answer, in at most 100 characters; part of `methodology_version`. */
  readonly procedure: string
  /**
   * Whether the same task always gives the same answer, quickly and without cost. Observation and assessment are then
   * committed only with the intent to settle, and repeated after a crash before that.
   */
  readonly isRepeatable?: boolean
  /** Set while the assessor takes no work because its model does not answer. */
  readonly pausedUntil?: Date | null
  /**
   * Proves every evidence item against the text. Throws AppError `assessment_failed` if it reaches no verdict, and
   * AssessorBusyError if it may reach one later.
   */
  assess(task: AssessmentTask): Promise<Assessment>
}
