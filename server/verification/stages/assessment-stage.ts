// The second stage of a verification: the assessor compares claims and page, and its answer is checked and stored.
import {
  type AssessmentTask,
  type Assessor,
  assessClaims,
  type ClaimsTask,
  isFailure,
} from '../../../workers/assessment/assessor.ts'
import type { Verdict } from '../../../workers/assessment/evidence.ts'
import type { ClaimFlag } from '../../../workers/assessment/risk-flags.ts'
import { judgePage, judgePageOf } from '../../../workers/retrieval/page-quality.ts'
import { gatedProcedure } from '../../../workers/retrieval/procedure.ts'
import { type Assessment, assessment as assessmentShape } from '../../interface/assessment.ts'
import {
  type ClaimsAssessment,
  type ClaimsInput,
  claimsAssessment,
  type PurchaseAssessment,
} from '../../interface/claims.ts'
import { inconsistency } from '../../interface/result.ts'
import { readWithContext } from '../claim-reading.ts'
import { purchaseLane } from '../lane.ts'
import type { StoredObservation, WorkingRequest } from '../request.ts'
import { MIN_VALIDITY_SECONDS } from './failure.ts'
import type { VerificationTools } from './stage-tools.ts'
import { commit, enter } from './steps.ts'

type AssessmentTools = Pick<VerificationTools, 'assessor' | 'steps' | 'config'>

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

function judge(
  request: WorkingRequest,
  { observation }: StoredObservation,
  { assessor, config }: AssessmentTools,
  signal: AbortSignal,
): Promise<PurchaseAssessment> {
  const { body } = request
  const until = (request.payment.valid_before - MIN_VALIDITY_SECONDS) * 1000
  const page = { observation, signal, until, lane: purchaseLane(request, { config }) }
  return 'claims' in body ? judgeClaims(body, page, assessor) : judgeClaim({ ...page, claim: body.claim }, { assessor })
}

/**
 * Refuses a page that is none, and compares claim and page. Throws AppError for such a page, what the assessor throws, and an
 * Error when its answer breaks a rule of the interface.
 */
export async function judgeClaim(
  task: AssessmentTask,
  { assessor }: Pick<VerificationTools, 'assessor'>,
): Promise<Assessment> {
  const doubts = judgePage(task.claim, task.observation)
  const found = await assessor.assess(task)
  return checked(
    assessmentShape.parse({
      ...found,
      risk_flags: [...new Set([...doubts, ...found.risk_flags])].sort(),
      procedure: gatedProcedure(found.procedure),
    }),
  )
}

/** Each claim by itself. Fails only if no claim could be assessed, with the error of the first. */
async function judgeClaims(
  { claims, context }: ClaimsInput,
  page: Omit<ClaimsTask, 'claims'>,
  assessor: Assessor,
): Promise<ClaimsAssessment> {
  const asRead = readWithContext(claims, context)
  const doubts = judgePageOf(asRead, page.observation)
  const found = await assessClaims(assessor, { ...page, claims: asRead })
  const assessed = found.find((one) => !isFailure(one))
  if (!assessed || isFailure(assessed)) throw found[0]
  let number = 0
  const verdicts = found.map((one, i) => {
    const { procedure: _, ...verdict } = isFailure(one) ? { ...NOT_ASSESSED, procedure: '' } : one
    return {
      ...(asRead[i] !== claims[i] && { claim_as_read: asRead[i] }),
      ...verdict,
      evidence: verdict.evidence.map((item) => ({ ...item, evidence_id: `e${++number}` })),
      risk_flags: [...new Set([...doubts, ...verdict.risk_flags])].sort(),
    }
  })
  const stored = claimsAssessment.parse({ claims: verdicts, procedure: gatedProcedure(assessed.procedure) })
  for (const verdict of stored.claims) checked(verdict)
  return stored
}

const NOT_ASSESSED: Verdict = {
  assessment_scope: 'literal_quotation_only',
  claim_support: 'not_assessed',
  evidence: [],
  explanation: 'This claim could not be assessed. Nothing follows from that for the claim or for the page.',
  risk_flags: ['claim_not_assessed' satisfies ClaimFlag],
}

/** Throws an Error for a verdict that breaks a rule of consistency. */
function checked<V extends Parameters<typeof inconsistency>[0]>(verdict: V): V {
  const problem = inconsistency(verdict)
  if (problem) throw new Error(`the assessor broke a rule of the interface: ${problem}`)
  return verdict
}
