// The jobs of free work, whose rows look alike in both tables: postponed while a slow fetch goes on, and swept once a minute.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Core } from '../context.ts'
import { enqueue, type JobSpec } from '../db/jobs.ts'
import { column, type Database, sql, type Tx, transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { LeftWork } from '../verification/stages/slow-work.ts'
import type { ChangeEvents } from '../verification/stages/stage-tools.ts'

/** Free work as its worker holds it. `attempt` is the token with which this worker may commit. */
export interface Held {
  id: string
  attempt: string
}

/** One kind of free work: where its rows are, and its functions on them. */
export interface FreeWorkKind<W extends Held> {
  table: 'looks' | 'quote_checks'
  /** In log events: `look_failed`, `looks_swept`. */
  event: string
  /** The job of a row. */
  job(row: { id: string; priority: number }): JobSpec & { key: string }
  /** Takes the row for one attempt; an earlier attempt can commit nothing from here on. Null when no work is left. */
  claim(db: Database, id: string, attempt: string): Promise<W | null>
  /** Whether this attempt still holds the row. If so, no other attempt can take it before the transaction ends. */
  holds(tx: Tx, work: Held): Promise<boolean>
  /**
   * Writes nothing, and answers false, if another attempt has taken the row.
   * @param counts whether the work counts against a daily limit: false if the page has no part in the failure
   */
  fail(db: Database, work: Held, error: AppError, counts: boolean): Promise<boolean>
}

const tableOf = ({ table }: { table: string }) => sql.identifier([table])

const heldRow = z.object({ id: z.string(), priority: z.number(), attempts: z.int() })

/** Lets the jobs of the rows that these attempts still hold run at a later time. */
export async function postpone<W extends Held>(
  kind: FreeWorkKind<W>,
  tx: Tx,
  fetches: readonly LeftWork[],
  runAt: Date,
): Promise<void> {
  const held = await tx.any(sql.type(heldRow)`
    select w.id::text, w.priority, t.attempts from ${tableOf(kind)} w
    join unnest(${column(fetches, 'text', ({ id }) => id)}, ${column(fetches, 'text', ({ attempt }) => attempt)},
                ${column(fetches, 'int4', ({ attemptsLeft }) => attemptsLeft)})
      as t (id, attempt, attempts) on w.id = t.id::uuid and w.attempt = t.attempt::uuid
    where w.state = 'pending' order by w.id for update of w`)
  await enqueue(
    tx,
    held.map((row) => ({ ...kind.job(row), maxAttempts: row.attempts, runAt })),
  )
}

const stranded = z.object({ id: z.string(), priority: z.number(), exhausted: z.boolean() })

const MAX_SWEPT = 500

/**
 * Gives work that lost its job a new one, and fails work whose job used up its attempts. Must run before the jobs without attempts
 * are deleted: after that, work that kills its worker looks like work that lost its job.
 * @param idleSeconds how long work without a job must have been pending
 */
export async function sweep<W extends Held>(
  kind: FreeWorkKind<W>,
  { db, log, changeEvents }: Pick<Core, 'db' | 'log'> & ChangeEvents,
  idleSeconds = 60,
): Promise<{ requeued: number; failed: number }> {
  const keyPrefix = kind.job({ id: '', priority: 0 }).key
  const found = await db.any(sql.type(stranded)`
    select w.id::text, w.priority, j.id is not null exhausted
    from ${tableOf(kind)} w left join graphile_worker.jobs j on j.key = ${keyPrefix} || w.id
    where w.state = 'pending'
      and (j.id is null and w.changed_at <= now() - ${idleSeconds} * interval '1 second'
           or j.attempts >= j.max_attempts and j.locked_at is null)
    order by w.changed_at limit ${MAX_SWEPT}`)
  const lost = found.filter(({ exhausted }) => !exhausted)
  await transact(db, (tx) => enqueue(tx, lost.map(kind.job)))
  const error = new AppError('execution_failed', 'The work began several times and never finished.')
  const hopeless = found.filter(({ exhausted }) => exhausted)
  for (const { id } of hopeless) {
    const work = await kind.claim(db, id, randomUUID())
    if (work && (await kind.fail(db, work, error, true))) await changeEvents.add(id)
  }
  if (found.length > 0) log.warn({ event: `${kind.event}s_swept`, requeued: lost.length, failed: hopeless.length })
  return { requeued: lost.length, failed: hopeless.length }
}
