// The steps of requests through their states, written for many requests at once. A step to `settled` writes the ledger too,
// and is refused if its transaction has paid for another request.
import { z } from 'zod'
import type { Batcher } from '../../db/batch.ts'
import { type Database, sql, type Tx } from '../../db/pool.ts'
import type { PurchaseAssessment } from '../../interface/claims.ts'
import type { SettlementIntent, settlement } from '../../payments/x402.ts'
import { raisePayerLimits } from '../admission/payer-limits.ts'
import {
  ledgerColumns,
  ledgerValues,
  moves,
  noted,
  StaleAttemptError,
  type State,
  type StoredObservation,
  type WorkingRequest,
} from '../request.ts'

/**
 * The transaction of a settlement has paid for another request already, so this request is not moved to `settled`. Whether
 * it is paid is not known.
 */
export class TransactionTakenError extends Error {
  override name = 'TransactionTakenError'
}

/** One step of a request. Holds only the columns that the new state adds. */
export interface Step {
  id: string
  attempt: string
  from: State
  to: State
  /** As in Unsaved. */
  passed?: { state: State; at: number }[]
  stored?: StoredObservation
  assessment?: PurchaseAssessment
  intent?: SettlementIntent
  settlement?: z.output<typeof settlement>
}

/** `stale`: the attempt no longer owns the request. `transaction_taken`: see TransactionTakenError. */
export type StepOutcome = 'taken' | 'stale' | 'transaction_taken'

/** Commits the steps of all jobs of a process in groups; answers the outcome of each. */
export type Steps = Batcher<Step, StepOutcome>

type Added = Pick<Step, 'stored' | 'assessment' | 'intent' | 'settlement'>

/** The request in its next state, in this process only: after a crash before the next `commit` the stage is repeated. */
export function enter(request: WorkingRequest, to: State, added: Added = {}): WorkingRequest {
  if (!moves[request.state].includes(to)) throw new Error(`no move from ${request.state} to ${to}`)
  const { state: from, unsaved: before } = request
  const passed = before ? [...before.passed, { state: from, at: before.at }] : []
  const unsaved = { since: from, ...before, passed, at: Date.now(), ...added }
  return { ...request, ...(to === 'observed' && { assessment: null }), state: to, ...added, unsaved }
}

/**
 * Commits what the request has entered since its last commit, as one step. Throws StaleAttemptError, and
 * TransactionTakenError for a step to `settled`.
 */
export async function commit(steps: Steps, request: WorkingRequest): Promise<WorkingRequest> {
  const step = unsavedStep(request)
  if (!step) return request
  const outcome = await steps.add(step)
  if (outcome === 'stale') throw new StaleAttemptError(`request ${request.id} left ${step.from}`)
  if (outcome === 'transaction_taken')
    throw new TransactionTakenError(`request ${request.id} names a transaction of another`)
  return { ...request, unsaved: undefined }
}

/** The step that is left to be committed, or null. */
export function unsavedStep({ id, attempt, state: to, unsaved }: WorkingRequest): Step | null {
  if (!unsaved) return null
  const { since: from, at: _entered, ...added } = unsaved
  return { id, attempt, from, to, ...added }
}

/** Enters the state and commits it. */
export async function advance(
  steps: Steps,
  request: WorkingRequest,
  to: State,
  added?: Added,
): Promise<WorkingRequest> {
  return commit(steps, enter(request, to, added))
}

/** For `noted`: the states that the step passed. @param now milliseconds since the epoch */
function agesOf({ passed = [] }: Step, now: number) {
  return passed.map(({ state, at }) => ({ state, ms_ago: now - at }))
}

/** As agesOf, and the state of the step itself, which is passed when the request is written in the next one. */
export function passedOf(step: Step, now: number) {
  return [...agesOf(step, now), { state: step.to, ms_ago: 0 }]
}

/**
 * CTEs for a statement with steps `t` (id, attempt, from_state, to_state, settlement). `held` has the rows that go to `settled`, and
 * `booked` the ids of those that got their entry in the ledger.
 */
const booking = sql.fragment`held as (
      -- Locked, so that a request with a new ledger entry is also moved.
      select r.id, r.payment, t.settlement -> 'payment' paid, t.settlement ->> 'proof' proof,
             (t.settlement ->> 'log_index')::int log_index
      from verification_requests r join t on r.id = t.id and r.attempt = t.attempt and r.state = t.from_state
      where t.to_state = 'settled'
      for update of r
    ), booked as (
      insert into payment_ledger (${ledgerColumns}, outcome, provider, mode, transaction, proof, log_index)
      select ${ledgerValues}, 'settled', paid ->> 'provider', paid ->> 'mode', paid ->> 'transaction', proof, log_index
      from held
      -- Without a log index the settlement claims the whole transaction, so no other entry may name it.
      where log_index is not null or not exists (
        select 1 from payment_ledger l
        where l.network = payment #>> '{identity,network}' and l.transaction = paid ->> 'transaction')
      on conflict do nothing
      returning request_id`

