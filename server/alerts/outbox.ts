// The outbox of alerts. An alert is stored in the transaction of the change that it reports, so each change has its alert and
// each alert its change. It is sent until the receiver accepts it or the schedule ends. Delivery is at least once.
import { z } from 'zod'
import { enqueue } from '../db/jobs.ts'
import { column, type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { AlertType } from './format.ts'
import { laneOf } from './lanes.ts'

export interface NewAlert {
  id: string
  webhookId: string
  eventSeq: number
  type: AlertType
  /** As `sealAlert` gives it. */
  body: string
  /** Of its receipt. */
  serial: number
  /** The `traceparent` of the span that raised the alert; null if that was not traced. */
  traceparent: string | null
  tracestate: string | null
}

/** Stores alerts and the job that wakes their delivery, in the caller's transaction. */
export async function insertAlerts(tx: Tx, alerts: readonly NewAlert[]): Promise<void> {
  if (alerts.length === 0) return
  await tx.query(sql.prepared('insert_alerts', nothing)`
    insert into alerts (id, webhook_id, event_seq, type, body, serial, traceparent, tracestate, next_attempt_at, lane)
    select t.id, w.id, event_seq, type, body, serial, traceparent, tracestate, now(), ${laneOf}
    from unnest(${column(alerts, 'text', (a) => a.id)}, ${column(alerts, 'text', (a) => a.webhookId)},
                ${column(alerts, 'int8', (a) => a.eventSeq)}, ${column(alerts, 'text', (a) => a.type)},
                ${column(alerts, 'text', (a) => a.body)}, ${column(alerts, 'int8', (a) => a.serial)},
                ${column(alerts, 'text', (a) => a.traceparent)}, ${column(alerts, 'text', (a) => a.tracestate)})
         as t (id, webhook_id, event_seq, type, body, serial, traceparent, tracestate)
    join webhooks w on w.id = t.webhook_id::uuid`)
  await wakeDelivery(tx, [...new Set(alerts.map((alert) => alert.webhookId))])
}

/**
 * Most alerts that wait at one webhook. While so many wait, no test alert is made, and an outage is alerted later; only the
 * end of an outage that was alerted is still added. With the limits of the tier on watchdogs and citation watches, this
 * bounds the waiting alerts of an account too.
 */
export const MAX_WAITING = 20

/** Whether another alert may wait at a webhook. @param webhookId an SQL expression */
export const hasRoom = (webhookId: ReturnType<typeof sql.fragment>) => sql.fragment`
  ((select count(*) from (select from alerts a where a.webhook_id = ${webhookId} and a.state = 'pending'
                          order by a.event_seq limit ${MAX_WAITING}) waiting) < ${MAX_WAITING})`

/** Throws AppError `rate_limited` when no test alert may wait at a webhook. */
export async function requireRoom(tx: Tx, webhookId: string): Promise<void> {
  const { room } = await tx.one(sql.type(z.object({ room: z.boolean() }))`
    select ${hasRoom(sql.fragment`${webhookId}::uuid`)} room`)
  if (room) return
  throw new AppError('rate_limited', `${MAX_WAITING} alerts for this receiver are already waiting.`, {
    headers: { 'retry-after': '60' },
  })
}

/** Wakes the delivery loop by a job. The loop also checks the outbox every second, so a lost job costs a second. */
export function wakeDelivery(tx: Tx, webhookIds: readonly string[]): Promise<void> {
  return enqueue(
    tx,
    webhookIds.map((webhook_id) => ({ name: 'deliver_alerts', payload: { webhook_id }, key: `alerts:${webhook_id}` })),
  )
}

/** Repairs head-of-queue alerts without a due time, which only manual SQL can cause. Answers how many. */
export async function recallAlerts(db: Database): Promise<number> {
  const { rowCount } = await db.query(sql.type(nothing)`
    update alerts a set next_attempt_at = now()
    where a.state = 'pending' and a.next_attempt_at is null and not exists (
      select from alerts b
      where b.webhook_id = a.webhook_id and b.state = 'pending' and b.event_seq < a.event_seq)`)
  return rowCount
}

/** Days for which settled alerts and their attempts are kept. Their receipts are kept for ever. */
export const KEEP_DAYS = 90

const PRUNE_BATCH = 1000

const prunable = sql.fragment`settled_at < now() - ${KEEP_DAYS} * interval '1 day' and next_attempt_at is null`

/**
 * Deletes settled alerts past KEEP_DAYS, their attempts, and counts of past days. Each batch is a transaction of its own.
 * Answers how many alerts were deleted.
 * @param budgetMs milliseconds for all batches; a backlog beyond that is left to the next call
 */
export async function pruneAlerts(db: Database, budgetMs = 20_000): Promise<number> {
  const until = performance.now() + budgetMs
  await db.query(sql.type(nothing)`delete from alert_days where day < (now() at time zone 'utc')::date`)
  let pruned = 0
  for (;;) {
    const { rowCount } = await db.query(sql.type(nothing)`
      delete from alerts where id in (
        select id from alerts where ${prunable} order by settled_at limit ${PRUNE_BATCH} for update skip locked)`)
    pruned += rowCount
    if (rowCount < PRUNE_BATCH || performance.now() > until) return pruned
  }
}

/** By how many seconds the oldest settled alert exceeds KEEP_DAYS; 0 while pruning keeps up. */
export function alertPruneLag(db: Database): Promise<number> {
  return db.oneFirst(sql.type(z.object({ seconds: z.number() }))`
    select greatest(extract(epoch from now() - min(settled_at)) - ${KEEP_DAYS * 86_400}, 0)::float8 seconds
    from alerts where ${prunable}`)
}
