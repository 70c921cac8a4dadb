// The last step of a verification: the result is put together, sealed into the receipt chain and stored as the very bytes
// that every answer from then on serves. Receipt, bytes and state are one transaction (see receipts/chain.ts).
import { z } from 'zod'
import { column, nothing, sql } from '../db/pool.ts'
import { encodeSettlement, type SettleResponse } from '../payments/x402.ts'
import { type Append, type Chain, type Companion, Refused } from '../receipts/chain.ts'
import { canonicalJson, sealEnvelope, sha256 } from '../receipts/format.ts'
import { Fenced, type WorkingRequest } from './request.ts'
import {
  type CompletedResult,
  type Envelope,
  inconsistency,
  LIMITS,
  RECEIPT_TYPE,
  SCHEMA_VERSION,
  type UnsignedResult,
} from './result.ts'

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
 * Completes a settled request. Throws Fenced when another attempt completed it. A crash anywhere before the commit leaves
 * it `settled`, and the next attempt comes here again; no receipt is left over.
 */
export async function completeRequest(chain: Chain, request: WorkingRequest, servedAt: Date): Promise<void> {
  const { append } = sealResult(request, servedAt)
  const appended = await chain.append(append)
  if (appended instanceof Refused) throw new Fenced(`request ${request.id} is not settled under this attempt`)
}

/** Exported for the tests; needs a request in state `settled` with everything its stages stored. */
export function sealResult(
  request: WorkingRequest,
  servedAt: Date,
): { unsigned: UnsignedResult; append: Append<Sealed, 'fenced'> } {
  if (!request.settlement) throw new Error(`request ${request.id} has no settlement`)
  const unsigned = composeResult(request, servedAt)
  const envelope: Envelope = {
    type: RECEIPT_TYPE,
    version: 1,
    request_id: request.id,
    result_sha256: sha256(canonicalJson(unsigned)),
    checked_at: unsigned.checked_at,
    methodology_version: unsigned.methodology_version,
    payment: unsigned.payment,
    issued_at: unsigned.served_at,
  }
  const sealed = sealEnvelope(envelope)
  return {
    unsigned,
    append: {
      subjectSha256: sealed.sha256,
      label: null,
      requestedBy: REQUESTED_BY,
      companion: {
        kind: completions,
        item: {
          id: request.id,
          attempt: request.attempt,
          unsigned,
          envelope,
          envelopeBase64: sealed.base64,
          settlementHeader: encodeSettlement(request.settlement.response as unknown as SettleResponse),
        },
      },
    },
  }
}

function composeResult(request: WorkingRequest, servedAt: Date): UnsignedResult {
  const { stored, assessment, settlement, body } = request
  if (!stored || !assessment || !settlement) throw new Error(`request ${request.id} is not ready to be completed`)
  const { observation } = stored
  const age = Math.floor((servedAt.getTime() - Date.parse(observation.checked_at)) / 1000)
  const unsigned: UnsignedResult = {
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
    payment: settlement.payment,
  }
  const problem = inconsistency(unsigned)
  if (problem) throw new Error(`request ${request.id}: ${problem}`)
  return unsigned
}

const completions: Companion<Sealed, 'fenced'> = {
  async admit(tx, items) {
    const ready = await tx.anyFirst(sql.prepared('lock_settled', z.object({ id: z.string() }))`
      select r.id::text from verification_requests r
      join unnest(${column(items, 'text', (item) => item.id)}, ${column(items, 'text', (item) => item.attempt)})
        as t (id, attempt) on r.id = t.id::uuid and r.attempt = t.attempt::uuid
      where r.state = 'settled' order by r.id for update of r`)
    const found = new Set(ready)
    return items.map((item) => (found.has(item.id) ? null : new Refused('fenced')))
  },

  async write(tx, entries) {
    const results = entries.map(({ item, attestation }) => {
      const receipt = {
        envelope: item.envelope,
        canonical_envelope_base64: item.envelopeBase64,
        attestation,
        verification: HOW_TO_VERIFY,
      }
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
