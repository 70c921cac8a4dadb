// Claims on due alerts. A courier claims one alert together with the sole right to send at its webhook, sends it, and
// settles what became of it. No other courier sends at that webhook meanwhile, and its next alert is not claimed before this
// one is delivered or given up.
//
// After a crash the right to send runs out: LEASE_SECONDS later another courier claims the same alert. A courier that was
// only slow finds that the right is no longer its own, and settles nothing.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Core } from '../context.ts'
import { nothing, sql, type Tx, transact } from '../db/pool.ts'
import type { Logger } from '../telemetry.ts'
import { LANES, type Lane, laneOf } from './lanes.ts'
import { WEBHOOK_STATES } from './webhooks.ts'

/** Longer than an attempt may take, with time to settle it. */
export const LEASE_SECONDS = 20

const takenWebhook = z.object({
  id: z.string(),
  url: z.string(),
  account_id: z.string(),
  /** Registrable domain of the host. */
  domain: z.string(),
  state: z.enum(WEBHOOK_STATES),
  lane: z.enum(LANES),
  secret_version: z.number(),
  /** How many secrets before that version sign too. */
  old_secrets: z.number(),
})

const takenAlert = z.object({
  id: z.string(),
  type: z.string(),
  event_seq: z.number(),
  body: z.string(),
  /** False for a settled alert that is sent once more because its account asked for it. */
  pending: z.boolean(),
  attempts: z.number(),
  age_seconds: z.number(),
  due: z.boolean(),
})

export interface ClaimedAlert {
  /** Identifies the right to send. */
  sender: string
  webhook: z.output<typeof takenWebhook>
  alert: Omit<z.output<typeof takenAlert>, 'due'>
}

/** What a courier asks for: an alert of one lane, and not of these accounts (ids) and registrable domains. */
export interface Wanted {
  lane: Lane
  accounts: readonly string[]
  domains: readonly string[]
  /** Called when due alerts were moved to another lane, whose search may be over by then. */
  moved(): void
}

/** The alert of the lane that is due for longest, of the webhooks without a sender; null when there is none. */
export async function takeAlert({ db, log }: Pick<Core, 'db' | 'log'>, wanted: Wanted): Promise<ClaimedAlert | null> {
  for (;;) {
    const taken = await transact(db, (tx) => takeAtOneWebhook(tx, wanted, log))
    if (taken === 'moved') wanted.moved()
    else if (taken !== 'not due') return taken
  }
}

/**
 * `not due`: the alert that was found waits behind another one of its webhook, and has been parked. `moved`: its lane was
 * that of an earlier time, and has been corrected.
 */
async function takeAtOneWebhook(
  tx: Tx,
  wanted: Wanted,
  log: Logger,
): Promise<ClaimedAlert | null | 'not due' | 'moved'> {
  const webhook = await lockWebhook(tx, wanted)
  if (!webhook) return null
  if (webhook.lane !== wanted.lane) {
    await moveToLane(tx, webhook)
    return 'moved'
  }
  if (webhook.state === 'disabled') await discardPending(tx, webhook.id, log)
  await parkFollowers(tx, webhook.id)
  const first = await findFirst(tx, webhook.id)
  if (!first?.due) return 'not due'
  const { due: _due, ...alert } = first
  const sender = randomUUID()
  await tx.query(sql.prepared('lease_webhook', nothing)`
    update webhooks set sender = ${sender}, sending_until = now() + ${LEASE_SECONDS} * interval '1 second'
    where id = ${webhook.id}`)
  return { sender, webhook, alert }
}

function lockWebhook(tx: Tx, { lane, accounts, domains }: Wanted) {
  return tx.maybeOne(sql.prepared('lock_due_webhook', takenWebhook)`
    select w.id::text, w.url, w.account_id::text, coalesce(w.domain, w.host) as "domain", w.state, ${laneOf} lane,
           w.secret_version, case when w.old_secrets_until > now() then w.old_secrets else 0 end old_secrets
    from alerts a join webhooks w on w.id = a.webhook_id
    where a.lane = ${lane} and a.next_attempt_at <= now() and (w.sending_until is null or w.sending_until < now())
      and w.account_id <> all(${sql.array([...accounts], 'uuid')})
      and coalesce(w.domain, w.host) <> all(${sql.array([...domains], 'text')})
    order by a.next_attempt_at limit 1
    -- Not "for update": with that, no alert could be inserted meanwhile.
    for no key update of w skip locked`)
}

async function moveToLane(tx: Tx, { id, lane }: ClaimedAlert['webhook']) {
  await tx.query(sql.prepared('move_alerts_to_lane', nothing)`
    update alerts set lane = ${lane} where webhook_id = ${id} and next_attempt_at is not null`)
}

/** Leaves a time to the first pending alert only: the others wait for it. */
async function parkFollowers(tx: Tx, webhookId: string) {
  await tx.query(sql.prepared('park_alerts', nothing)`
    update alerts set next_attempt_at = null
    where webhook_id = ${webhookId} and state = 'pending' and next_attempt_at is not null
      and event_seq > (select min(event_seq) from alerts where webhook_id = ${webhookId} and state = 'pending')`)
}

function findFirst(tx: Tx, webhookId: string) {
  return tx.maybeOne(sql.prepared('find_first_alert', takenAlert)`
    select id, type, event_seq, body, state = 'pending' pending, attempts,
           extract(epoch from now() - created_at)::float8 age_seconds, coalesce(next_attempt_at <= now(), false) due
    from alerts where webhook_id = ${webhookId} and (state = 'pending' or next_attempt_at is not null)
    order by event_seq limit 1`)
}

