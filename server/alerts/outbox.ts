// Alerts on their way. A row is written in the transaction of what it tells, so none is lost and none is made up; from then
// on it is sent until the receiver has it or the schedule is over. Delivery is at least once.
import { z } from 'zod'
import { enqueue } from '../db/jobs.ts'
import { column, type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { AlertType } from './format.ts'

export interface NewAlert {
  id: string
  webhookId: string
  eventSeq: number
  type: AlertType
  /** As `sealAlert` made it. */
  body: string
  /** Of its receipt. */
  serial: number
}

/** Stores alerts and wakes their delivery, in the caller's transaction. */
export async function insertAlerts(tx: Tx, alerts: readonly NewAlert[]): Promise<void> {
  if (alerts.length === 0) return
  await tx.query(sql.prepared('insert_alerts', nothing)`
    insert into alerts (id, webhook_id, event_seq, type, body, serial, next_attempt_at)
    select id, webhook_id::uuid, event_seq, type, body, serial, now()
    from unnest(${column(alerts, 'text', (a) => a.id)}, ${column(alerts, 'text', (a) => a.webhookId)},
                ${column(alerts, 'int8', (a) => a.eventSeq)}, ${column(alerts, 'text', (a) => a.type)},
                ${column(alerts, 'text', (a) => a.body)}, ${column(alerts, 'int8', (a) => a.serial)})
         as t (id, webhook_id, event_seq, type, body, serial)`)
  await wakeDelivery(tx, [...new Set(alerts.map((alert) => alert.webhookId))])
}

/** Alerts that only try a webhook are not piled up where nobody fetches them. */
const MAX_WAITING = 20

/** Throws AppError `rate_limited` while so many alerts wait at a webhook that it is not to be tried with another. */
export async function requireRoom(db: Tx | Database, webhookId: string): Promise<void> {
  const waiting = await db.oneFirst(sql.type(z.object({ n: z.number() }))`
    select count(*) n from (
      select from alerts where webhook_id = ${webhookId} and state = 'pending' order by event_seq limit ${MAX_WAITING}) waiting`)
  if (waiting < MAX_WAITING) return
  throw new AppError('rate_limited', `${MAX_WAITING} alerts are waiting for this receiver already.`, {
    headers: { 'retry-after': '60' },
  })
}

/** A job is only a knock at the couriers' door. They look by themselves every second, so one that is lost costs that. */
export function wakeDelivery(tx: Tx, webhookIds: readonly string[]): Promise<void> {
  return enqueue(
    tx,
    webhookIds.map((webhook_id) => ({ name: 'deliver_alerts', payload: { webhook_id }, key: `alerts:${webhook_id}` })),
  )
}

/**
 * Puts alerts back before the couriers that nobody would look at again: the first one that waits at a webhook always has a
 * time, and one without could only be the work of a hand in the tables.
 */
export async function recallAlerts(db: Database): Promise<number> {
  const { rowCount } = await db.query(sql.type(nothing)`
    update alerts a set next_attempt_at = now()
    where a.state = 'pending' and a.next_attempt_at is null and not exists (
      select from alerts b
      where b.webhook_id = a.webhook_id and b.state = 'pending' and b.event_seq < a.event_seq)`)
  return rowCount
}

/** Days for which settled alerts and their attempts are kept. Their receipts stay. */
export const KEEP_DAYS = 90

export async function pruneAlerts(db: Database): Promise<number> {
  const { rowCount } = await db.query(sql.type(nothing)`
    delete from alerts where id in (
      select id from alerts
      where settled_at < now() - ${KEEP_DAYS} * interval '1 day' and next_attempt_at is null
      limit 1000 for update skip locked)`)
  return rowCount
}
