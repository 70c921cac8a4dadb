// The sweep of free looks, once a minute: gives a look that lost its job a new one, and fails a look whose job used up its
// attempts.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Core } from '../context.ts'
import { enqueue } from '../db/jobs.ts'
import { sql, transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { ChangeEvents } from '../verification/stage-tools.ts'
import { claimLook, failLook, lookJob } from './look.ts'

const stranded = z.object({ id: z.string(), priority: z.number(), exhausted: z.boolean() })

const MAX_SWEPT = 500

/**
 * Must run before the jobs without attempts are deleted: after that, a look that kills its worker looks like one that lost its
 * job. @param idleSeconds how long a look without a job must have been pending
 */
export async function sweepLooks(
  { db, log, changeEvents }: Pick<Core, 'db' | 'log'> & ChangeEvents,
  idleSeconds = 60,
): Promise<{ requeued: number; failed: number }> {
  const found = await db.any(sql.type(stranded)`
    select l.id::text, l.priority, j.id is not null exhausted
    from looks l left join graphile_worker.jobs j on j.key = 'look:' || l.id
    where l.state = 'pending'
      and (j.id is null and l.changed_at <= now() - ${idleSeconds} * interval '1 second'
           or j.attempts >= j.max_attempts and j.locked_at is null)
    order by l.changed_at limit ${MAX_SWEPT}`)
  const lost = found.filter(({ exhausted }) => !exhausted)
  await transact(db, (tx) => enqueue(tx, lost.map(lookJob)))
  const error = new AppError('execution_failed', 'The work began several times and never finished.')
  const hopeless = found.filter(({ exhausted }) => exhausted)
  for (const { id } of hopeless) {
    const look = await claimLook(db, id, randomUUID())
    if (look && (await failLook(db, look, error))) await changeEvents.add(id)
  }
  if (found.length > 0) log.warn({ event: 'looks_swept', requeued: lost.length, failed: hopeless.length })
  return { requeued: lost.length, failed: hopeless.length }
}
