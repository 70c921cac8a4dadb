// Verifies a completed result offline: that the service signed it, and that it is consistent. It cannot check whether
// the page still has the text, nor whether the claim is true.

import { decodeBase64, sha256Hex } from './bytes.ts'
import { type Attestation, attestationRules, attestationShape, hex256, timestamp } from './chain/attestation.ts'
import { buildKeyRing, type PinnedKey } from './chain/keys.ts'
import type { SignatureCheck } from './chain/signature.ts'
import { examine, type Rule, type Verification } from './checks.ts'
import { readingFault } from './claim-reading.ts'
import { canonicalJson } from './json.ts'
import type { ClaimResult, Evidence, PurchaseResult, Stance } from './result.ts'
import { anything, closed, integer, list, literal, object, type Shape, text } from './shape.ts'

export { type Attestation, type AttestationOptions, isUnknownKey, verifyAttestation } from './chain/attestation.ts'
export { type ChainOptions, type ChainPoint, ChainVerifier, verifyChain } from './chain/chain.ts'
export { type Checkpoint, checkpointFault, readCheckpoint } from './chain/checkpoint.ts'
export { verifyExport } from './chain/export.ts'
export type { PinnedKey } from './chain/keys.ts'
export { type Inclusion, isContinued, isIncluded, rootOfInclusion, type TreeHead } from './chain/merkle.ts'
export { type ReceiptOptions, verifyReceipt } from './chain/receipt.ts'
export { trustIntroduced } from './chain/rotation.ts'
export type { SignatureCheck } from './chain/signature.ts'
export type { Check, Verification } from './checks.ts'
export { canonicalJson, parseJson } from './json.ts'
export type * from './result.ts'

export interface VerificationOptions {
  /** Pinned through a trusted channel, independent of the one that brought the result. */
  keys: readonly PinnedKey[]
  /** Replaces the included check of Ed25519 signatures, which takes 2 ms. */
  signatureCheck?: SignatureCheck
}

/**
 * Verifies a completed result. Every check is listed by name, always in the same order; a result of several claims has one more. A
 * check that could not run
 * counts as failed. Throws a TypeError for a malformed pin, never for a bad result.
 *
 * `receipt.verification`, a note for people, is the only field without a signature.
 */
export function verifyResult(result: unknown, { keys, signatureCheck }: VerificationOptions): Verification {
  const attested = attestationRules(buildKeyRing(keys), signatureCheck).map(
    ([name, judge]): Rule<PurchaseResult> => [name, ({ receipt }) => judge(receipt.attestation)],
  )
  const reading = isOfClaims(result) ? claimsRules : []
  return examine(result, resultShape, [...attested, ...receiptRules, ...sourceRules, ...consistencyRules, ...reading])
}

/**
 * Verifies the receipt of a purchase without its result: that the service signed the envelope, and that the envelope is the one
 * that can be read. It says nothing about the result, of which the envelope holds the digest. Throws a TypeError for a malformed
 * pin, never for a bad receipt.
 */
export function verifyPurchaseReceipt(receipt: unknown, { keys, signatureCheck }: VerificationOptions): Verification {
  const attested = attestationRules(buildKeyRing(keys), signatureCheck).map(
    ([name, judge]): Rule<Sealed['receipt']> => [name, ({ attestation }) => judge(attestation)],
  )
  const sealed = sealRules.map(([name, judge]): Rule<Sealed['receipt']> => [name, (receipt) => judge({ receipt })])
  return examine(receipt, receiptShape, [...attested, ...sealed])
}

type Sealed = Pick<PurchaseResult, 'receipt'>

const MOST_CLAIMS = 10
const nonEmpty = text(/./s)
const stance = literal('supports', 'contradicts', 'mentions')

const receiptShape = closed({
  envelope: closed({
    type: literal('service.source-verification.purchase'),
    version: literal(1),
    request_id: nonEmpty,
    result_sha256: hex256,
    checked_at: timestamp,
    methodology_version: nonEmpty,
    payment: object({}),
    issued_at: timestamp,
  }),
  canonical_envelope_base64: nonEmpty,
  attestation: attestationShape,
  verification: nonEmpty,
})

