// Alerts that did not arrive, of all accounts, and one more try for any of them.
import { z } from 'zod'
import { sendAgain } from '../alerts/archive.ts'
import { type Database, sql, transact } from '../db/pool.ts'

const undelivered = z.object({
  id: z.string(),
  type: z.string(),
  state: z.enum(['pending', 'failed']),
  host: z.string(),
  handle: z.string(),
  attempts: z.number(),
  created_at: z.date(),
  next_attempt_at: z.date().nullable(),
  last_error: z.string().nullable(),
})
export type UndeliveredAlert = z.output<typeof undelivered>

/** Alerts that failed at least once and wait, and those that were given up in the last week; newest first. */
export function listUndelivered(db: Database, limit: number): Promise<readonly UndeliveredAlert[]> {
  return db.any(sql.type(undelivered)`
    select a.id, a.type, a.state, w.host, c.handle, a.attempts, a.created_at, a.next_attempt_at,
           (select coalesce(t.error, t.status::text) from alert_attempts t where t.alert_id = a.id order by t.attempt desc limit 1) last_error
    from alerts a join webhooks w on w.id = a.webhook_id join accounts c on c.id = w.account_id
    where a.state = 'pending' and a.attempts > 0 or a.state = 'failed' and a.settled_at > now() - interval '7 days'
    order by a.created_at desc, a.id limit ${limit}`)
}

/** Sends any alert once more, as its account could. Returns `not_found` if there is none. */
export function redeliverAsOperator(db: Database, id: string): Promise<'sent_again' | 'not_found'> {
  return transact(db, async (tx) => {
    const webhook = await tx.maybeOneFirst(sql.type(z.object({ webhook_id: z.string() }))`
      select webhook_id from alerts where id = ${id}`)
    if (webhook === null) return 'not_found'
    await sendAgain(tx, webhook, id)
    return 'sent_again'
  })
}
