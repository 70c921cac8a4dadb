// The verdict on one claim. The assess stage stores it, and the result repeats it.
import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { assessmentScope, claimSupport, evidence, riskFlags, unsignedResult } from './result.ts'

/**
 * `semantic`: a language model gives a verdict. `local`: the verifier that comes with the product gives one, the same on every
 * machine. `literal`: passages are quoted, and no verdict is given.
 */
export type AssessmentKind = 'literal' | 'local' | 'semantic'

export const assessment = z.strictObject({
  assessment_scope: assessmentScope,
  claim_support: claimSupport,
  evidence: z.array(evidence).max(LIMITS.evidenceItems),
  explanation: unsignedResult.shape.explanation,
  risk_flags: riskFlags,
  /**
   * Names the assessor and everything that may change its answer. `methodology_version` is the observation's procedure of at
   * most 128 characters, a space and this one.
   */
  procedure: z.string().min(1).max(127),
})
export type Assessment = z.output<typeof assessment>
