// Claims on due alerts. A delivery loop claims one alert together with a lease on its webhook, sends the alert, and settles
// the outcome. No other loop sends at that webhook meanwhile, and its next alert is not claimed before this one is delivered
// or given up.
//
// After a crash the lease expires: LEASE_SECONDS after the claim another loop claims the same alert. A loop that was only slow
// finds that its lease was lost, and settles nothing.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Core } from '../context.ts'
import { nothing, sql, type Tx, transact } from '../db/pool.ts'
import type { Logger } from '../telemetry.ts'
import { LANES, type Lane, laneOf } from './lanes.ts'
import { WEBHOOK_STATES } from './webhooks.ts'

/** Longer than an attempt may take, settling included. */
const LEASE_SECONDS = 20

const claimedWebhook = z.object({
  id: z.string(),
  url: z.string(),
  account_id: z.string(),
  /** Registrable domain of the host. */
  domain: z.string(),
  state: z.enum(WEBHOOK_STATES),
  lane: z.enum(LANES),
  secret_version: z.number(),
  /** The number of older versions that also sign. */
  old_secrets: z.number(),
})

const claimedAlert = z.object({
  id: z.string(),
  type: z.string(),
  event_seq: z.number(),
  body: z.string(),
  /** False for a settled alert that its account had sent once more. */
  pending: z.boolean(),
  attempts: z.number(),
  age_seconds: z.number(),
  /** The `traceparent` of the span that raised the alert; null if that was not traced. */
  traceparent: z.string().nullable(),
  tracestate: z.string().nullable(),
  due: z.boolean(),
})

export interface ClaimedAlert {
  /** Identifies the lease on the webhook. */
  sender: string
  webhook: z.output<typeof claimedWebhook>
  alert: Omit<z.output<typeof claimedAlert>, 'due'>
}

/** Which alerts may be claimed. */
export interface ClaimFilter {
  lane: Lane
  /** Ids of accounts to leave out. */
  exceptAccounts: readonly string[]
  /** Registrable domains to leave out. */
  exceptDomains: readonly string[]
  /** Called when due alerts were moved to another lane, because the search may already have passed that lane. */
  onLaneChange(): void
}

/** The alert of the lane that has been due for longest, of the webhooks without a lease; null when there is none. */
export async function claimAlert(
  { db, log }: Pick<Core, 'db' | 'log'>,
  filter: ClaimFilter,
): Promise<ClaimedAlert | null> {
  for (;;) {
    const claimed = await transact(db, (tx) => claimAtOneWebhook(tx, filter, log))
    if (claimed === 'moved') filter.onLaneChange()
    else if (claimed !== 'not due') return claimed
  }
}

/**
 * `not due`: the alert that was found waits behind another one of its webhook, and has been parked. `moved`: its lane was out
 * of date, and has been corrected.
 */
