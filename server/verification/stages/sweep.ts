// The sweep, once a minute: finds requests that have no job, or whose job used up its attempts so that the queue no longer
// runs it. Without the sweep a caller would poll such a request without end.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Core } from '../../context.ts'
import { enqueue, forgetExhaustedJobs } from '../../db/jobs.ts'
import { sql, transact } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import { claimRequests, failRequest, requestErrorOf, StaleAttemptError, states } from '../request.ts'
import { jobOf } from './job.ts'
import type { ChangeEvents } from './stage-tools.ts'

const stranded = z.object({
  id: z.string(),
  state: z.enum(states),
  priority: z.number(),
  exhausted: z.boolean(),
  chargeable: z.boolean(),
})

const MAX_SWEPT = 500

type SweepTools = Pick<Core, 'db' | 'log' | 'config'> & ChangeEvents

/**
 * Gives stranded requests a new job. A request whose attempts are used up is failed instead, unless its payment may have
 * been charged already: such a request gets new jobs until it is completed or proved unpaid.
 * @param idleSeconds how long a request must have been in its state
 */
export async function sweepRequests(
  tools: SweepTools,
  idleSeconds = 60,
): Promise<{ requeued: number; failed: number }> {
  const found = await tools.db.any(sql.type(stranded)`
    select r.id::text, r.state, r.priority, j.id is not null exhausted, r.state in ('settling', 'settled') chargeable
    from verification_requests r
    left join graphile_worker.jobs j on j.key = 'verify:' || r.id
    where r.state in ('accepted', 'observed', 'assessed', 'settling', 'settled')
      and r.changed_at <= now() - ${idleSeconds} * interval '1 second'
      and (j.id is null or (j.attempts >= j.max_attempts and j.locked_at is null))
    order by r.changed_at limit ${MAX_SWEPT}`)
  const hopeless = found.filter((request) => request.exhausted && !request.chargeable)
  const others = found.filter((request) => !request.exhausted || request.chargeable)
  for (const { id } of hopeless) await failStranded(tools, id)
  await transact(tools.db, async (tx) => {
    await forgetExhaustedJobs(tx)
    await enqueue(
      tx,
      others.map((request) => ({ name: 'verify_request', payload: { request_id: request.id }, ...jobOf(request) })),
    )
  })
  if (found.length > 0) tools.log.warn({ event: 'swept', requeued: others.length, failed: hopeless.length })
  return { requeued: others.length, failed: hopeless.length }
}

async function failStranded({ db, config, changeEvents }: SweepTools, id: string) {
  const claim = { id, attempt: randomUUID() }
  const [request] = await claimRequests(db, [claim])
  if (!request) return
  const error = requestErrorOf(new AppError('execution_failed', 'The work began several times and never finished.'))
  try {
    await transact(db, (tx) => failRequest(tx, claim, error, config.maxInFlightPerPayer))
    await changeEvents.add(id)
  } catch (refusal) {
    if (!(refusal instanceof StaleAttemptError)) throw refusal
  }
}
