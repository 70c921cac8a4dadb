// The record of one verification: its states, the legal moves between them, and its SQL.
//
//   quoted ──► accepted ──► observed ──► assessed ──► settling ──► settled ──► completed
//     │         ▲   │           │          │   ▲          │                        │
//     │         │   ▼           ▼          ▼   │          ▼                        │
//     │         └─ failed ◄────────────────┘   └─────── unpaid                     │
//     │      (paid anew,                   (paid anew)    │                        │
//     │       if retryable)                               │                        │
//     └─────────────────────────────► expired ◄───────────┴────────────────────────┘
//
// A final failure stays `failed`. A quote that never had a payment is deleted an hour after its expiry; a request whose
// payment charged nothing, after UNCHARGED_DAYS; every other row is kept.
// Up to `assessed` nothing can have been charged. From `settling` on the facilitator may have the authorization: such a
// request never fails, and no new payment is asked for it until this payment is proved unpaid.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { captureDigests } from '../../workers/retrieval/capture.ts'
import type { Batcher } from '../db/batch.ts'
import { column, type Database, nothing, relaxed, sql, type Tx } from '../db/pool.ts'
import { AppError, sayUncharged } from '../errors.ts'
import { type PurchaseAssessment, purchaseAssessment, purchaseBody } from '../interface/claims.ts'
import { observation } from '../interface/observation.ts'
import { boundPayment, type SettlementIntent, settlement, settlementIntent } from '../payments/x402.ts'
import { type Fragment, lowerPayerLimit } from './admission/payer-limits.ts'

export const states = [
  'quoted',
  'accepted',
  'observed',
  'assessed',
  'settling',
  'settled',
  'completed',
  'unpaid',
  'failed',
  'expired',
] as const
export type State = (typeof states)[number]

/** The states that may follow each state. The CHECK constraints of the table hold the columns to the same rules. */
export const moves: Readonly<Record<State, readonly State[]>> = {
  quoted: ['accepted', 'expired'],
  accepted: ['observed', 'failed'],
  // An observation from the cache that became too old is replaced.
  observed: ['observed', 'assessed', 'failed'],
  assessed: ['observed', 'assessed', 'settling', 'failed'],
  settling: ['settled', 'unpaid'],
  settled: ['completed'],
  completed: ['expired'],
  unpaid: ['assessed', 'expired'],
  failed: ['accepted'],
  expired: [],
}

/**
 * Whether a payment may be bound to the request: its terms are valid, or its last attempt failed and is retryable. `payable`
 * in admission.ts is the same rule in SQL.
 */
export function isPayable(row: Pick<RequestView, 'state' | 'quote_expires_at' | 'error'>, nowMs: number): boolean {
  if (row.state === 'failed') return row.error?.retryable === true
  return (row.state === 'quoted' || row.state === 'unpaid') && row.quote_expires_at.getTime() > nowMs
}

/** States in which the request must have a job. */
export const WORKING: readonly State[] = ['accepted', 'observed', 'assessed', 'settling', 'settled']

export function isWorking(state: State): boolean {
  return WORKING.includes(state)
}

const requestError = z.object({ code: z.string(), message: z.string(), retryable: z.boolean() })
export type RequestError = z.output<typeof requestError>

/** Entries of a history that are kept; the migration says the same. */
const MAX_HISTORY = 50

/**
 * The new value of the column `history` of a row `r` that moves to this state. Its process is the name of the connection.
 * Every statement that moves a request sets it.
 * @param passed jsonb: states that it passed since its last commit, `{state, ms_ago}`, oldest first
 */
export const noted = (state: Fragment, passed: Fragment = sql.fragment`'[]'::jsonb`) => sql.fragment`
  jsonb_path_query_array(
    coalesce(r.history, '[]')
    || (select coalesce(jsonb_agg(jsonb_build_object('state', p ->> 'state',
                 'at', now() - (p ->> 'ms_ago')::float8 * interval '1 millisecond',
                 'by', current_setting('application_name'))), '[]') from jsonb_array_elements(${passed}) p)
    || jsonb_build_object('state', ${state}, 'at', now(), 'by', current_setting('application_name')),
    ${`$[last - ${MAX_HISTORY - 1} to last]`}::jsonpath)`

