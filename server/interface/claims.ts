// The shapes of verify-claims: several claims on one page in one purchase. A result is that of verify-source, with a list in
// place of the six members that say what was found about the one claim.
import { z } from 'zod'
import { assessment } from './assessment.ts'
import { receipt } from './attestation.ts'
import { LIMITS } from './limits.ts'
import { MOST_CLAIMS } from './price.ts'
import {
  completedResult,
  consistencyRules,
  evidence,
  inconsistency,
  unsignedResult,
  verificationInput,
} from './result.ts'
import { text } from './scalars.ts'

/** Characters of the context of a request. */
const CONTEXT_CHARS = 1000

const context = text(1, CONTEXT_CHARS)
  .refine((value) => /\S/u.test(value), 'must contain a non-whitespace character')
  .meta({ minLength: 1, maxLength: CONTEXT_CHARS, pattern: '\\S' })

export const claimsInput = z.strictObject({
  source_url: verificationInput.shape.source_url,
  claims: z
    .array(verificationInput.shape.claim.describe('A claim to check against the visible text of the page.'))
    .min(1)
    .max(MOST_CLAIMS)
    .refine((claims) => new Set(claims).size === claims.length, 'must not hold the same claim twice')
    .meta({ uniqueItems: true })
    .describe('The claims to check, no two alike.'),
  context: context
    .optional()
    .describe('What the claims refer to, for claims with words such as "it" or "the company". It is no evidence.'),
  options: verificationInput.shape.options,
})
export type ClaimsInput = z.output<typeof claimsInput>

/** The body of a purchase, as it is stored. */
export const purchaseBody = z.union([verificationInput, claimsInput])
export type PurchaseBody = z.output<typeof purchaseBody>

/** How many claims a purchase of verify-claims has; null for a purchase of verify-source. */
export function claimCount(body: PurchaseBody): number | null {
  return 'claims' in body ? body.claims.length : null
}

/** The claims of a purchase, in the order of the body. */
export function claimsOf(body: PurchaseBody): readonly string[] {
  return 'claims' in body ? body.claims : [body.claim]
}

/** Numbers run through all claims of a result: `e1` to `e60`. */
const numberedEvidence = evidence.extend({ evidence_id: z.string().regex(/^e([1-9]|[1-5][0-9]|60)$/) })

/** Characters of a claim as it was read. */
export const READ_CHARS = LIMITS.claimChars + CONTEXT_CHARS

const verdict = z.strictObject({
  claim_as_read: text(1, READ_CHARS)
    .optional()
    .describe('The claim as it was assessed, where that differs: words that stand in the context were added.'),
  claim_support: unsignedResult.shape.claim_support,
  assessment_scope: unsignedResult.shape.assessment_scope,
  explanation: unsignedResult.shape.explanation,
  evidence: z.array(numberedEvidence).max(LIMITS.evidenceItems),
  risk_flags: unsignedResult.shape.risk_flags,
})

/** What was found about each claim, in the order of the body. */
export const claimsAssessment = z.strictObject({
  claims: z.array(verdict).min(1).max(MOST_CLAIMS),
  procedure: assessment.shape.procedure,
})
export type ClaimsAssessment = z.output<typeof claimsAssessment>

/** An assessment as it is stored. */
export const purchaseAssessment = z.union([assessment, claimsAssessment])
export type PurchaseAssessment = z.output<typeof purchaseAssessment>

export const claimResult = z
  .strictObject({ claim: unsignedResult.shape.claim, ...verdict.shape })
  .superRefine((result, context) => {
    const problem = inconsistency(result)
    if (problem) context.addIssue({ code: 'custom', message: problem })
  })
  .meta({ allOf: consistencyRules() })
export type ClaimResult = z.output<typeof claimResult>

const MOVED = {
  claim: true,
  claim_support: true,
  assessment_scope: true,
  explanation: true,
  evidence: true,
  risk_flags: true,
} as const

/** The result without its receipt. */
export const unsignedClaimsResult = unsignedResult.omit(MOVED).extend({
  verification_type: z.literal('source_claims'),
  context: context.optional(),
  claims: z.array(claimResult).min(1).max(MOST_CLAIMS),
})
export type UnsignedClaimsResult = z.output<typeof unsignedClaimsResult>

export const claimsResult = unsignedClaimsResult.extend({ receipt }).superRefine(({ claims }, context) => {
  const ids = claims.flatMap(({ evidence }) => evidence.map(({ evidence_id }) => evidence_id))
  if (new Set(ids).size < ids.length) context.addIssue({ code: 'custom', message: 'evidence ids must be unique' })
})
export type ClaimsResult = z.output<typeof claimsResult>

/** The result of any purchase. */
export const purchaseResult = z.union([completedResult, claimsResult])
export type PurchaseResult = z.output<typeof purchaseResult>