/** The members that say what was found about one claim. @param id the form of the ids of its evidence */
const verdictShape = (id: RegExp) => ({
  claim: nonEmpty,
  claim_support: literal('supports', 'contradicts', 'mixed', 'insufficient_evidence', 'not_assessed'),
  assessment_scope: literal('source_local_semantic_support', 'literal_quotation_only'),
  explanation: text(),
  evidence: list(
    object({
      evidence_id: text(id),
      quote: nonEmpty,
      start: integer(0),
      end: integer(1),
      stance,
      source_sha256: hex256,
      text_sha256: hex256,
    }),
    6,
  ),
})

const common = {
  schema_version: literal('1.0.0'),
  request_id: nonEmpty,
  status: literal('completed'),
  reachable: literal(true),
  source: object({ content_sha256: hex256, text_sha256: hex256, normalized_text: text() }),
  source_identity: object({ publisher_identity: anything }),
  confidence: anything,
  checked_at: timestamp,
  methodology_version: nonEmpty,
  payment: object({ status: anything }),
  receipt: receiptShape,
}

const sourceShape = object({ ...common, verification_type: literal('source'), ...verdictShape(/^e[1-6]$/) })
const claimsShape = object({
  ...common,
  verification_type: literal('source_claims'),
  claims: list(object(verdictShape(/^e([1-9]|[1-5][0-9]|60)$/)), MOST_CLAIMS, 1),
})

const isOfClaims = (value: unknown) => typeof value === 'object' && value !== null && Object.hasOwn(value, 'claims')

const resultShape: Shape = (value, path) => (isOfClaims(value) ? claimsShape(value, path) : sourceShape(value, path))

type Verdict = Pick<ClaimResult, 'claim_support' | 'assessment_scope' | 'evidence'>

function verdictsOf(result: PurchaseResult): Verdict[] {
  return 'claims' in result ? result.claims : [result]
}

function evidenceOf(result: PurchaseResult): Evidence[] {
  return verdictsOf(result).flatMap(({ evidence }) => evidence)
}

/** A rule for what was found about one claim, for each claim of a result; of several, the first fault is named. */
function each(judge: (verdict: Verdict) => string | null) {
  return (result: PurchaseResult): string | null => {
    const faults = verdictsOf(result).map(judge)
    const first = faults.findIndex((fault) => fault !== null)
    return first < 0 ? null : 'claims' in result ? `claim ${first + 1}: ${faults[first]}` : (faults[first] ?? null)
  }
}

/** What can be checked of a receipt without its result. */
const sealRules: Rule<Sealed>[] = [
  ['purchase_attestation', ({ receipt }) => purchaseFault(receipt.attestation)],
  ['subject_sha256', subjectFault],
  ['canonical_envelope', canonicalEnvelopeFault],
]

const receiptRules: Rule<PurchaseResult>[] = [
  ...sealRules,
  ['result_sha256', resultDigestFault],
  ['envelope_agrees', envelopeFault],
]

const sourceRules: Rule<PurchaseResult>[] = [
  ['text_sha256', textDigestFault],
  ['evidence_quotes', quotesFault],
  ['evidence_digests', evidenceDigestsFault],
]

const consistencyRules: Rule<PurchaseResult>[] = [
  ['literal_scope_only_mentions', each(literalScopeFault)],
  ['supports_has_support', each((one) => lacking(one, 'supports', ['supports']))],
  ['contradicts_has_contradiction', each((one) => lacking(one, 'contradicts', ['contradicts']))],
  ['mixed_has_both', each((one) => lacking(one, 'mixed', ['supports', 'contradicts']))],
  ['bounded_observation', boundedObservationFault],
  ['confidence_null', ({ confidence }) => (confidence === null ? null : 'confidence must be null')],
  [
    'publisher_unknown',
    ({ source_identity }) =>
      source_identity.publisher_identity === 'unknown' ? null : 'publisher_identity must be unknown',
  ],
]

const claimsRules: Rule<PurchaseResult>[] = [
  ['claims_as_read', (result) => ('claims' in result ? readingFault(result) : null)],
]