/**
 * An observation as it is stored. `cache_hit`: it was made for another request before. `capture`: what was kept of its page; its id is in
 * the column `capture_id` too, which outlives the observation.
 */
const storedObservation = z.object({ observation, cache_hit: z.boolean(), capture: captureDigests.optional() })
export type StoredObservation = z.output<typeof storedObservation>

/** Why and until when the work on a request is put off. */
export const waiting = z.object({
  for: z.enum(['origin', 'model', 'settlement']),
  /** The latest time at which work on the request continues. */
  until: z.iso.datetime(),
  /** The host for which the request waits. */
  host: z.string().optional(),
  /** The seconds that the host asked for. */
  asked_seconds: z.number().optional(),
})
export type Waiting = z.output<typeof waiting>

/** The columns of a request that answers to its caller are made from. The text of the page is not among them. */
export const requestView = z.object({
  id: z.uuid(),
  state: z.enum(states),
  body_hash: z.string(),
  /** How many claims a purchase of verify-claims has; null for one of verify-source. */
  claims: z.number().nullable(),
  quote_expires_at: z.date(),
  changed_at: z.date(),
  payment: boundPayment.nullable(),
  error: requestError.nullable(),
  waiting: waiting.nullable(),
})
export type RequestView = z.output<typeof requestView>

/** The columns of `requestView`. */
export const viewColumns = sql.fragment`id, state, encode(body_hash, 'hex') body_hash, claims, quote_expires_at, changed_at, payment, error, waiting`

/** A request as its worker holds it. `attempt` is the token with which this worker may commit. */
const workingRequest = z.object({
  id: z.uuid(),
  state: z.enum(states),
  attempt: z.uuid(),
  /** When the request entered its state. */
  changed_at: z.date(),
  /** When its payment was bound. */
  accepted_at: z.date(),
  body: purchaseBody,
  payment: boundPayment,
  payment_sealed: z.instanceof(Buffer).nullable(),
  stored: storedObservation.nullable(),
  assessment: purchaseAssessment.nullable(),
  intent: settlementIntent.nullable(),
  settlement: settlement.nullable(),
  /** Priority of its job until the first stage is done. */
  priority: z.number(),
  /** The span in which its payment was bound; null where that was not traced. */
  traceparent: z.string().nullable(),
  tracestate: z.string().nullable(),
})

/** `state` is where the work on the request is. */
export interface WorkingRequest extends z.output<typeof workingRequest> {
  /** What the work has added since the last commit; absent when the database holds everything. */
  unsaved?: Unsaved | undefined
}

/** The state that the database still holds, and the columns that the next commit adds. */
export interface Unsaved {
  since: State
  /** The states since then but for the present one, oldest first, with the milliseconds since the epoch. */
  passed: { state: State; at: number }[]
  /** When it entered the present one. */
  at: number
  stored?: StoredObservation
  assessment?: PurchaseAssessment
  intent?: SettlementIntent
  settlement?: z.output<typeof settlement>
}

export interface Claim {
  id: string
  attempt: string
}

/** Takes the requests of all jobs of a process in groups. */
export type Claims = Batcher<Claim, object | null>

/** Takes the request for a new attempt; null when no work is left. Throws a ZodError for a row that it cannot read. */
export async function claimRequest(
  claims: Pick<Claims, 'add'>,
  id: string,
  attempt: string = randomUUID(),
): Promise<WorkingRequest | null> {
  const row = await claims.add({ id, attempt })
  return row && workingRequest.parse(row)
}

/**
 * Answers the row of each request, or null where no work is left. The rows are not parsed here: one that cannot be read must
 * not fail the others. Takes each request for one attempt; an earlier attempt can commit nothing from here on. If a crash of the
 * database loses the claim, this attempt can commit nothing either.
 */
