// What an assessor is: it says what a text says about a claim. Implementations: literal.ts, semantic.ts.
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
  /** Names everything that may change its answer, in at most 100 characters; part of `methodology_version`. */
  readonly procedure: string
  /** Set while it takes no work because what it needs does not answer. */
  readonly pausedUntil?: Date | null
  /**
   * Every evidence item is proved against the text. Throws AppError `assessment_failed` when it comes to no verdict, and
   * AssessorBusyError when it may come to one later.
   */
  assess(task: AssessmentTask): Promise<Assessment>
}
