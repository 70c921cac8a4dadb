// The record of one verification: its states, the legal moves between them, and its SQL.
//
//   quoted ──► accepted ──► observed ──► assessed ──► settling ──► settled ──► completed
//     │            └────────────┴──► failed              │  ▲                      │
//     │                                                  ▼  └── (paid anew) ── unpaid
//     └──────────────────────────────► expired ◄────────────────────────────────── ┘
//
// Up to `assessed` nothing can have been charged. From `settling` on the authorization may be out of our hands: such a
// request is never failed and never asked to pay again until the payment is proved unpaid.
import { z } from 'zod'
import type { Batcher } from '../db/batch.ts'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { type ErrorCode, errorTable } from '../errors.ts'
import { boundPayment, type SettlementIntent, settlement, settlementIntent } from '../payments/x402.ts'
import { assessment } from './assessment.ts'
import { observation } from './observation.ts'
import { verificationInput } from './result.ts'

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
  observed: ['assessed', 'failed'],
  assessed: ['settling', 'failed'],
  settling: ['settled', 'unpaid'],
  settled: ['completed'],
  completed: ['expired'],
  unpaid: ['assessed', 'expired'],
  failed: [],
  expired: [],
}

/** States in which a job is at work, or must be. */
export const WORKING: readonly State[] = ['accepted', 'observed', 'assessed', 'settling', 'settled']

export const requestError = z.object({ code: z.string(), message: z.string(), retryable: z.boolean() })
export type RequestError = z.output<typeof requestError>

/** What is stored of an observation: what was seen, and whether it had been seen for another request before. */
export const storedObservation = z.object({ observation, cache_hit: z.boolean() })
export type StoredObservation = z.output<typeof storedObservation>

/** A request as a caller meets it: enough to answer with, without the page's text. */
export const requestView = z.object({
  id: z.uuid(),
  state: z.enum(states),
  body_hash: z.string(),
  quote_expires_at: z.date(),
  changed_at: z.date(),
  payment: boundPayment.nullable(),
  error: requestError.nullable(),
})
export type RequestView = z.output<typeof requestView>

/** The columns of `requestView`. */
export const viewColumns = sql.fragment`id, state, encode(body_hash, 'hex') body_hash, quote_expires_at, changed_at, payment, error`

export function findByKey(db: Database, keyHash: Buffer): Promise<RequestView | null> {
  return db.maybeOne(sql.prepared('find_request_by_key', requestView)`
    select ${viewColumns} from verification_requests where key_hash = ${sql.binary(keyHash)}`)
}

export function findById(db: Database, id: string): Promise<RequestView | null> {
  return db.maybeOne(sql.prepared('find_request_by_id', requestView)`
    select ${viewColumns} from verification_requests where id = ${id}`)
}

/** The request that this payer's payment of that name is for, unless it came to nothing. */
export function findByIdentifier(db: Database, payer: string, identifier: string): Promise<RequestView | null> {
  return db.maybeOne(sql.type(requestView)`
    select ${viewColumns} from verification_requests
    where payment #>> '{identity,payer}' = ${payer} and payment ->> 'identifier' = ${identifier}
      and state in ('accepted', 'observed', 'assessed', 'settling', 'settled', 'completed')
    order by created_at limit 1`)
}

/** When a request was first asked for, and when it last moved. */
export const requestTimes = z.object({ created_at: z.date(), changed_at: z.date() })

export function findTimes(db: Database, id: string): Promise<z.output<typeof requestTimes> | null> {
  return db.maybeOne(sql.type(requestTimes)`
    select created_at, changed_at from verification_requests where id = ${id}`)
}

/** The bytes that are served, and the PAYMENT-RESPONSE that goes with them. */
export const storedResult = z.object({
  result: z.instanceof(Buffer),
  settlement_header: z.string().nullable(),
  changed_at: z.date(),
})
export type StoredResult = z.output<typeof storedResult>

export function findResult(db: Database | Tx, id: string): Promise<StoredResult | null> {
  return db.maybeOne(sql.prepared('find_result', storedResult)`
    select result, settlement_header, changed_at from verification_requests where id = ${id} and state = 'completed'`)
}

/** A request as its worker holds it. `attempt` is the token under which this worker may commit. */
export const workingRequest = z.object({
  id: z.uuid(),
  state: z.enum(states),
  attempt: z.uuid(),
  body: verificationInput,
  payment: boundPayment,
  payment_sealed: z.instanceof(Buffer).nullable(),
  stored: storedObservation.nullable(),
  assessment: assessment.nullable(),
  intent: settlementIntent.nullable(),
  settlement: settlement.nullable(),
})
export type WorkingRequest = z.output<typeof workingRequest>

/**
 * Takes the request for one attempt; whoever held it before can commit nothing from here on.
 * Null when there is nothing left to work on.
 */
