// The verdict on one claim: what the assess stage stores, and what the result repeats.
import { z } from 'zod'
import { assessmentScope, claimSupport, evidence, LIMITS, riskFlags } from './result.ts'

export const assessment = z.strictObject({
  assessment_scope: assessmentScope,
  claim_support: claimSupport,
  evidence: z.array(evidence).max(LIMITS.evidenceItems),
  explanation: z.string().max(LIMITS.explanationChars * 2),
  risk_flags: riskFlags,
  /** Names the assessor and everything that may change its answer; becomes part of `methodology_version`. */
  procedure: z.string().min(1).max(128),
})
export type Assessment = z.output<typeof assessment>
