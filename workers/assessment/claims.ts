// The assessment of several claims on one page: each claim by itself, so that no claim changes what is said of another.
import { AppError } from '../../server/errors.ts'
import type { Assessment } from '../../server/interface/assessment.ts'
import type { Assessments, AssessmentTask, Assessor, ClaimsTask } from './assessor.ts'
import { buildSemaphore } from './semantic/semaphore.ts'

/** Claims of one page that are assessed at the same time: other pages wait for the same threads and models. */
const AT_ONCE = 3

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

/** Whether the error concerns one claim, and not the page or the assessor. */
export function isFailure(error: unknown): error is AppError {
  return error instanceof AppError && error.code === 'assessment_failed'
}
