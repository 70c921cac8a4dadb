// Alerts as their account sees them: the body, the state, and how each attempt ended.
import { z } from 'zod'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { utcMilliseconds } from '../db/time.ts'
import { AppError } from '../errors.ts'
import { MAX_ATTEMPTS_KEPT } from './claims.ts'
import { ALERT_ID, ALERT_TYPES } from './format.ts'
import { laneOf } from './lanes.ts'
import { wakeDelivery } from './outbox.ts'
import { WEBHOOK_STATES } from './webhooks.ts'

const timestamp = z.string()

export const attemptRecord = z.strictObject({
  attempt: z.int().min(1),
  at: timestamp.describe('When the attempt began.'),
  ms: z.int(),
  status: z.int().nullable().describe('Status of the answer; null without one.'),
  error: z.string().nullable().describe('Why it was not a delivery; null for a delivery.'),
})

export const alertRecord = z.strictObject({
  id: z.string().describe('webhook-id, the same at every attempt.'),
  type: z.enum(ALERT_TYPES),
  event_seq: z.int().min(1),
  serial: z.int().min(1).describe('The serial of its receipt in the chain.'),
  state: z.enum(['pending', 'delivered', 'failed', 'discarded']),
  created_at: timestamp,
  next_attempt_at: timestamp.nullable().describe('Null while it waits for an earlier alert, and once it is settled.'),
  settled_at: timestamp.nullable(),
  body: z.string().describe('The bytes that are sent, as text.'),
  attempts: z.array(attemptRecord).describe('The latest 50, oldest first.'),
})
export type AlertRecord = z.output<typeof alertRecord>

const columns = sql.fragment`
  id, type, event_seq, serial, state, ${utcMilliseconds(sql.fragment`created_at`)} created_at,
  ${utcMilliseconds(sql.fragment`next_attempt_at`)} next_attempt_at,
  ${utcMilliseconds(sql.fragment`settled_at`)} settled_at, body,
  coalesce((
    select json_agg(json_build_object('attempt', attempt, 'at', at, 'ms', ms, 'status', status, 'error', error)
                    order by attempt)
    from (select attempt, ${utcMilliseconds(sql.fragment`"at"`)} at, ms, status, error from alert_attempts
          where alert_id = alerts.id order by attempt desc limit ${MAX_ATTEMPTS_KEPT}) latest
  ), '[]'::json) attempts`

/** Newest first. @param before only alerts with a lower `event_seq` */
export function findAlerts(tx: Tx, webhookId: string, { before, limit }: { before?: number; limit: number }) {
  return tx.any(sql.type(alertRecord)`
    select ${columns} from alerts
    where webhook_id = ${webhookId} and event_seq < ${before ?? Number.MAX_SAFE_INTEGER}
    order by event_seq desc limit ${limit}`)
}

export function findWebhookState(tx: Tx, id: string) {
  return tx.oneFirst(sql.type(z.object({ state: z.enum(WEBHOOK_STATES) }))`select state from webhooks where id = ${id}`)
}

/**
 * Sends an alert once more, with the same id. A settled alert is tried once, before pending ones, and keeps its state unless it
 * is delivered now; a disabled webhook stays disabled. For a pending alert, the first pending alert of the webhook is tried
 * now. Throws AppError `not_found`.
 */
export async function sendAgain(tx: Tx, webhookId: string, id: string): Promise<AlertRecord> {
  const missing = () => new AppError('not_found', 'There is no such alert.')
  if (!ALERT_ID.test(id)) throw missing()
  await tx.query(sql.type(nothing)`
    update alerts set next_attempt_at = now(), lane = ${laneOf} from webhooks w
    where w.id = ${webhookId} and webhook_id = ${webhookId} and alerts.id = ${id} and alerts.state <> 'pending'`)
  await tx.query(sql.type(nothing)`
    update alerts set next_attempt_at = now(), lane = ${laneOf} from webhooks w
    where w.id = ${webhookId} and webhook_id = ${webhookId} and alerts.state = 'pending' and next_attempt_at is not null
      and exists (select from alerts a where a.id = ${id} and a.webhook_id = ${webhookId} and a.state = 'pending')`)
  const found = await tx.maybeOne(sql.type(alertRecord)`
    select ${columns} from alerts where webhook_id = ${webhookId} and id = ${id}`)
  if (!found) throw missing()
  await wakeDelivery(tx, [webhookId])
  return found
}
