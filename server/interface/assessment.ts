// The verdict on one claim: what the assess stage stores, and what the result repeats.
import { z } from 'zod'
import { assessmentScope, claimSupport, evidence, LIMITS, riskFlags, unsignedResult } from './result.ts'

/** `semantic`: a model gives a verdict. `literal`: passages are quoted, and no verdict is given. */
export type AssessmentKind = 'literal' | 'semantic'

export const assessment = z.strictObject({
  assessment_scope: assessmentScope,
  claim_support: claimSupport,
  evidence: z.array(evidence).max(LIMITS.evidenceItems),
  explanation: unsignedResult.shape.explanation,
  risk_flags: riskFlags,
  /**
   * Names the assessor and everything that may change its answer; becomes part of `methodology_version`, which has room
   * for it behind the 128 characters of the observation's and a space.
   */
  procedure: z.string().min(1).max(127),
})
export type Assessment = z.output<typeof assessment>
