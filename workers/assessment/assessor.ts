// The interface of an assessor, which finds out what a text says about a claim, and how several claims on one page are assessed: each
// by itself, so that no claim changes what is said of another. Implementations: local.ts, semantic/assessor.ts, literal/assessor.ts.
import { AppError } from '../../server/errors.ts'
import type { Assessment } from '../../server/interface/assessment.ts'
import type { Observation } from '../../server/interface/observation.ts'
import { isExhausted, type Lane } from '../../server/threads/pool.ts'
import { buildSemaphore } from '../../server/threads/semaphore.ts'

export interface AssessmentTask {
  claim: string
  observation: Observation
  signal?: AbortSignal
  /** Milliseconds since the epoch after which the assessment is of no use. */
  until?: number
  /** For whom, where threads and questions are shared. */
  lane?: Lane
}

/** Several claims on one page. */
export interface ClaimsTask extends Omit<AssessmentTask, 'claim'> {
  claims: readonly string[]
}

/** The assessment of each claim in order, or why that claim has none: AppError `assessment_failed`. */
export type Assessments = (Assessment | AppError)[]

export interface Assessor {
  /** Names everything that may change the answer, in at most 100 characters; part of `methodology_version`. */
  readonly procedure: string
  /**
   * Whether the same task always gives the same answer, quickly and without cost. Observation and assessment are then
   * committed only with the intent to settle, and repeated after a crash before that.
   */
  readonly isRepeatable?: boolean
  /** Set while the assessor takes no work, because its model does not answer or is being loaded. */
  readonly pausedUntil?: Date | null
  /** What is wrong with its model, in words for the operator and without a secret; also while a fallback takes the work. */
  readonly problem?: string | null
  /** Resolves when the assessor takes work for the first time; absent if it does from the start. */
  readonly ready?: Promise<void>
  /**
   * Proves every evidence item against the text. Throws AppError `assessment_failed` if it reaches no verdict, and
   * AssessorBusyError if it may reach one later.
   */
  assess(task: AssessmentTask): Promise<Assessment>
  /**
   * Assesses several claims, all by one procedure. Throws what concerns the page or the assessor. Absent where it does no
   * more than `assess` for each.
   */
  assessAll?(task: ClaimsTask): Promise<Assessments>
}

/** As `Assessor.assessAll`. */
export function assessClaims(assessor: Assessor, task: ClaimsTask): Promise<Assessments> {
  return assessor.assessAll?.(task) ?? assessEach(task, (one) => assessor.assess(one))
}

/** Assesses claim by claim. An error other than `assessment_failed` ends the assessment of all, and is thrown. */
export async function assessEach(
  { claims, signal, ...page }: ClaimsTask,
  assess: (task: AssessmentTask) => Promise<Assessment>,
): Promise<Assessments> {
  const giveUp = new AbortController()
  const until = signal ? AbortSignal.any([signal, giveUp.signal]) : giveUp.signal
  const places = buildSemaphore(AT_ONCE)
  const one = async (claim: string) => {
    try {
      return await places.pass(() => assess({ ...page, claim, signal: until }), until)
    } catch (error) {
      if (isFailure(error)) return error
      throw error
    }
  }
  try {
    return await Promise.all(claims.map(one))
  } finally {
    giveUp.abort()
  }
}

/** Passes an error of a thread on; one that took more than a task may is a failure of its claim. */
export function throwAsFailure(error: unknown): never {
  if (!isExhausted(error)) throw error
  throw new AppError('assessment_failed', 'The assessment takes more time or memory than it may.', { cause: error })
}

/** Whether the error concerns one claim, and not the page or the assessor. */
export function isFailure(error: unknown): error is AppError {
  return error instanceof AppError && error.code === 'assessment_failed'
}

/** Claims of one page that are assessed at the same time: other pages wait for the same threads and models. */
const AT_ONCE = 3
