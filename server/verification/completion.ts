// The last step of a verification: the result is put together, sealed into the receipt chain and stored as the very bytes
// that every answer from then on serves. Receipt, bytes and state are one transaction (see receipts/chain.ts).
import { z } from 'zod'
import { column, nothing, sql } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import {
  type Attestation,
  attestation as attestationShape,
  type Envelope,
  RECEIPT_TYPE,
} from '../interface/attestation.ts'
import { type Payment, SOLANA_MAINNET } from '../interface/payment.ts'
import {
  type CompletedResult,
  completedResult,
  LIMITS,
  SCHEMA_VERSION,
  type UnsignedResult,
} from '../interface/result.ts'
import { encodeSettlement, type SettleResponse } from '../payments/x402.ts'
import { type Append, type Chain, type Participant, Refused } from '../receipts/chain.ts'
import { canonicalJson, sealEnvelope, sha256 } from '../receipts/format.ts'
import type { Logger } from '../telemetry.ts'
import { StaleAttemptError, type WorkingRequest } from './request.ts'

/** Whose receipts these are. The chain is public, so it names the service's role and nobody's page. */
const REQUESTED_BY = 'source-verification'

const HOW_TO_VERIFY =
  'Pin the key of attestation.key_id from GET /v1/keys through a channel you trust. ' +
  '(1) Ed25519: sig_ed25519_hex over the RFC 8785 JSON of attestation without receipt_hash and sig_ed25519_hex; ' +
  'receipt_hash is the SHA-256 of those bytes. (2) attestation.subject_sha256 is the SHA-256 of the bytes of ' +
  'canonical_envelope_base64, which are the RFC 8785 JSON of envelope. (3) envelope.result_sha256 is the SHA-256 of the ' +
  'RFC 8785 JSON of this result without its receipt member. (4) Each quote is source.normalized_text from start to end ' +
  'in Unicode code points.'

interface Sealed {
  id: string
  attempt: string
  unsigned: UnsignedResult
  envelope: Envelope
  envelopeBase64: string
  settlementHeader: string
}

/**
 * Completes a settled request. Throws StaleAttemptError when another attempt completed it, and an Error when the result breaks the
 * interface. A crash anywhere before the commit leaves it `settled`, and the next attempt comes here again; no receipt is
 * left over.
 */
export async function completeRequest(chain: Chain, request: WorkingRequest, servedAt: Date): Promise<void> {
  const appended = await chain.append(sealResult(request, servedAt))
  if (appended instanceof Refused)
    throw new StaleAttemptError(`request ${request.id} is not settled under this attempt`)
}

/**
 * Puts the result of an assessed request together before its payment is settled, with the longest payment and receipt that
 * there may be. Throws AppError `execution_failed` for one that could not be served, and logs why: nothing is charged then.
 */
export function proveServable(request: WorkingRequest, log: Logger): void {
  try {
    const unsigned = composeResult(request, LONGEST_PAYMENT, new Date())
    const envelope = envelopeOf(unsigned, NO_DIGEST)
    const { base64 } = sealEnvelope(envelope)
    holdToInterface(unsigned, receiptOf({ envelope, envelopeBase64: base64 }, LONGEST_ATTESTATION))
  } catch (cause) {
    log.error({ event: 'unservable_result', request_id: request.id, err: cause })
    throw new AppError('execution_failed', 'The result does not keep to the interface. Nothing was charged.', { cause })
  }
}

function sealResult(request: WorkingRequest, servedAt: Date): Append<Sealed, 'fenced'> {
  if (!request.settlement) throw new Error(`request ${request.id} has no settlement`)
  const unsigned = composeResult(request, request.settlement.payment, servedAt)
  const envelope = envelopeOf(unsigned, sha256(canonicalJson(unsigned)))
  const sealed = sealEnvelope(envelope)
  const parts = { envelope, envelopeBase64: sealed.base64 }
  holdToInterface(unsigned, receiptOf(parts, LONGEST_ATTESTATION))
  return {
    subjectSha256: sealed.sha256,
    label: null,
    requestedBy: REQUESTED_BY,
    participant: {
      kind: completions,
      item: {
        id: request.id,
        attempt: request.attempt,
        unsigned,
        ...parts,
        settlementHeader: encodeSettlement(request.settlement.response as unknown as SettleResponse),
      },
    },
  }
}

function envelopeOf(unsigned: UnsignedResult, resultSha256: string): Envelope {
  return {
    type: RECEIPT_TYPE,
    version: 1,
    request_id: unsigned.request_id,
    result_sha256: resultSha256,
    checked_at: unsigned.checked_at,
    methodology_version: unsigned.methodology_version,
    payment: unsigned.payment,
    issued_at: unsigned.served_at,
  }
}

