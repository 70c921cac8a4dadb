// The last stage of a verification: composes the result, appends its receipt to the chain, and stores the exact bytes that
// every later answer serves. One transaction writes settlement, ledger, receipt, bytes and state (see receipts/chain.ts).
import { z } from 'zod'
import { packed } from '../../db/packed.ts'
import { column, nothing, sql, type Tx } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import { CAPTURE_REQUESTED_BY, composeManifest } from '../../evidence/manifest.ts'
import { manifests } from '../../evidence/store.ts'
import {
  type Attestation,
  attestation as attestationShape,
  type Envelope,
  RECEIPT_TYPE,
} from '../../interface/attestation.ts'
import {
  type ClaimResult,
  claimsResult,
  type PurchaseResult,
  type UnsignedClaimsResult,
} from '../../interface/claims.ts'
import { LIMITS } from '../../interface/limits.ts'
import { SOLANA_MAINNET } from '../../interface/networks.ts'
import type { Payment } from '../../interface/payment.ts'
import { type CompletedResult, completedResult, SCHEMA_VERSION, type UnsignedResult } from '../../interface/result.ts'
import { encodeSettlement } from '../../payments/x402.ts'
import { type Append, type Chain, type Companion, type Participant, Refused } from '../../receipts/chain.ts'
import { canonicalJson, sealEnvelope, sha256 } from '../../receipts/format.ts'
import type { Logger } from '../../telemetry.ts'
import { noted, StaleAttemptError, type WorkingRequest } from '../request.ts'
import {
  bookSettlements,
  commit,
  passedOf,
  type Step,
  type StepOutcome,
  type Steps,
  TransactionTakenError,
  unsavedStep,
} from './steps.ts'

/** `requested_by` of these receipts. The chain is public, so it names the service's role and no page. */
const REQUESTED_BY = 'source-verification'

/** The audit compares it: results of the release before must have the same words. */
export const HOW_TO_VERIFY =
  'Pin the key of attestation.key_id from GET /v1/keys through a channel you trust. ' +
  '(1) Ed25519: sig_ed25519_hex over the RFC 8785 JSON of attestation without receipt_hash and sig_ed25519_hex; ' +
  'receipt_hash is the SHA-256 of those bytes. (2) attestation.subject_sha256 is the SHA-256 of the bytes of ' +
  'canonical_envelope_base64, which are the RFC 8785 JSON of envelope. (3) envelope.result_sha256 is the SHA-256 of the ' +
  'RFC 8785 JSON of this result without its receipt member. (4) Each quote is source.normalized_text from start to end ' +
  'in Unicode code points.'

/** The rows of completed requests in the chain's transactions. */
export type Completions = Participant<Sealed, RefusedCompletion>

type RefusedCompletion = 'stale' | 'transaction_taken'

type Unsigned = UnsignedResult | UnsignedClaimsResult

interface Sealed {
  id: string
  attempt: string
  /** The step to `settled`, unless it was committed before. */
  settled: Step | null
  unsigned: Unsigned
  envelope: Envelope
  envelopeBase64: string
  settlementHeader: string
}

export interface CompletionTools {
  chain: Chain
  completions: Completions
  steps: Steps
}

/**
 * Completes a settled request. Throws StaleAttemptError if another attempt has taken it, TransactionTakenError if its
 * transaction has paid for another request, and an Error if the result breaks the interface. After a crash before the commit
 * the request is still `settling`, or `settled` if that was committed, and has no receipt; the next attempt completes it.
 */
export async function completeRequest(
  request: WorkingRequest,
  { chain, completions, steps }: CompletionTools,
  servedAt: Date,
): Promise<void> {
  try {
    const appended = await chain.append(sealResult(request, completions, servedAt))
    if (!(appended instanceof Refused)) return
    if (appended.reason === 'transaction_taken')
      throw new TransactionTakenError(`request ${request.id} names a transaction of another`)
    throw new StaleAttemptError(`request ${request.id} is not settled under this attempt`)
  } catch (error) {
    if (error instanceof StaleAttemptError || error instanceof TransactionTakenError) throw error
    // The money has moved, so the settlement is kept although there is no receipt yet. If this fails too, the next attempt
    // asks the chain.
    await commit(steps, request).catch(() => {})
    throw error
  }
}

