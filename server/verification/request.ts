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
// A final failure stays `failed`. A quote that no payment was ever bound to is deleted an hour after its expiry; every
// other row stays.
// Up to `assessed` nothing can have been charged. From `settling` on the authorization may be out of our hands: such a
// request is never failed and never asked to pay again until the payment is proved unpaid.
import { z } from 'zod'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { AppError, sayUncharged } from '../errors.ts'
import { assessment } from '../interface/assessment.ts'
import { observation } from '../interface/observation.ts'
import { verificationInput } from '../interface/result.ts'
import { boundPayment, type SettlementIntent, settlement, settlementIntent } from '../payments/x402.ts'
import { lowerPayer } from './payer-limits.ts'

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

/** From each state, the states it may move to. The CHECK constraints of the table say the same of the columns. */
export const moves: Readonly<Record<State, readonly State[]>> = {
  quoted: ['accepted', 'expired'],
  accepted: ['observed', 'failed'],
  // A shared observation that has grown too old is made anew.
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
 * Whether a payment may be bound to it: its terms still hold, or its last attempt failed in a way that may pass. `payable` in
 * admission.ts says the same in SQL.
 */
export function isPayable(row: Pick<RequestView, 'state' | 'quote_expires_at' | 'error'>, nowMs: number): boolean {
  if (row.state === 'failed') return row.error?.retryable === true
  return (row.state === 'quoted' || row.state === 'unpaid') && row.quote_expires_at.getTime() > nowMs
}

/** States in which a job is at work, or must be. */
export const WORKING: readonly State[] = ['accepted', 'observed', 'assessed', 'settling', 'settled']

export const requestError = z.object({ code: z.string(), message: z.string(), retryable: z.boolean() })
export type RequestError = z.output<typeof requestError>

/** What is stored of an observation: what was seen, and whether it had been seen for another request before. */
export const storedObservation = z.object({ observation, cache_hit: z.boolean() })
export type StoredObservation = z.output<typeof storedObservation>

/** Why the work on a request is put off, and until when. */
export const waiting = z.object({
  for: z.enum(['origin', 'model', 'settlement']),
  /** When the request is looked at again at the latest. */
  until: z.iso.datetime(),
  /** The host that is waited for. */
  host: z.string().optional(),
  /** Seconds the host asked for, as it gave them. */
  asked_seconds: z.number().optional(),
})
export type Waiting = z.output<typeof waiting>

/** A request as a caller meets it: enough to answer with, without the page's text. */
export const requestView = z.object({
  id: z.uuid(),
  state: z.enum(states),
  body_hash: z.string(),
  quote_expires_at: z.date(),
  changed_at: z.date(),
  payment: boundPayment.nullable(),
  error: requestError.nullable(),
  waiting: waiting.nullable(),
})
export type RequestView = z.output<typeof requestView>

/** The columns of `requestView`. */
export const viewColumns = sql.fragment`id, state, encode(body_hash, 'hex') body_hash, quote_expires_at, changed_at, payment, error, waiting`

/** A request as its worker holds it. `attempt` is the token under which this worker may commit. */
export const workingRequest = z.object({
  id: z.uuid(),
  state: z.enum(states),
  attempt: z.uuid(),
  /** When it came to the state it is in. */
  changed_at: z.date(),
  body: verificationInput,
  payment: boundPayment,
  payment_sealed: z.instanceof(Buffer).nullable(),
  stored: storedObservation.nullable(),
  assessment: assessment.nullable(),
  intent: settlementIntent.nullable(),
  settlement: settlement.nullable(),
  /** Of its job, while no work was done on it. */
  priority: z.number(),
})
export type WorkingRequest = z.output<typeof workingRequest>

/**
 * Takes the request for one attempt; whoever held it before can commit nothing from here on.
 * Null when there is nothing left to work on.
 */
export function claimRequest(db: Database, id: string, attempt: string): Promise<WorkingRequest | null> {
  return db.maybeOne(sql.prepared('claim_request', workingRequest)`
    update verification_requests set attempt = ${attempt}, waiting = null
    where id = ${id} and state in ('accepted', 'observed', 'assessed', 'settling', 'settled')
    returning id, state, attempt, changed_at, body, payment, payment_sealed, observation stored, assessment,
              settlement_intent intent, settlement, priority`)
}

/** Whether this attempt still owns the request; if so nobody else can take it before the transaction ends. */
export function holdsRequest(tx: Tx, request: Pick<WorkingRequest, 'id' | 'attempt'>): Promise<boolean> {
  return tx.exists(sql.type(z.object({ held: z.number() }))`
    select 1 held from verification_requests where id = ${request.id} and attempt = ${request.attempt} for update`)
}

/** Another attempt has taken the request, or it has moved on: the caller stops and leaves everything as it is. */
export class StaleAttemptError extends Error {
  override name = 'StaleAttemptError'
}

/** What every entry of the ledger says of a payment, and where a request has it. */
export const ledgerColumns = sql.fragment`request_id, network, asset, payer, nonce, pay_to, amount_atomic, valid_before`
export const ledgerValues = sql.fragment`id, payment #>> '{identity,network}', payment #>> '{identity,asset}',
      payment #>> '{identity,payer}', payment #>> '{identity,nonce}',
      payment #>> '{requirements,payTo}', (payment #>> '{requirements,amount}')::numeric, (payment ->> 'valid_before')::bigint`

/**
 * Ends a request that was not charged and frees its payment authorization; its payer may have less in flight from then on.
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
    throw new StaleAttemptError(`request ${request.id} cannot be failed any more`)
}

/**
 * Takes a paid request back for its caller, whatever worker holds it: that one can commit nothing from here on.
 * Only until its source has been read. Later there is work that was done for money, and giving it up for the asking would
 * let anyone have assessments made that nobody pays for. It counts against its payer once a worker has taken it up.
 * @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER
 * @returns whether it was taken back
 */
export function cancelRequest(tx: Tx, id: string, maxInFlightPerPayer: number): Promise<boolean> {
  return endUncharged(tx, id, sql.fragment`state = 'accepted'`, CANCELLED, maxInFlightPerPayer)
}

type Fragment = ReturnType<typeof sql.fragment>

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
      set state = 'failed', error = ${JSON.stringify(error)}::json, payment_sealed = null, observation = null, waiting = null,
          assessment = null, attempt = null, changed_at = now()
      from held where r.id = held.id
      returning r.id, r.payment, held.attempt is not null begun
    ), booked as (
      insert into payment_ledger (${ledgerColumns}, outcome, reason)
      select ${ledgerValues}, 'failed', ${error.code} from failed
    ), lowered as (
      ${lowerPayer(sql.fragment`failed where begun`, maxInFlightPerPayer)}
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
 * The payment provably was not charged: work is kept, the authorization is let go, and new terms may be asked for. It counts
 * against the payer, for whom the work was done. Throws StaleAttemptError.
 */
export async function releasePayment(
  tx: Tx,
  request: Pick<WorkingRequest, 'id' | 'attempt'>,
  { reason, quoteTtlSeconds, maxInFlightPerPayer }: Release,
) {
  const released = await tx.any(sql.type(z.object({ id: z.string() }))`
    with released as (
      update verification_requests
      set state = 'unpaid', payment_sealed = null, attempt = null, changed_at = now(),
          quote_expires_at = now() + ${quoteTtlSeconds} * interval '1 second'
      where id = ${request.id} and attempt = ${request.attempt} and state = 'settling'
      returning id, payment
    ), booked as (
      insert into payment_ledger (${ledgerColumns}, outcome, reason)
      select ${ledgerValues}, 'unpaid', ${reason} from released
    ), lowered as (
      ${lowerPayer(sql.fragment`released`, maxInFlightPerPayer)}
    )
    select id::text from released`)
  if (released.length === 0) throw new StaleAttemptError(`request ${request.id} left settling`)
  await tx.query(sql.type(nothing)`delete from payment_claims where request_id = ${request.id}`)
}

/** Keeps what was learned about a settlement under way, for the attempt that looks for the payment next. */
export async function noteIntent(tx: Tx, request: Pick<WorkingRequest, 'id' | 'attempt'>, intent: SettlementIntent) {
  await tx.query(sql.type(nothing)`
    update verification_requests set settlement_intent = ${JSON.stringify(intent)}::json
    where id = ${request.id} and attempt = ${request.attempt} and state = 'settling'`)
}

/** Keeps what the request waits for, for the answer to its caller. */
export async function noteWaiting(tx: Tx, request: Pick<WorkingRequest, 'id' | 'attempt'>, waits: Waiting) {
  await tx.query(sql.type(nothing)`
    update verification_requests set waiting = ${JSON.stringify(waits)}::json
    where id = ${request.id} and attempt = ${request.attempt}`)
}

/** The error as it is stored and answered. */
export function requestErrorOf({ code, message, retryable }: AppError): RequestError {
  return { code, message: sayUncharged(message), retryable }
}
