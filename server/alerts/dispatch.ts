// Who sends what next. A courier takes one alert with the right to send at its webhook for a while, sends it, and settles
// what became of it. Nobody else sends there meanwhile, and the next alert is not taken before this one is delivered or
// given up.
//
// A crash after the taking leaves the right to run out: LEASE_SECONDS later another courier takes the same alert. The first
// one, if it was only slow, finds that the right is no longer its own and settles nothing.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Core } from '../context.ts'
import { nothing, sql, type Tx, transact } from '../db/pool.ts'
import type { Logger } from '../telemetry.ts'
import { WEBHOOK_STATES } from './webhooks.ts'

/** Longer than an attempt may take, with time to say what became of it. */
export const LEASE_SECONDS = 20

const takenWebhook = z.object({
  id: z.string(),
  url: z.string(),
  host: z.string(),
  state: z.enum(WEBHOOK_STATES),
  slow: z.boolean(),
  secret_version: z.number(),
  /** So many secrets before it sign too. */
  old_secrets: z.number(),
})

const takenAlert = z.object({
  id: z.string(),
  type: z.string(),
  event_seq: z.number(),
  body: z.string(),
  /** False for one that is settled, and sent once more because its account asked for it. */
  pending: z.boolean(),
  attempts: z.number(),
  age_seconds: z.number(),
  due: z.boolean(),
})

export interface Taken {
  /** The right to send. */
  sender: string
  webhook: z.output<typeof takenWebhook>
  alert: Omit<z.output<typeof takenAlert>, 'due'>
}

/** What the asking courier has no room for. */
export interface Room {
  /** No more to these hosts. */
  fullHosts: readonly string[]
  /** Whether there is room for a slow webhook. */
  slow: boolean
}

/** The alert that is due for longest, of the webhooks nobody sends at and there is room for. Null: there is none. */
export async function takeAlert({ db, log }: Pick<Core, 'db' | 'log'>, room: Room): Promise<Taken | null> {
  for (;;) {
    const taken = await transact(db, (tx) => takeAtOneWebhook(tx, room, log))
    if (taken !== 'not due') return taken
  }
}

/** `not due`: what made the webhook seem due waits behind another alert, and does not seem so any more. */
async function takeAtOneWebhook(tx: Tx, room: Room, log: Logger): Promise<Taken | null | 'not due'> {
  const webhook = await lockWebhook(tx, room)
  if (!webhook) return null
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

function lockWebhook(tx: Tx, { fullHosts, slow }: Room) {
  return tx.maybeOne(sql.prepared('lock_due_webhook', takenWebhook)`
    select w.id::text, w.url, w.host, w.state, w.slow, w.secret_version,
           case when w.old_secrets_until > now() then w.old_secrets else 0 end old_secrets
    from alerts a join webhooks w on w.id = a.webhook_id
    where a.next_attempt_at <= now() and (w.sending_until is null or w.sending_until < now())
      and w.host <> all(${sql.array([...fullHosts], 'text')}) and (${slow} or not w.slow)
    order by a.next_attempt_at limit 1
    -- Not "for update": with that, nobody could insert an alert meanwhile.
    for no key update of w skip locked`)
}

/** Only the first pending alert has a time: those behind it would only be looked at in vain. */
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

/** What an attempt means for the alert and its webhook. */
export type Verdict =
  | { outcome: 'delivered'; disable: boolean }
  | { outcome: 'retry'; seconds: number }
  | { outcome: 'given up' }
  /** The receiver wants no more. */
  | { outcome: 'unwanted' }

/** The right to send had gone to another. */
export class Overtaken extends Error {
  override name = 'Overtaken'
}

/**
 * Keeps the attempt and does what it means, in one transaction; the right to send ends with it.
 * @param slow whether the webhook is to wait among the slow ones from now on. Throws Overtaken.
 */
export function settleAttempt(
  { db, log }: Pick<Core, 'db' | 'log'>,
  taken: Taken,
  attempt: Attempt,
  { verdict, slow }: { verdict: Verdict; slow: boolean },
): Promise<void> {
  return transact(db, async (tx) => {
    await releaseWebhook(tx, taken, verdict, slow)
    await insertAttempt(tx, taken, attempt)
    await moveAlert(tx, taken, verdict)
    if (isDisabling(verdict)) await discardPending(tx, taken.webhook.id, log)
    else if (verdict.outcome !== 'retry') await callNext(tx, taken.webhook.id)
  })
}

function isDisabling(verdict: Verdict): boolean {
  return verdict.outcome === 'unwanted' || (verdict.outcome === 'delivered' && verdict.disable)
}

async function releaseWebhook(tx: Tx, { webhook, sender, alert }: Taken, verdict: Verdict, slow: boolean) {
  const givenUp = verdict.outcome === 'given up' && alert.pending
  const { rowCount } = await tx.query(sql.prepared('release_webhook', nothing)`
    update webhooks set sender = null, sending_until = null, slow = ${slow},
      state = case when ${isDisabling(verdict)} or state = 'disabled' then 'disabled'
                   when ${verdict.outcome === 'delivered'} then 'active'
                   when ${givenUp} then 'failing'
                   else state end
    where id = ${webhook.id} and sender = ${sender}`)
  if (rowCount === 0) throw new Overtaken(`another sends at webhook ${webhook.id}`)
}

async function insertAttempt(tx: Tx, { alert }: Taken, { atMs, ms, status, error }: Attempt) {
  await tx.query(sql.prepared('insert_alert_attempt', nothing)`
    insert into alert_attempts (alert_id, attempt, at, ms, status, error)
    values (${alert.id}, ${alert.attempts + 1}, to_timestamp(${atMs} / 1000.0::float8), ${ms}, ${status}, ${error})`)
}

/** A settled alert that is sent once more is tried once, and stays what it was unless it is delivered. */
async function moveAlert(tx: Tx, { alert }: Taken, verdict: Verdict) {
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

/** The next pending alert takes its turn at once, unless it has a time of its own. */
async function callNext(tx: Tx, webhookId: string) {
  await tx.query(sql.prepared('call_next_alert', nothing)`
    update alerts set next_attempt_at = now()
    where next_attempt_at is null and id = (
      select id from alerts where webhook_id = ${webhookId} and state = 'pending' order by event_seq limit 1)`)
}