/**
 * Any account may have any digest attested in the same chain with the same key, also that of an invented envelope. Only
 * `requested_by` shows that the service itself sold this result.
 */
function purchaseFault({ requested_by, label }: Attestation): string | null {
  return requested_by === 'source-verification' && label === null
    ? null
    : `the receipt was made for ${JSON.stringify(requested_by)}, not by a source verification`
}

function subjectFault({ receipt }: Sealed): string | null {
  const bytes = decodeBase64(receipt.canonical_envelope_base64)
  if (!bytes) return 'not checked: canonical_envelope_base64 is not standard base64'
  return sha256Hex(bytes) === receipt.attestation.subject_sha256
    ? null
    : 'the attestation is for other bytes than canonical_envelope_base64'
}

function canonicalEnvelopeFault({ receipt }: Sealed): string | null {
  const bytes = decodeBase64(receipt.canonical_envelope_base64)
  if (!bytes) return 'canonical_envelope_base64 is not standard base64'
  const expected = new TextEncoder().encode(canonicalJson(receipt.envelope))
  return bytes.length === expected.length && bytes.every((byte, i) => byte === expected[i])
    ? null
    : 'canonical_envelope_base64 is not the canonical JSON of envelope'
}

function resultDigestFault({ receipt, ...result }: PurchaseResult): string | null {
  return sha256Hex(canonicalJson(result)) === receipt.envelope.result_sha256
    ? null
    : 'the result without its receipt is not the one in the envelope'
}

function envelopeFault(result: PurchaseResult): string | null {
  const { envelope } = result.receipt
  const repeated = ['request_id', 'checked_at', 'methodology_version', 'payment'] as const
  const differing = repeated.find((name) => canonicalJson(envelope[name]) !== canonicalJson(result[name]))
  return differing ? `envelope.${differing} differs from the result's` : null
}

function textDigestFault({ source }: PurchaseResult): string | null {
  return sha256Hex(source.normalized_text) === source.text_sha256
    ? null
    : 'source.text_sha256 is not the SHA-256 of normalized_text'
}

function quotesFault(result: PurchaseResult): string | null {
  const evidence = evidenceOf(result)
  const points = Array.from(result.source.normalized_text)
  const repeated = evidence.find(({ evidence_id }, i) =>
    evidence.slice(0, i).some((other) => other.evidence_id === evidence_id),
  )
  if ('claims' in result && repeated) return `${repeated.evidence_id} names two quotes`
  const wrong = evidence.find(
    ({ start, end, quote }) => end > points.length || points.slice(start, end).join('') !== quote,
  )
  return wrong ? `${wrong.evidence_id}: the text from ${wrong.start} to ${wrong.end} is not the quote` : null
}

function evidenceDigestsFault(result: PurchaseResult): string | null {
  const { source } = result
  const wrong = evidenceOf(result).find(
    (item) => item.source_sha256 !== source.content_sha256 || item.text_sha256 !== source.text_sha256,
  )
  return wrong ? `${wrong.evidence_id} belongs to another observation` : null
}

function literalScopeFault({ assessment_scope, claim_support, evidence }: Verdict): string | null {
  if (assessment_scope !== 'literal_quotation_only') return null
  if (claim_support !== 'not_assessed' && claim_support !== 'insufficient_evidence')
    return `literal_quotation_only cannot say ${claim_support}`
  return evidence.every((item) => item.stance === 'mentions') ? null : 'literal_quotation_only can only mention'
}

function lacking({ claim_support: verdict, evidence }: Verdict, concerned: string, needed: Stance[]): string | null {
  if (verdict !== concerned) return null
  const missing = needed.find((stance) => !evidence.some((item) => item.stance === stance))
  return missing ? `${verdict} without evidence of stance ${missing}` : null
}

/** A result without a verdict is still a sold observation, so it must not look like an error. */
function boundedObservationFault({ payment, ...result }: PurchaseResult): string | null {
  if (payment.status !== 'settled') return 'a completed result must be settled'
  return Object.hasOwn(result, 'error') ? 'a completed result carries no error' : null
}