/**
 * Writes one group of steps; columns that a step does not hold are not changed. A step to `settled` writes its ledger entry
 * and deletes the sealed payment in the same statement.
 *
 * The ledger comes first: a settlement whose transaction, or log of a transaction, has an entry already gets no second one,
 * and its request is not moved. The other steps of the group are written all the same.
 * @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER: each settlement raises its payer's limit
 */
export async function writeSteps(
  db: Database | Tx,
  steps: Step[],
  maxInFlightPerPayer: number,
): Promise<StepOutcome[]> {
  const now = Date.now()
  const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value))
  const written = await db.any(sql.prepared('write_steps', writtenStep)`
    with t as (
      select id::uuid, attempt::uuid, from_state, to_state, passed::jsonb, stored::json, capture::uuid, assessment::json, intent::json,
             settlement::json
      from unnest(${texts(steps.map((s) => s.id))}, ${texts(steps.map((s) => s.attempt))},
                  ${texts(steps.map((s) => s.from))}, ${texts(steps.map((s) => s.to))},
                  ${texts(steps.map((step) => json(agesOf(step, now))))},
                  ${texts(steps.map((s) => json(s.stored)))}, ${texts(steps.map((s) => s.stored?.capture?.id ?? null))},
                  ${texts(steps.map((s) => json(s.assessment)))}, ${texts(steps.map((s) => json(s.intent)))}, ${texts(steps.map((s) => json(s.settlement)))})
           as t (id, attempt, from_state, to_state, passed, stored, capture, assessment, intent, settlement)
    ), ${booking}
    ), moved as (
      update verification_requests r
      set state = t.to_state, changed_at = now(), history = ${noted(sql.fragment`t.to_state`, sql.fragment`t.passed`)},
          observation = coalesce(t.stored, r.observation),
          -- A new observation has a capture of its own, or none. Its id is not read from the JSON, whose operators refuse U+0000.
          capture_id = case when t.stored is null then r.capture_id else t.capture end,
          assessment = case when t.to_state <> 'observed' then coalesce(t.assessment, r.assessment) end,
          settlement_intent = coalesce(t.intent, r.settlement_intent),
          settlement = coalesce(t.settlement, r.settlement),
          payment_sealed = case when t.to_state = 'settled' then null else r.payment_sealed end
      from t
      where r.id = t.id and r.attempt = t.attempt and r.state = t.from_state
        and (t.to_state <> 'settled' or r.id in (select request_id from booked))
      returning r.id, r.state, r.payment
    ), raised as (
      ${raisePayerLimits(sql.fragment`(select payment from moved where state = 'settled') settled`, maxInFlightPerPayer)}
    )
    select id::text, 'taken' outcome from moved
    union all
    select id::text, 'transaction_taken' from held where id not in (select request_id from booked)`)
  const outcomes = new Map(written.map(({ id, outcome }) => [id, outcome]))
  return steps.map(({ id }) => outcomes.get(id) ?? 'stale')
}

/**
 * For requests that are completed in the same transaction: enters their settlements in the ledger and locks their rows, and leaves the rows
 * as they are. The caller writes them with their completion.
 * @param maxInFlightPerPayer as above
 */
export async function bookSettlements(tx: Tx, steps: Step[], maxInFlightPerPayer: number): Promise<StepOutcome[]> {
  const written = await tx.any(sql.prepared('book_settlements', writtenStep)`
    with t as (
      select id::uuid, attempt::uuid, from_state, 'settled' to_state, settlement::json
      from unnest(${texts(steps.map((s) => s.id))}, ${texts(steps.map((s) => s.attempt))},
                  ${texts(steps.map((s) => s.from))}, ${texts(steps.map((s) => JSON.stringify(s.settlement)))})
           as t (id, attempt, from_state, settlement)
    ), ${booking}
    ), raised as (
      ${raisePayerLimits(sql.fragment`held where id in (select request_id from booked)`, maxInFlightPerPayer)}
    )
    select id::text, case when id in (select request_id from booked) then 'taken' else 'transaction_taken' end outcome
    from held`)
  const outcomes = new Map(written.map(({ id, outcome }) => [id, outcome]))
  return steps.map(({ id }) => outcomes.get(id) ?? 'stale')
}

const texts = (values: (string | null)[]) => sql.array(values, 'text')

const writtenStep = z.object({ id: z.string(), outcome: z.enum(['taken', 'transaction_taken']) })