/** One attempt, as it is kept. */
export interface Attempt {
  /** Milliseconds since the epoch, and how many it took. */
  atMs: number
  ms: number
  /** What the receiver answered; null: nothing. */
  status: number | null
  /** What kept it from being a delivery, for people; null: it was one. */
  error: string | null
}

/** The consequence of an attempt for the alert and its webhook. */
export type Verdict =
  | { outcome: 'delivered'; disable: boolean }
  | { outcome: 'retry'; seconds: number }
  | { outcome: 'given up' }
  /** The receiver wants no more. */
  | { outcome: 'unwanted' }

/** The right to send belongs to another courier by now. */
export class LeaseLostError extends Error {
  override name = 'LeaseLostError'
}

/**
 * Records the attempt and its consequence and gives back the right to send, in one transaction. Throws LeaseLostError.
 * @param slow whether the attempt failed or took long
 */
export function settleAttempt(
  { db, log }: Pick<Core, 'db' | 'log'>,
  taken: ClaimedAlert,
  attempt: Attempt,
  { verdict, slow }: { verdict: Verdict; slow: boolean },
): Promise<void> {
  return transact(db, async (tx) => {
    await releaseWebhook(tx, taken, verdict, slow)
    await insertAttempt(tx, taken, attempt)
    await moveAlert(tx, taken, verdict)
    if (isDisabling(verdict)) await discardPending(tx, taken.webhook.id, log)
    else if (verdict.outcome !== 'retry') await callNext(tx, taken.webhook.id)
    await moveToLane(tx, { ...taken.webhook, lane: slow ? 'slow' : 'proved' })
  })
}

function isDisabling(verdict: Verdict): boolean {
  return verdict.outcome === 'unwanted' || (verdict.outcome === 'delivered' && verdict.disable)
}

async function releaseWebhook(tx: Tx, { webhook, sender, alert }: ClaimedAlert, verdict: Verdict, slow: boolean) {
  const givenUp = verdict.outcome === 'given up' && alert.pending
  const { rowCount } = await tx.query(sql.prepared('release_webhook', nothing)`
    update webhooks set sender = null, sending_until = null, tried = true, slow = ${slow},
      state = case when ${isDisabling(verdict)} or state = 'disabled' then 'disabled'
                   when ${verdict.outcome === 'delivered'} then 'active'
                   when ${givenUp} then 'failing'
                   else state end
    where id = ${webhook.id} and sender = ${sender}`)
  if (rowCount === 0) throw new LeaseLostError(`another courier sends at webhook ${webhook.id}`)
}

/** Attempts kept of one alert: it can be sent again without end, by redelivery. */
export const MAX_ATTEMPTS_KEPT = 50

async function insertAttempt(tx: Tx, { alert }: ClaimedAlert, { atMs, ms, status, error }: Attempt) {
  await tx.query(sql.prepared('insert_alert_attempt', nothing)`
    insert into alert_attempts (alert_id, attempt, at, ms, status, error)
    values (${alert.id}, ${alert.attempts + 1}, to_timestamp(${atMs} / 1000.0::float8), ${ms}, ${status}, ${error})`)
  if (alert.attempts < MAX_ATTEMPTS_KEPT) return
  await tx.query(sql.prepared('forget_alert_attempts', nothing)`
    delete from alert_attempts where alert_id = ${alert.id} and attempt <= ${alert.attempts + 1 - MAX_ATTEMPTS_KEPT}`)
}

/** A settled alert that is sent once more is tried once, and its state changes only if it is delivered. */
async function moveAlert(tx: Tx, { alert }: ClaimedAlert, verdict: Verdict) {
  const retry = verdict.outcome === 'retry' ? verdict.seconds : null
  const state = alert.pending || verdict.outcome === 'delivered' ? STATE_AFTER[verdict.outcome] : null
  await tx.query(sql.prepared('move_alert', nothing)`
    update alerts set attempts = attempts + 1, state = coalesce(${state}, state),
      settled_at = case when ${state}::text is null or ${state} = 'pending' then settled_at else now() end,
      next_attempt_at = now() + ${retry}::float8 * interval '1 second'
    where id = ${alert.id}`)
}

const STATE_AFTER = {
  delivered: 'delivered',
  retry: 'pending',
  'given up': 'failed',
  unwanted: 'discarded',
} as const satisfies Record<Verdict['outcome'], string>

async function discardPending(tx: Tx, webhookId: string, log: Logger) {
  const { rowCount } = await tx.query(sql.prepared('discard_alerts', nothing)`
    update alerts set state = 'discarded', settled_at = now(), next_attempt_at = null
    where webhook_id = ${webhookId} and state = 'pending'`)
  if (rowCount > 0) log.warn({ event: 'alerts_discarded', webhook_id: webhookId, alerts: rowCount })
}

/** Makes the next pending alert due now, unless it has a time of its own. */
async function callNext(tx: Tx, webhookId: string) {
  await tx.query(sql.prepared('call_next_alert', nothing)`
    update alerts set next_attempt_at = now()
    where next_attempt_at is null and id = (
      select id from alerts where webhook_id = ${webhookId} and state = 'pending' order by event_seq limit 1)`)
}
