// The shapes of the verification interface, version 1.0.0: the input, the completed result, and the body of every other
// answer. Names, enumerations and limits are those of the specification, neither looser nor stricter.
import { z } from 'zod'
import { receipt } from './attestation.ts'
import { LIMITS } from './limits.ts'
import { payment } from './payment.ts'
import { decimalUsd, sha256Hex, text, timestamp, uri } from './scalars.ts'

export const SCHEMA_VERSION = '1.0.0'

const httpsUrl = (max: number) =>
  uri(
    z
      .string()
      .regex(/^https:\/\//)
      .max(max),
  )

export const DEFAULT_MAX_AGE_SECONDS = 60

export const verificationInput = z.strictObject({
  source_url: uri(
    z
      .string()
      .max(LIMITS.urlChars)
      .regex(/^https:\/\/[^\s]+$/, 'must be an https:// URL without spaces'),
  ).describe('The one public HTTPS page to read. Port 443 only. An ASCII URI: everything else is percent-encoded.'),
  claim: text(1, LIMITS.claimChars)
    .refine((value) => /\S/u.test(value), 'must contain a non-whitespace character')
    .meta({ minLength: 1, maxLength: LIMITS.claimChars, pattern: '\\S' })
    .describe('The one claim to check against the visible text of the page, which does not include its <title>.'),
  options: z
    .strictObject({
      // Published, but not filled in: an idempotency key is bound to the body as it was sent.
      max_age_seconds: z
        .int()
        .min(0)
        .max(300)
        .optional()
        .meta({ default: DEFAULT_MAX_AGE_SECONDS })
        .describe('Oldest acceptable cached observation, in seconds.'),
      max_price_usd: decimalUsd.max(32).optional().describe('Your budget: a higher price fails with 422, uncharged.'),
    })
    .optional(),
})
export type VerificationInput = z.output<typeof verificationInput>

export const stance = z.enum(['supports', 'contradicts', 'mentions'])
export const claimSupport = z.enum(['supports', 'contradicts', 'mixed', 'insufficient_evidence', 'not_assessed'])
export const assessmentScope = z.enum(['source_local_semantic_support', 'literal_quotation_only'])
export const riskFlag = z
  .string()
  .max(128)
  .regex(/^[a-z][a-z0-9_]*$/)
export const riskFlags = z.array(riskFlag).max(LIMITS.riskFlags).meta({ uniqueItems: true })

export const evidence = z.strictObject({
  evidence_id: z.string().regex(/^e[1-6]$/),
  quote: text(1, LIMITS.quoteChars),
  start: z
    .int()
    .min(0)
    .max(LIMITS.textChars - 1),
  end: z.int().min(1).max(LIMITS.textChars),
  stance,
  source_sha256: sha256Hex,
  text_sha256: sha256Hex,
})
export type Evidence = z.output<typeof evidence>

export const redirect = z.strictObject({
  url: httpsUrl(49_152),
  status: z.union([z.literal(301), z.literal(302), z.literal(303), z.literal(307), z.literal(308)]),
})

export const source = z.strictObject({
  requested_url: uri(
    z
      .string()
      .max(LIMITS.urlChars)
      .regex(/^https:\/\/[^\s]+$/),
  ),
  final_url: httpsUrl(49_152),
  http_status: z.literal(200),
  content_type: z
    .string()
    .max(32_768)
    .regex(/^[tT][eE][xX][tT]\/([hH][tT][mM][lL]|[pP][lL][aA][iI][nN])\s*(;.*)?$/s),
  content_sha256: sha256Hex,
  text_sha256: sha256Hex,
  normalized_text: text(0, LIMITS.textChars).describe(
    'The visible text of the page, without its <title>: text that is only in the title cannot be quoted.',
  ),
  offset_unit: z.literal('unicode_codepoint'),
  redirects: z.array(redirect).max(LIMITS.redirects),
  wire_bytes: z.int().min(0).max(26_000_000),
  decoded_bytes: z.int().min(0).max(LIMITS.decodedBytes),
})

export const sourceIdentity = z.strictObject({
  hostname: z.string().min(1).max(253),
  tls_verified: z.boolean(),
  publisher_identity: z.literal('unknown'),
})

const seconds = (max: number) => z.union([z.int().min(1).max(max), z.string().regex(/^(0|[1-9][0-9]*)\.[0-9]+$/)])
export const limits = z.strictObject({
  fixture: z.literal(true).optional(),
  max_decoded_bytes: z.int().min(1).max(LIMITS.decodedBytes).optional(),
  max_header_bytes: z.int().min(1).max(LIMITS.headerBytes).optional(),
  max_redirects: z.int().min(0).max(LIMITS.redirects).optional(),
  max_text_chars: z.int().min(1).max(LIMITS.textChars),
  max_wire_bytes: z.int().min(1).max(LIMITS.wireBytes).optional(),
  socket_timeout_seconds: seconds(LIMITS.socketTimeoutSeconds).optional(),
  timeout_seconds: seconds(LIMITS.timeoutSeconds).optional(),
})

export const cache = z.strictObject({
  hit: z.boolean(),
  age_seconds: z.int().min(0),
  original_checked_at: timestamp,
})

/** The result without the receipt that attests it. */
export const unsignedResult = z.strictObject({
  schema_version: z.literal(SCHEMA_VERSION),
  request_id: z.uuid(),
  status: z.literal('completed'),
  verification_type: z.literal('source'),
  source,
  reachable: z.literal(true),
  source_identity: sourceIdentity,
  claim: text(1, LIMITS.claimChars),
  claim_support: claimSupport,
  assessment_scope: assessmentScope,
  explanation: text(0, LIMITS.explanationChars),
  confidence: z.null(),
  evidence: z.array(evidence).max(LIMITS.evidenceItems),
  risk_flags: riskFlags.describe('GET /risk-flags explains each.'),
  checked_at: timestamp,
  served_at: timestamp,
  methodology_version: z.string().min(1).max(256).describe('Explained at /methodology/{version}.'),
  limits,
  cache,
  payment,
})
export type UnsignedResult = z.output<typeof unsignedResult>

export const completedResult = unsignedResult
  .extend({ receipt })
  .superRefine((result, context) => {
    const problem = inconsistency(result)
    if (problem) context.addIssue({ code: 'custom', message: problem })
  })
  .meta({ allOf: consistencyRules() })
export type CompletedResult = z.output<typeof completedResult>

/** The rules of `inconsistency` below as JSON Schema, for callers who validate with the published schema. */
export function consistencyRules() {
  const has = (stance: string) => ({
    properties: { evidence: { contains: { properties: { stance: { const: stance } } } } },
  })
  const when = (field: string, value: string, rule: object) => ({
    // biome-ignore lint/suspicious/noThenProperty: `then` is a keyword of JSON Schema
    ...{ if: { properties: { [field]: { const: value } } }, then: rule },
  })
  return [
    when('assessment_scope', 'literal_quotation_only', {
      properties: {
        claim_support: { enum: ['not_assessed', 'insufficient_evidence'] },
        evidence: { items: { properties: { stance: { const: 'mentions' } } } },
      },
    }),
    when('claim_support', 'supports', has('supports')),
    when('claim_support', 'contradicts', has('contradicts')),
    when('claim_support', 'mixed', { allOf: [has('supports'), has('contradicts')] }),
  ]
}

/** The consistency rule of the interface that a verdict breaks, or null. */
export function inconsistency(verdict: {
  claim_support: z.output<typeof claimSupport>
  assessment_scope: z.output<typeof assessmentScope>
  evidence: readonly Pick<Evidence, 'stance'>[]
}): string | null {
  const has = (wanted: string) => verdict.evidence.some((item) => item.stance === wanted)
  if (verdict.assessment_scope === 'literal_quotation_only') {
    if (verdict.claim_support !== 'not_assessed' && verdict.claim_support !== 'insufficient_evidence')
      return 'literal_quotation_only allows not_assessed and insufficient_evidence only'
    if (verdict.evidence.some((item) => item.stance !== 'mentions'))
      return 'literal_quotation_only allows mentions only'
  }
  if (verdict.claim_support === 'supports' && !has('supports')) return 'supports needs supporting evidence'
  if (verdict.claim_support === 'contradicts' && !has('contradicts')) return 'contradicts needs contradicting evidence'
  if (verdict.claim_support === 'mixed' && !(has('supports') && has('contradicts')))
    return 'mixed needs evidence on both sides'
  return null
}

export const nonCompleted = z.strictObject({
  schema_version: z.literal(SCHEMA_VERSION),
  status: z.enum(['failed', 'pending', 'payment_required']),
  error: z.strictObject({
    code: z
      .string()
      .max(128)
      .regex(/^[a-z][a-z0-9_]*$/),
    message: z.string().min(1).max(2000),
    retryable: z.boolean(),
  }),
  request_id: z.uuid().optional(),
  payment_required: z.looseObject({}).optional(),
  quote: z.looseObject({}).optional(),
})
export type NonCompleted = z.output<typeof nonCompleted>