export async function claimRequests(db: Database, claims: readonly Claim[]): Promise<(object | null)[]> {
  const claimed = await db.any(sql.prepared('claim_requests', z.looseObject({ attempt: z.string() }))`
    with ${relaxed}
    update verification_requests r set attempt = t.attempt::uuid, waiting = null
    from relaxed, unnest(${column(claims, 'text', (claim) => claim.id)},
                         ${column(claims, 'text', (claim) => claim.attempt)}) as t (id, attempt)
    where r.id = t.id::uuid and r.state in ('accepted', 'observed', 'assessed', 'settling', 'settled')
    returning r.id, r.state, r.attempt, r.changed_at, coalesce(r.accepted_at, r.changed_at) accepted_at, r.body, r.payment, r.payment_sealed,
              r.observation stored, r.assessment, r.settlement_intent intent, r.settlement, r.priority, r.traceparent, r.tracestate`)
  const requests = new Map(claimed.map((request) => [request.attempt, request]))
  return claims.map(({ attempt }) => requests.get(attempt) ?? null)
}

/** Whether this attempt still owns the request. If so, no other attempt can take it before the transaction ends. */
export function holdsRequest(tx: Tx, request: Pick<WorkingRequest, 'id' | 'attempt'>): Promise<boolean> {
  return tx.exists(sql.type(z.object({ held: z.number() }))`
    select 1 held from verification_requests where id = ${request.id} and attempt = ${request.attempt} for update`)
}

/** Another attempt has taken the request, or its state changed: the caller stops and changes nothing. */
export class StaleAttemptError extends Error {
  override name = 'StaleAttemptError'
}

/** The payment columns of a ledger entry, and the values for them in a row of `verification_requests`. */
export const ledgerColumns = sql.fragment`request_id, network, asset, payer, nonce, pay_to, amount_atomic, valid_before`
export const ledgerValues = sql.fragment`id, payment #>> '{identity,network}', payment #>> '{identity,asset}',
      payment #>> '{identity,payer}', payment #>> '{identity,nonce}',
      payment #>> '{requirements,payTo}', (payment #>> '{requirements,amount}')::numeric, (payment ->> 'valid_before')::bigint`

/**
 * Fails a request that was not charged, frees its payment authorization, and lowers its payer's limit unless the service was
 * too busy.
 * Throws StaleAttemptError.
 * @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER
 */
export async function failRequest(
  tx: Tx,
  request: Pick<WorkingRequest, 'id' | 'attempt'>,
  error: RequestError,
  maxInFlightPerPayer: number,
) {
  const held = sql.fragment`attempt = ${request.attempt} and state in ('accepted', 'observed', 'assessed')`
  if (!(await endUncharged(tx, request.id, held, error, maxInFlightPerPayer)))
    throw new StaleAttemptError(`request ${request.id} can no longer be failed`)
}

/**
 * Cancels a paid request for its caller; a worker that holds it can commit nothing from here on. Only a request whose source
 * has not been read is cancelled: later ones would let callers order assessments without paying for them. A request that a
 * worker has begun lowers its payer's limit.
 * @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER
 * @returns whether the request was cancelled
 */
export function cancelRequest(tx: Tx, id: string, maxInFlightPerPayer: number): Promise<boolean> {
  return endUncharged(tx, id, sql.fragment`state = 'accepted'`, CANCELLED, maxInFlightPerPayer)
}

/**
 * Cancels a paid request for the operator, at any stage at which it cannot have been charged. A worker that holds it can commit
 * nothing from here on.
 * @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER
 * @returns whether the request was cancelled
 */
export function cancelByOperator(tx: Tx, id: string, maxInFlightPerPayer: number): Promise<boolean> {
  const uncharged = sql.fragment`state in ('accepted', 'observed', 'assessed')`
  return endUncharged(tx, id, uncharged, CANCELLED_BY_OPERATOR, maxInFlightPerPayer)
}

