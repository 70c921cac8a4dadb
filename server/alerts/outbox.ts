// Alerts on their way. A row is written in the transaction of what it tells, so none is lost and none is made up; from then
// on it is sent until the receiver has it or the schedule is over. Delivery is at least once.

import { enqueue } from '../db/jobs.ts'
import { column, nothing, sql, type Tx } from '../db/pool.ts'
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
  const webhooks = [...new Set(alerts.map((alert) => alert.webhookId))]
  await enqueue(
    tx,
    webhooks.map((webhook_id) => ({ name: 'deliver_alerts', payload: { webhook_id }, key: `alerts:${webhook_id}` })),
  )
}
