// A second, independent implementation of the receipt format: node:crypto for the signatures and digests, a canonical
// JSON of a few lines. What it issues is what the client must accept; it shares no code with the client.
import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import type { Attestation, ClaimsResult, Evidence, VerificationResult } from '../../client/verification.ts'

export const KEY_ID = 7
export const SEED = Buffer.alloc(32, 0x2a)

const privateKey = createPrivateKey({
  key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), SEED]),
  format: 'der',
  type: 'pkcs8',
})
export const publicKey = createPublicKey(privateKey)
export const pubkeyHex = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex')
export const keys = [{ key_id: KEY_ID, pubkey_hex: pubkeyHex }]

export const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex')

export function jcs(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jcs).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${jcs(member)}`).join(',')}}`
}

/** Fills in key, hash and signature. */
export function attest(fields: Partial<Attestation> = {}): Attestation {
  const { receipt_hash: _hash, sig_ed25519_hex: _signature, ...given } = fields
  const signed = {
    v: 1 as const,
    serial: 42,
    subject_sha256: sha256('subject'),
    label: null,
    requested_by: 'source-verification',
    key_id: KEY_ID,
    ts_ms: 1_795_000_000_123,
    prev_hash: sha256('before'),
    pubkey_hex: pubkeyHex,
    ...given,
  }
  const complete = { ts_utc: new Date(signed.ts_ms).toISOString(), ...signed }
  const bytes = Buffer.from(jcs(complete))
  const signature = sign(null, bytes, privateKey).toString('hex')
  return { ...complete, receipt_hash: sha256(bytes), sig_ed25519_hex: signature }
}

/** A chain from serial `first`, each link made by hand from the one before. */
export function issueChain(length: number, first = 1, prev = '0'.repeat(64)): Attestation[] {
  const chain: Attestation[] = []
  for (let i = 0; i < length; i++) {
    const serial = first + i
    const prev_hash = chain.at(-1)?.receipt_hash ?? prev
    const label = `entry ${serial}`
    chain.push(attest({ serial, prev_hash, label, requested_by: 'someone', ts_ms: 1_795_000_000_000 + serial }))
  }
  return chain
}

type Draft = Omit<VerificationResult, 'receipt'>
type Envelope = VerificationResult['receipt']['envelope']

export interface Forgery<R = Draft> {
  /** Changes the result before it is digested and signed, as an issuer that signs wrong results does. */
  result?: (draft: R) => void
  envelope?: (envelope: Envelope) => void
  attestation?: Partial<Attestation>
}

/** A whole valid result, or one that is wrong in exactly the given way and yet properly signed. */
export function issueResult(forgery: Forgery = {}): VerificationResult {
  return seal(draft(), forgery)
}

type ClaimsDraft = Omit<ClaimsResult, 'receipt'>

/** The same for a result of three claims, of which one was read with the context and one could not be assessed. */
export function issueClaimsResult(forgery: Forgery<ClaimsDraft> = {}): ClaimsResult {
  const { claim: _, claim_support, assessment_scope, explanation, evidence, risk_flags, ...page } = draft()
  const renumbered = evidence.map((item, i) => ({ ...item, evidence_id: `e${i + 3}` }))
  const result: ClaimsDraft = {
    ...page,
    verification_type: 'source_claims',
    context: 'The bridge of Ashby was built by the county.',
    claims: [
      { claim: 'The bridge opened in 1932.', claim_support, assessment_scope, explanation, evidence, risk_flags },
      {
        claim: 'It was closed in 1931.',
        claim_as_read: 'The bridge of Ashby was closed in 1931.',
        ...{ claim_support, assessment_scope, explanation, evidence: renumbered, risk_flags },
      },
      {
        claim: 'Caf\u00e9s stand beside it.',
        claim_support: 'not_assessed',
        assessment_scope: 'literal_quotation_only',
        explanation: 'This claim could not be assessed.',
        evidence: [],
        risk_flags: ['claim_not_assessed'],
      },
    ],
    payment: { ...page.payment, amount_atomic: '50000', price_usd: '0.05' },
  }
  return seal(result, forgery)
}

function seal<R extends Draft | ClaimsDraft>(result: R, forgery: Forgery<R>): R & Pick<VerificationResult, 'receipt'> {
  forgery.result?.(result)
  const envelope: Envelope = {
    type: 'service.source-verification.purchase',
    version: 1,
    request_id: result.request_id,
    result_sha256: sha256(jcs(result)),
    checked_at: result.checked_at,
    methodology_version: result.methodology_version,
    payment: structuredClone(result.payment),
    issued_at: '2026-11-20T09:00:03Z',
  }
  forgery.envelope?.(envelope)
  const bytes = Buffer.from(jcs(envelope))
  const attestation = attest({ subject_sha256: sha256(bytes), ...forgery.attestation })
  const verification = 'Pin the key, then verify the attestation, the envelope and the result.'
  const canonical_envelope_base64 = bytes.toString('base64')
  return { ...result, receipt: { envelope, canonical_envelope_base64, attestation, verification } }
}

// The emoji before the quotes makes offsets in code points, UTF-16 units and bytes differ.
const TEXT = 'Caf\u00e9 \u{1F600} news\nThe bridge opened in 1932.\nIt was closed in 1931, says another.\u2028End'
const QUOTES = [
  ['The bridge opened in 1932.', 'supports'],
  ['It was closed in 1931', 'contradicts'],
] as const

function draft(): Draft {
  const content = sha256('<html>the page</html>')
  return {
    schema_version: '1.0.0',
    request_id: '0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b',
    status: 'completed',
    verification_type: 'source',
    source: {
      requested_url: 'https://example.org/bridge',
      final_url: 'https://www.example.org/bridge',
      http_status: 200,
      content_type: 'text/html; charset=utf-8',
      content_sha256: content,
      text_sha256: sha256(TEXT),
      normalized_text: TEXT,
      offset_unit: 'unicode_codepoint',
      redirects: [{ url: 'https://example.org/bridge', status: 301 }],
      wire_bytes: 1234,
      decoded_bytes: 5678,
    },
    reachable: true,
    source_identity: { hostname: 'www.example.org', tls_verified: true, publisher_identity: 'unknown' },
    claim: 'The bridge opened in 1932.',
    claim_support: 'mixed',
    assessment_scope: 'source_local_semantic_support',
    explanation: 'One sentence supports the claim, another speaks against it.',
    evidence: QUOTES.map(([quote, stance], index) => evidence(quote, stance, index, content)),
    confidence: null,
    risk_flags: ['conflicting_statements'],
    checked_at: '2026-11-20T09:00:00.250Z',
    served_at: '2026-11-20T09:00:02.500Z',
    methodology_version: 'test-1',
    limits: { max_text_chars: 100_000, fixture: true, timeout_seconds: '12.5', max_redirects: 5 },
    cache: { hit: false, age_seconds: 0, original_checked_at: '2026-11-20T09:00:00.250Z' },
    payment: {
      status: 'settled',
      provider: 'offline',
      mode: 'offline',
      simulated: true,
      network: 'none',
      asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
      currency: 'USDC',
      amount_atomic: '30000',
      price_usd: '0.03',
      transaction: null,
      facilitator_fee_usd: null,
      network_fee_usd: '0',
    },
  }
}

function evidence(quote: string, stance: Evidence['stance'], index: number, source_sha256: string): Evidence {
  const start = [...TEXT.slice(0, TEXT.indexOf(quote))].length
  const end = start + quote.length
  return { evidence_id: `e${index + 1}`, quote, start, end, stance, source_sha256, text_sha256: sha256(TEXT) }
}