export function claimRequest(db: Database, id: string, attempt: string): Promise<WorkingRequest | null> {
  return db.maybeOne(sql.prepared('claim_request', workingRequest)`
    update verification_requests set attempt = ${attempt}
    where id = ${id} and state in ('accepted', 'observed', 'assessed', 'settling', 'settled')
    returning id, state, attempt, body, payment, payment_sealed, observation stored, assessment,
              settlement_intent intent, settlement`)
}

/** Whether this attempt still owns the request; if so nobody else can take it before the transaction ends. */
export function holdsRequest(tx: Tx, request: Pick<WorkingRequest, 'id' | 'attempt'>): Promise<boolean> {
  return tx.exists(sql.type(z.object({ held: z.number() }))`
    select 1 held from verification_requests where id = ${request.id} and attempt = ${request.attempt} for update`)
}

/** Another attempt has taken the request, or it has moved on: the caller stops and leaves everything as it is. */
export class Fenced extends Error {
  override name = 'Fenced'
}

/**
 * The transaction that a settlement names has paid for another request already, so this one is not moved to `settled`. It
 * is not known to be paid, nor to be unpaid.
 */
export class TransactionTakenError extends Error {
  override name = 'TransactionTakenError'
}

/** One step of a request, as its worker asks for it. Only the columns the new state adds are given. */
export interface Step {
  id: string
  attempt: string
  from: State
  to: State
  stored?: StoredObservation
  assessment?: z.output<typeof assessment>
  intent?: SettlementIntent
  settlement?: z.output<typeof settlement>
}

/** `transaction_taken`: see TransactionTakenError. */
export type StepOutcome = 'taken' | 'fenced' | 'transaction_taken'

/** Steps of all jobs of a process are committed in groups; answers what became of each. */
export type Steps = Batcher<Step, StepOutcome>

/**
 * Moves the request and answers it in its new state. Throws Fenced, and TransactionTakenError on the way to `settled`.
 * A crash before the commit repeats the stage.
 */
export async function advance(
  steps: Steps,
  request: WorkingRequest,
  to: State,
  added: Pick<Step, 'stored' | 'assessment' | 'intent' | 'settlement'> = {},
): Promise<WorkingRequest> {
  if (!moves[request.state].includes(to)) throw new Error(`no move from ${request.state} to ${to}`)
  const { id, attempt, state: from } = request
  const outcome = await steps.add({ id, attempt, from, to, ...added })
  if (outcome === 'fenced') throw new Fenced(`request ${id} left ${from}`)
  if (outcome === 'transaction_taken') throw new TransactionTakenError(`request ${id} names a transaction of another`)
  return { ...request, state: to, ...added }
}

/**
 * Writes one group of steps; the columns a step does not give stay as they are. What is settled is booked with it, and the
 * payment it was settled with, which could be charged again, is not kept an instant longer.
 *
 * The ledger comes first: a settlement whose transaction, or log of a transaction, is booked already is not booked, and
 * its request stays where it is. The other steps of the group are written all the same.
 */
export async function writeSteps(db: Database, steps: Step[]): Promise<StepOutcome[]> {
  const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value))
  const column = (values: (string | null)[]) => sql.array(values, 'text')
  const written = await db.any(sql.prepared('write_steps', writtenStep)`
    with t as (
      select id::uuid, attempt::uuid, from_state, to_state, stored::json, assessment::json, intent::json, settlement::json
      from unnest(${column(steps.map((s) => s.id))}, ${column(steps.map((s) => s.attempt))},
                  ${column(steps.map((s) => s.from))}, ${column(steps.map((s) => s.to))},
                  ${column(steps.map((s) => json(s.stored)))}, ${column(steps.map((s) => json(s.assessment)))},
                  ${column(steps.map((s) => json(s.intent)))}, ${column(steps.map((s) => json(s.settlement)))})
           as t (id, attempt, from_state, to_state, stored, assessment, intent, settlement)
    ), held as (
      -- Locked, so that what is booked is also moved.
      select r.id, r.payment, t.settlement -> 'payment' paid, t.settlement ->> 'proof' proof,
             (t.settlement ->> 'log_index')::int log_index
      from verification_requests r join t on r.id = t.id and r.attempt = t.attempt and r.state = t.from_state
      where t.to_state = 'settled'
      for update of r
    ), booked as (
      insert into payment_ledger (${ledgerColumns}, outcome, provider, mode, transaction, proof, log_index)
      select ${ledgerValues}, 'settled', paid ->> 'provider', paid ->> 'mode', paid ->> 'transaction', proof, log_index
      from held
      -- A word about a whole transaction does not hold beside any other entry for it.
      where log_index is not null or not exists (
        select 1 from payment_ledger l
        where l.network = payment #>> '{identity,network}' and l.transaction = paid ->> 'transaction')
      on conflict do nothing
      returning request_id
    ), moved as (
      update verification_requests r
      set state = t.to_state, changed_at = now(),
          observation = coalesce(t.stored, r.observation),
          assessment = coalesce(t.assessment, r.assessment),
          settlement_intent = coalesce(t.intent, r.settlement_intent),
          settlement = coalesce(t.settlement, r.settlement),
          payment_sealed = case when t.to_state = 'settled' then null else r.payment_sealed end
      from t
      where r.id = t.id and r.attempt = t.attempt and r.state = t.from_state
        and (t.to_state <> 'settled' or r.id in (select request_id from booked))
      returning r.id
    )
    select id::text, 'taken' outcome from moved
    union all
    select id::text, 'transaction_taken' from held where id not in (select request_id from booked)`)
  const outcomes = new Map(written.map(({ id, outcome }) => [id, outcome]))
  return steps.map(({ id }) => outcomes.get(id) ?? 'fenced')
}