/**
 * Composes the result of an assessed request before its payment is settled, with the longest possible payment and receipt.
 * If that result could not be served, logs why and throws AppError `execution_failed`, so that nothing is charged.
 */
export function assertServable(request: WorkingRequest, log: Logger): void {
  try {
    const unsigned = composeResult(request, LONGEST_PAYMENT, new Date())
    const envelope = envelopeOf(unsigned, NO_DIGEST)
    const { base64 } = sealEnvelope(envelope)
    checkInterface(unsigned, receiptOf({ envelope, envelopeBase64: base64 }, LONGEST_ATTESTATION))
  } catch (cause) {
    log.error({ event: 'unservable_result', request_id: request.id, err: cause })
    throw new AppError('execution_failed', 'The result does not fit the interface. Nothing was charged.', { cause })
  }
}

function sealResult(
  request: WorkingRequest,
  completions: Completions,
  servedAt: Date,
): Append<Sealed, RefusedCompletion> {
  if (!request.settlement) throw new Error(`request ${request.id} has no settlement`)
  const unsigned = composeResult(request, request.settlement.payment, servedAt)
  const resultSha256 = sha256(canonicalJson(unsigned))
  const envelope = envelopeOf(unsigned, resultSha256)
  const companion = sealManifest(request, unsigned, resultSha256)
  const sealed = sealEnvelope(envelope)
  const parts = { envelope, envelopeBase64: sealed.base64 }
  checkInterface(unsigned, receiptOf(parts, LONGEST_ATTESTATION))
  return {
    subjectSha256: sealed.sha256,
    label: null,
    requestedBy: REQUESTED_BY,
    participant: {
      kind: completions,
      item: {
        id: request.id,
        attempt: request.attempt,
        settled: unsavedStep(request),
        unsigned,
        ...parts,
        settlementHeader: encodeSettlement(request.settlement.response),
      },
    },
    ...(companion && { companion }),
  }
}

/** The manifest of what was kept of the page. It gets no receipt if it has one already, from an earlier request on the same observation. */
function sealManifest({ stored }: WorkingRequest, unsigned: Unsigned, resultSha256: string): Companion | null {
  if (!stored?.capture) return null
  const bytes = composeManifest(stored.capture, unsigned, stored.observation, resultSha256)
  return {
    subjectSha256: sha256(bytes),
    label: null,
    requestedBy: CAPTURE_REQUESTED_BY,
    participant: { kind: manifests, item: { captureId: stored.capture.id, bytes } },
  }
}