const CANCELLED_BY_OPERATOR = requestErrorOf(
  new AppError('cancelled', 'The request was cancelled by the operator of the service.'),
)
const CANCELLED = requestErrorOf(new AppError('cancelled', 'The request was cancelled by its caller.'))

async function endUncharged(
  tx: Tx,
  id: string,
  condition: Fragment,
  error: RequestError,
  maxInFlightPerPayer: number,
): Promise<boolean> {
  const failed = await tx.any(sql.type(z.object({ id: z.string() }))`
    with held as (
      select id, attempt from verification_requests where id = ${id} and ${condition} for update
    ), failed as (
      update verification_requests r
      set state = 'failed', error = ${JSON.stringify(error)}::json, payment_sealed = null, observation = null, capture_id = null, waiting = null,
          assessment = null, attempt = null, changed_at = now(), history = ${noted(sql.fragment`'failed'`)}
      from held where r.id = held.id
      returning r.id, r.payment, held.attempt is not null begun
    ), booked as (
      insert into payment_ledger (${ledgerColumns}, outcome, reason)
      select ${ledgerValues}, 'failed', ${error.code} from failed
    ), lowered as (
      ${lowerPayerLimit(sql.fragment`failed where begun and ${error.code !== 'capacity_exceeded'}`, maxInFlightPerPayer)}
    )
    select id::text from failed`)
  if (failed.length === 0) return false
  await tx.query(sql.type(nothing)`delete from payment_claims where request_id = ${id}`)
  return true
}

interface Release {
  reason: string
  quoteTtlSeconds: number
  /** MAX_IN_FLIGHT_PER_PAYER. */
  maxInFlightPerPayer: number
}

/**
 * For a payment that provably was not charged: keeps the work, frees the authorization, makes the request payable again, and
 * lowers the payer's limit. Throws StaleAttemptError.
 */
export async function releasePayment(
  tx: Tx,
  request: Pick<WorkingRequest, 'id' | 'attempt'>,
  { reason, quoteTtlSeconds, maxInFlightPerPayer }: Release,
) {
  const released = await tx.any(sql.type(z.object({ id: z.string() }))`
    with released as (
      update verification_requests r
      set state = 'unpaid', payment_sealed = null, attempt = null, changed_at = now(),
          history = ${noted(sql.fragment`'unpaid'`)},
          quote_expires_at = now() + ${quoteTtlSeconds} * interval '1 second'
      where id = ${request.id} and attempt = ${request.attempt} and state = 'settling'
      returning id, payment
    ), booked as (
      insert into payment_ledger (${ledgerColumns}, outcome, reason)
      select ${ledgerValues}, 'unpaid', ${reason} from released
    ), lowered as (
      ${lowerPayerLimit(sql.fragment`released`, maxInFlightPerPayer)}
    )
    select id::text from released`)
  if (released.length === 0) throw new StaleAttemptError(`request ${request.id} left settling`)
  await tx.query(sql.type(nothing)`delete from payment_claims where request_id = ${request.id}`)
}

/** Stores what was learned about a settlement under way, for the attempt that looks for the payment next. */
export async function storeIntent(tx: Tx, request: Pick<WorkingRequest, 'id' | 'attempt'>, intent: SettlementIntent) {
  await tx.query(sql.type(nothing)`
    update verification_requests set settlement_intent = ${JSON.stringify(intent)}::json
    where id = ${request.id} and attempt = ${request.attempt} and state = 'settling'`)
}

/** Stores what the request waits for, for the answer to its caller. */
export async function storeWaiting(tx: Tx, request: Pick<WorkingRequest, 'id' | 'attempt'>, waits: Waiting) {
  await tx.query(sql.type(nothing)`
    update verification_requests set waiting = ${JSON.stringify(waits)}::json
    where id = ${request.id} and attempt = ${request.attempt}`)
}

/** The error as it is stored and answered. */
export function requestErrorOf({ code, message, retryable }: AppError): RequestError {
  return { code, message: sayUncharged(message), retryable }
}