function receiptOf(
  { envelope, envelopeBase64 }: Pick<Sealed, 'envelope' | 'envelopeBase64'>,
  attestation: Attestation,
): CompletedResult['receipt'] {
  return { envelope, canonical_envelope_base64: envelopeBase64, attestation, verification: HOW_TO_VERIFY }
}

/** Throws an Error that names the members by which a result breaks the interface, and nothing that they hold. */
function holdToInterface(unsigned: UnsignedResult, receipt: CompletedResult['receipt']): void {
  const { error } = completedResult.safeParse({ ...unsigned, receipt })
  if (!error) return
  const problems = error.issues.map(({ path, message }) => `${path.join('.') || 'result'}: ${message}`)
  throw new Error(`request ${unsigned.request_id}: ${problems.slice(0, MOST_NAMED).join('; ')}`)
}

function composeResult(request: WorkingRequest, payment: Payment, servedAt: Date): UnsignedResult {
  const { body, stored, assessment } = request
  if (!stored || !assessment) throw new Error(`request ${request.id} is not ready to be completed`)
  const { observation } = stored
  const age = Math.floor((servedAt.getTime() - Date.parse(observation.checked_at)) / 1000)
  return {
    schema_version: SCHEMA_VERSION,
    request_id: request.id,
    status: 'completed',
    verification_type: 'source',
    source: { requested_url: body.source_url, ...observation.source },
    reachable: true,
    source_identity: observation.source_identity,
    claim: body.claim,
    claim_support: assessment.claim_support,
    assessment_scope: assessment.assessment_scope,
    explanation: assessment.explanation,
    confidence: null,
    evidence: assessment.evidence,
    risk_flags: [...new Set([...observation.risk_flags, ...assessment.risk_flags])].sort().slice(0, LIMITS.riskFlags),
    checked_at: observation.checked_at,
    served_at: servedAt.toISOString(),
    methodology_version: `${observation.procedure} ${assessment.procedure}`,
    limits: observation.limits,
    cache: {
      hit: stored.cache_hit,
      age_seconds: stored.cache_hit ? Math.max(0, age) : 0,
      original_checked_at: observation.checked_at,
    },
    payment,
  }
}

const completions: Participant<Sealed, 'fenced'> = {
  async check(tx, items) {
    const ready = await tx.anyFirst(sql.prepared('lock_settled', z.object({ id: z.string() }))`
      select r.id::text from verification_requests r
      join unnest(${column(items, 'text', (item) => item.id)}, ${column(items, 'text', (item) => item.attempt)})
        as t (id, attempt) on r.id = t.id::uuid and r.attempt = t.attempt::uuid
      where r.state = 'settled' order by r.id for update of r`)
    const found = new Set(ready)
    return items.map((item) => (found.has(item.id) ? null : new Refused('fenced')))
  },

  async apply(tx, entries) {
    const results = entries.map(({ item, attestation }) => {
      const receipt = receiptOf(item, attestationShape.parse(attestation))
      return Buffer.from(JSON.stringify({ ...item.unsigned, receipt } satisfies CompletedResult))
    })
    await tx.query(sql.prepared('complete_requests', nothing)`
      update verification_requests r
      set state = 'completed', result = t.result, settlement_header = t.header, changed_at = now(),
          observation = null, assessment = null, attempt = null
      from unnest(${column(entries, 'text', (e) => e.item.id)}, ${sql.array(results, 'bytea')},
                ${column(entries, 'text', (e) => e.item.settlementHeader)}) as t (id, result, header)
      where r.id = t.id::uuid`)
  },
}

const MOST_NAMED = 8
const NO_DIGEST = '0'.repeat(64)
const LONGEST_USD = `${'9'.repeat(25)}.999999`
const EPOCH = new Date(0).toISOString()

/** Every text as long as it may be, of characters that take most room in JSON: what fits with it fits with any payment. */
const LONGEST_PAYMENT: Payment = {
  status: 'settled',
  provider: '\u0001'.repeat(64),
  mode: 'testnet',
  simulated: false,
  network: SOLANA_MAINNET,
  asset: '\u0001'.repeat(128),
  currency: 'USDC',
  amount_atomic: '9'.repeat(18),
  price_usd: LONGEST_USD,
  transaction: '\u0001'.repeat(512),
  facilitator_fee_usd: LONGEST_USD,
  network_fee_usd: LONGEST_USD,
}

const LONGEST_ATTESTATION: Attestation = {
  v: 1,
  serial: Number.MAX_SAFE_INTEGER,
  subject_sha256: NO_DIGEST,
  label: null,
  requested_by: REQUESTED_BY,
  key_id: Number.MAX_SAFE_INTEGER,
  ts_ms: Number.MAX_SAFE_INTEGER,
  ts_utc: EPOCH,
  prev_hash: NO_DIGEST,
  pubkey_hex: NO_DIGEST,
  receipt_hash: NO_DIGEST,
  sig_ed25519_hex: NO_DIGEST.repeat(2),
}