function envelopeOf(unsigned: Unsigned, resultSha256: string): Envelope {
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

/** Throws an Error that names the members that break the interface, without their values. */
function checkInterface(unsigned: Unsigned, receipt: CompletedResult['receipt']): void {
  const schema = unsigned.verification_type === 'source' ? completedResult : claimsResult
  const { error } = schema.safeParse({ ...unsigned, receipt })
  if (!error) return
  const problems = error.issues.map(({ path, message }) => `${path.join('.') || 'result'}: ${message}`)
  throw new Error(`request ${unsigned.request_id}: ${problems.slice(0, MAX_PROBLEMS).join('; ')}`)
}

function composeResult(request: WorkingRequest, payment: Payment, servedAt: Date): Unsigned {
  const { body, stored, assessment } = request
  if (!stored || !assessment) throw new Error(`request ${request.id} is not ready to be completed`)
  const { observation } = stored
  const age = Math.floor((servedAt.getTime() - Date.parse(observation.checked_at)) / 1000)
  const flagsWith = (own: readonly string[]) =>
    [...new Set([...observation.risk_flags, ...own])].sort().slice(0, LIMITS.riskFlags)
  const begin = { schema_version: SCHEMA_VERSION, request_id: request.id, status: 'completed' } as const
  const page = {
    source: { requested_url: body.source_url, ...observation.source },
    reachable: true,
    source_identity: observation.source_identity,
  } as const
  const end = {
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
  if ('claims' in body && 'claims' in assessment) {
    const claims = body.claims.map((claim, i): ClaimResult => {
      const found = assessment.claims[i]
      if (!found) throw new Error(`request ${request.id} has a claim without an assessment`)
      return { claim, ...found, risk_flags: flagsWith(found.risk_flags) }
    })
    const { context } = body
    const about = { ...(context !== undefined && { context }), claims, confidence: null }
    return { ...begin, verification_type: 'source_claims', ...page, ...about, ...end }
  }
  if ('claims' in body || 'claims' in assessment)
    throw new Error(`request ${request.id} has an assessment of another kind`)
  return {
    ...begin,
    verification_type: 'source',
    ...page,
    claim: body.claim,
    claim_support: assessment.claim_support,
    assessment_scope: assessment.assessment_scope,
    explanation: assessment.explanation,
    confidence: null,
    evidence: assessment.evidence,
    risk_flags: flagsWith(assessment.risk_flags),
    ...end,
  }
}

/** @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER: each settlement raises its payer's limit */
export function buildCompletions(maxInFlightPerPayer: number): Completions {
  return { check: (tx, items) => lockSettled(tx, items, maxInFlightPerPayer), apply: storeResults }
}

async function lockSettled(tx: Tx, items: Sealed[], maxInFlightPerPayer: number) {
  const steps = items.flatMap(({ settled }) => settled ?? [])
  const outcomes = steps.length > 0 ? await bookSettlements(tx, steps, maxInFlightPerPayer) : []
  const having = (wanted: StepOutcome) => new Set(steps.filter((_, n) => outcomes[n] === wanted).map(({ id }) => id))
  // The row of a step that was taken is locked, and held by this attempt; it is written once, with its result.
  const ready = having('taken')
  const others = items.filter(({ id }) => !ready.has(id))
  for (const id of others.length > 0 ? await lockOthers(tx, others) : []) ready.add(id)
  const taken = having('transaction_taken')
  return items.map(({ id }) => {
    if (ready.has(id)) return null
    return new Refused<RefusedCompletion>(taken.has(id) ? 'transaction_taken' : 'stale')
  })
}

/** Answers the ids of those that are settled under their attempt. */
function lockOthers(tx: Tx, items: Sealed[]) {
  return tx.anyFirst(sql.prepared('lock_settled', z.object({ id: z.string() }))`
    select r.id::text from verification_requests r
    join unnest(${column(items, 'text', (item) => item.id)}, ${column(items, 'text', (item) => item.attempt)})
      as t (id, attempt) on r.id = t.id::uuid and r.attempt = t.attempt::uuid
    where r.state = 'settled' order by r.id for update of r`)
}

async function storeResults(tx: Tx, entries: { item: Sealed; attestation: Attestation }[]) {
  const results = packed(
    entries.map(({ item, attestation }) => {
      const receipt = receiptOf(item, attestationShape.parse(attestation))
      return Buffer.from(JSON.stringify({ ...item.unsigned, receipt } satisfies PurchaseResult))
    }),
  )
  const now = Date.now()
  const settlements = column(entries, 'text', ({ item: { settled } }) => settled && JSON.stringify(settled.settlement))
  const passed = column(entries, 'text', ({ item: { settled } }) =>
    JSON.stringify(settled ? passedOf(settled, now) : []),
  )
  await tx.query(sql.prepared('complete_requests', nothing)`
    update verification_requests r
    set state = 'completed', result = substr(${results.bytes}, t.start, t.length), settlement_header = t.header,
        changed_at = now(), history = ${noted(sql.fragment`'completed'`, sql.fragment`t.passed::jsonb`)},
        settlement = coalesce(t.settlement::json, r.settlement), payment_sealed = null,
        observation = null, assessment = null, attempt = null
    from unnest(${column(entries, 'text', (e) => e.item.id)}, ${results.starts}, ${results.lengths},
              ${column(entries, 'text', (e) => e.item.settlementHeader)}, ${settlements}, ${passed})
      as t (id, start, length, header, settlement, passed)
    where r.id = t.id::uuid`)
}

const MAX_PROBLEMS = 8
const NO_DIGEST = '0'.repeat(64)
const LONGEST_USD = `${'9'.repeat(25)}.999999`
const EPOCH = new Date(0).toISOString()

/**
 * Every text has its maximal length, in characters that are longest in JSON: a result that fits with this payment fits with
 * every payment.
 */
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
