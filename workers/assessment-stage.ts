// The second stage of a verification: the assessor compares claim and page, and its answer is checked and stored.
import { assessment as assessmentShape } from '../server/interface/assessment.ts'
import { inconsistency } from '../server/interface/result.ts'
import type { StoredObservation, WorkingRequest } from '../server/verification/request.ts'
import { commit, enter } from '../server/verification/steps.ts'
import { judgePage } from './assessment/page-quality.ts'
import { gatedProcedure } from './assessment/procedure.ts'
import type { Work } from './context.ts'
import { MIN_VALIDITY_SECONDS } from './failure.ts'

type AssessmentTools = Pick<Work, 'assessor' | 'steps'>

/** Throws what the assessor throws, and an Error when its answer breaks a rule of the interface. */
export async function assess(
  request: WorkingRequest,
  work: AssessmentTools,
  signal: AbortSignal,
): Promise<WorkingRequest> {
  if (!request.stored) throw new Error(`request ${request.id} was not observed`)
  const assessed = enter(request, 'assessed', { assessment: await judge(request, request.stored, work, signal) })
  return work.assessor.isRepeatable ? assessed : commit(work.steps, assessed)
}

async function judge(
  request: WorkingRequest,
  { observation }: StoredObservation,
  { assessor }: AssessmentTools,
  signal: AbortSignal,
) {
  const { claim } = request.body
  const doubts = judgePage(claim, observation)
  const until = (request.payment.valid_before - MIN_VALIDITY_SECONDS) * 1000
  const found = await assessor.assess({ claim, observation, signal, until })
  const verdict = assessmentShape.parse({
    ...found,
    risk_flags: [...new Set([...doubts, ...found.risk_flags])].sort(),
    procedure: gatedProcedure(found.procedure),
  })
  const problem = inconsistency(verdict)
  if (problem) throw new Error(`the assessor broke a rule of the interface: ${problem}`)
  return verdict
}