const writtenStep = z.object({ id: z.string(), outcome: z.enum(['taken', 'transaction_taken']) })

const ledgerColumns = sql.fragment`request_id, network, asset, payer, nonce, pay_to, amount_atomic, valid_before`
const ledgerValues = sql.fragment`id, payment #>> '{identity,network}', payment #>> '{identity,asset}',
      payment #>> '{identity,payer}', payment #>> '{identity,nonce}',
      payment #>> '{requirements,payTo}', (payment #>> '{requirements,amount}')::numeric, (payment ->> 'valid_before')::bigint`

/** Ends a request that was not charged and frees its payment authorization. Throws Fenced. */
export async function failRequest(tx: Tx, request: Pick<WorkingRequest, 'id' | 'attempt'>, error: RequestError) {
  const held = sql.fragment`attempt = ${request.attempt} and state in ('accepted', 'observed', 'assessed')`
  if (!(await endUncharged(tx, request.id, held, error)))
    throw new Fenced(`request ${request.id} cannot be failed any more`)
}

/**
 * Takes a paid request back for its caller, whatever worker holds it: that one can commit nothing from here on.
 * Only until its source has been read. Later there is work that was done for money, and giving it up for the asking would
 * let anyone have assessments made that nobody pays for.
 * @returns whether it was taken back
 */
export function cancelRequest(tx: Tx, id: string): Promise<boolean> {
  return endUncharged(tx, id, sql.fragment`state = 'accepted'`, CANCELLED)
}

type Fragment = ReturnType<typeof sql.fragment>

const CANCELLED = requestErrorOf('cancelled', 'The request was cancelled by its caller. Nothing was charged.')

async function endUncharged(tx: Tx, id: string, condition: Fragment, error: RequestError): Promise<boolean> {
  const failed = await tx.any(sql.type(z.object({ id: z.string() }))`
    with failed as (
      update verification_requests
      set state = 'failed', error = ${JSON.stringify(error)}::json, payment_sealed = null, observation = null,
          assessment = null, attempt = null, changed_at = now()
      where id = ${id} and ${condition}
      returning id, payment
    ), booked as (
      insert into payment_ledger (${ledgerColumns}, outcome, reason)
      select ${ledgerValues}, 'failed', ${error.code} from failed
    )
    select id::text from failed`)
  if (failed.length === 0) return false
  await tx.query(sql.type(nothing)`delete from payment_claims where request_id = ${id}`)
  return true
}

/**
 * The payment provably was not charged: work is kept, the authorization is let go, and new terms may be asked for.
 * Throws Fenced.
 */
export async function releasePayment(
  tx: Tx,
  request: Pick<WorkingRequest, 'id' | 'attempt'>,
  { reason, quoteTtlSeconds }: { reason: string; quoteTtlSeconds: number },
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
    )
    select id::text from released`)
  if (released.length === 0) throw new Fenced(`request ${request.id} left settling`)
  await tx.query(sql.type(nothing)`delete from payment_claims where request_id = ${request.id}`)
}

/** Keeps what was learned about a settlement under way, for the attempt that looks for the payment next. */
export async function noteIntent(tx: Tx, request: Pick<WorkingRequest, 'id' | 'attempt'>, intent: SettlementIntent) {
  await tx.query(sql.type(nothing)`
    update verification_requests set settlement_intent = ${JSON.stringify(intent)}::json
    where id = ${request.id} and attempt = ${request.attempt} and state = 'settling'`)
}

/** Forgets what has run out: unpaid quotes, results past retention. What stays answers 410, or the same 422 again. */
export async function pruneRequests(db: Database, retentionSeconds: number): Promise<number> {
  const pruned = await db.query(sql.type(nothing)`
    update verification_requests
    set state = case when state = 'failed' then state else 'expired' end,
        -- A payment that did not settle bought nothing: what ran out is the quote.
        payment = case when state = 'unpaid' then null else payment end,
        body = null, result = null, settlement_header = null, observation = null, assessment = null, settlement = null
    where id in (
      select id from verification_requests
      where (state in ('quoted', 'unpaid') and quote_expires_at < now())
         or (state in ('completed', 'failed') and body is not null
             and changed_at < now() - ${retentionSeconds} * interval '1 second')
      limit 1000 for update skip locked)`)
  return pruned.rowCount
}

/** The error as it is stored and answered. */
export function requestErrorOf(code: ErrorCode, message: string): RequestError {
  return { code, message: message.slice(0, 2000), retryable: errorTable[code].retryable }
}