async function claimAtOneWebhook(
  tx: Tx,
  filter: ClaimFilter,
  log: Logger,
): Promise<ClaimedAlert | null | 'not due' | 'moved'> {
  const webhook = await lockWebhook(tx, filter)
  if (!webhook) return null
  if (webhook.lane !== filter.lane) {
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

function lockWebhook(tx: Tx, { lane, exceptAccounts, exceptDomains }: ClaimFilter) {
  return tx.maybeOne(sql.prepared('lock_due_webhook', claimedWebhook)`
    select w.id::text, w.url, w.account_id::text, coalesce(w.domain, w.host) as "domain", w.state, ${laneOf} lane,
           w.secret_version, case when w.old_secrets_until > now() then w.old_secrets else 0 end old_secrets
    from alerts a join webhooks w on w.id = a.webhook_id
    where a.lane = ${lane} and a.next_attempt_at <= now() and (w.sending_until is null or w.sending_until < now())
      and w.account_id <> all(${sql.array([...exceptAccounts], 'uuid')})
      and coalesce(w.domain, w.host) <> all(${sql.array([...exceptDomains], 'text')})
    order by a.next_attempt_at limit 1
    -- Not "for update", under which no alert could be inserted meanwhile.
    for no key update of w skip locked`)
}

async function moveToLane(tx: Tx, { id, lane }: ClaimedAlert['webhook']) {
  await tx.query(sql.prepared('move_alerts_to_lane', nothing)`
    update alerts set lane = ${lane} where webhook_id = ${id} and next_attempt_at is not null`)
}

/** Leaves a due time to the first pending alert only: the others wait for it. */
async function parkFollowers(tx: Tx, webhookId: string) {
  await tx.query(sql.prepared('park_alerts', nothing)`
    update alerts set next_attempt_at = null
    where webhook_id = ${webhookId} and state = 'pending' and next_attempt_at is not null
      and event_seq > (select min(event_seq) from alerts where webhook_id = ${webhookId} and state = 'pending')`)
}

function findFirst(tx: Tx, webhookId: string) {
  return tx.maybeOne(sql.prepared('find_first_alert', claimedAlert)`
    select id, type, event_seq, body, state = 'pending' pending, attempts,
           extract(epoch from now() - created_at)::float8 age_seconds, coalesce(next_attempt_at <= now(), false) due, traceparent,
           tracestate
    from alerts where webhook_id = ${webhookId} and (state = 'pending' or next_attempt_at is not null)
    order by event_seq limit 1`)
}

/** One attempt, as it is recorded. */
export interface Attempt {
  /** When it began, in milliseconds since the epoch. */
  atMs: number
  /** How long it took, in milliseconds. */
  ms: number
  /** HTTP status of the receiver; null without an answer. */
  status: number | null
  /** Why it was no delivery, as shown to the account; null for a delivery. */
  error: string | null
}

/** The consequence of an attempt for the alert and its webhook. */
export type Decision =
  | { outcome: 'delivered'; disable: boolean }
  | { outcome: 'retry'; seconds: number }
  | { outcome: 'given up' }
  /** The receiver asks for no more alerts. */
  | { outcome: 'unwanted' }

/** The lease on the webhook has expired and another loop has it. */
export class LeaseLostError extends Error {
  override name = 'LeaseLostError'
}

/**
 * Records the attempt and its consequence and ends the lease, in one transaction. Throws LeaseLostError.
 * @param slow whether the attempt failed or took long
 */
export function settleAttempt(
  { db, log }: Pick<Core, 'db' | 'log'>,
  claimed: ClaimedAlert,
  attempt: Attempt,
  { decision, slow }: { decision: Decision; slow: boolean },
): Promise<void> {
  return transact(db, async (tx) => {
    await releaseWebhook(tx, claimed, decision, slow)
    await insertAttempt(tx, claimed, attempt)
    await moveAlert(tx, claimed, decision)
    if (isDisabling(decision)) await discardPending(tx, claimed.webhook.id, log)
    else if (decision.outcome !== 'retry') await callNext(tx, claimed.webhook.id)
    await moveToLane(tx, { ...claimed.webhook, lane: slow ? 'slow' : 'proved' })
  })
}

function isDisabling(decision: Decision): boolean {
  return decision.outcome === 'unwanted' || (decision.outcome === 'delivered' && decision.disable)
}

async function releaseWebhook(tx: Tx, { webhook, sender, alert }: ClaimedAlert, decision: Decision, slow: boolean) {
  const givenUp = decision.outcome === 'given up' && alert.pending
  const { rowCount } = await tx.query(sql.prepared('release_webhook', nothing)`
    update webhooks set sender = null, sending_until = null, tried = true, slow = ${slow},
      state = case when ${isDisabling(decision)} or state = 'disabled' then 'disabled'
                   when ${decision.outcome === 'delivered'} then 'active'
                   when ${givenUp} then 'failing'
                   else state end
    where id = ${webhook.id} and sender = ${sender}`)
  if (rowCount === 0) throw new LeaseLostError(`another delivery loop has the lease on webhook ${webhook.id}`)
}

/** The latest attempts of one alert that are kept: redelivery can add attempts without end. */
export const MAX_ATTEMPTS_KEPT = 50

async function insertAttempt(tx: Tx, { alert }: ClaimedAlert, { atMs, ms, status, error }: Attempt) {
  await tx.query(sql.prepared('insert_alert_attempt', nothing)`
    insert into alert_attempts (alert_id, attempt, at, ms, status, error)
    values (${alert.id}, ${alert.attempts + 1}, to_timestamp(${atMs} / 1000.0::float8), ${ms}, ${status}, ${error})`)
  if (alert.attempts < MAX_ATTEMPTS_KEPT) return
  await tx.query(sql.prepared('forget_alert_attempts', nothing)`
    delete from alert_attempts where alert_id = ${alert.id} and attempt <= ${alert.attempts + 1 - MAX_ATTEMPTS_KEPT}`)
}

/** A settled alert that is redelivered is tried once, and its state changes only if it is delivered. */
async function moveAlert(tx: Tx, { alert }: ClaimedAlert, decision: Decision) {
  const retry = decision.outcome === 'retry' ? decision.seconds : null
  const state = alert.pending || decision.outcome === 'delivered' ? STATE_AFTER[decision.outcome] : null
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
} as const satisfies Record<Decision['outcome'], string>

async function discardPending(tx: Tx, webhookId: string, log: Logger) {
  const { rowCount } = await tx.query(sql.prepared('discard_alerts', nothing)`
    update alerts set state = 'discarded', settled_at = now(), next_attempt_at = null
    where webhook_id = ${webhookId} and state = 'pending'`)
  if (rowCount > 0) log.warn({ event: 'alerts_discarded', webhook_id: webhookId, alerts: rowCount })
}

/** Makes the next pending alert due now, unless it has a due time. */
async function callNext(tx: Tx, webhookId: string) {
  await tx.query(sql.prepared('call_next_alert', nothing)`
    update alerts set next_attempt_at = now()
    where next_attempt_at is null and id = (
      select id from alerts where webhook_id = ${webhookId} and state = 'pending' order by event_seq limit 1)`)
}
