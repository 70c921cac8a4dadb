// Requests that nobody works on any more: their job is gone, or was taken up so often without coming to an end that the
// queue stopped offering it. Run once a minute; without it a caller would poll such a request for ever.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Work } from '../../workers/context.ts'
import { enqueue, forgetExhaustedJobs } from '../db/jobs.ts'
import { sql, transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { jobOf } from './admission.ts'
import { claimRequest, failRequest, requestErrorOf, StaleAttemptError, states } from './request.ts'

const stranded = z.object({
  id: z.string(),
  state: z.enum(states),
  priority: z.number(),
  exhausted: z.boolean(),
  chargeable: z.boolean(),
})

const MAX_SWEPT = 500

/**
 * Gives stranded requests a new job. One whose attempts are used up is failed instead, unless its payment may have been
 * charged already: such a request is taken up again and again until it is completed or proved unpaid.
 * @param idleSeconds how long a request must have stood still
 */
export async function sweepRequests(work: Work, idleSeconds = 60): Promise<{ requeued: number; failed: number }> {
  const found = await work.db.any(sql.type(stranded)`
    select r.id::text, r.state, r.priority, j.id is not null exhausted, r.state in ('settling', 'settled') chargeable
    from verification_requests r
    left join graphile_worker.jobs j on j.key = 'verify:' || r.id
    where r.state in ('accepted', 'observed', 'assessed', 'settling', 'settled')
      and r.changed_at <= now() - ${idleSeconds} * interval '1 second'
      and (j.id is null or (j.attempts >= j.max_attempts and j.locked_at is null))
    order by r.changed_at limit ${MAX_SWEPT}`)
  const hopeless = found.filter((request) => request.exhausted && !request.chargeable)
  const others = found.filter((request) => !request.exhausted || request.chargeable)
  for (const { id } of hopeless) await failStranded(work, id)
  await transact(work.db, async (tx) => {
    await forgetExhaustedJobs(tx)
    await enqueue(
      tx,
      others.map((request) => ({ name: 'verify_request', payload: { request_id: request.id }, ...jobOf(request) })),
    )
  })
  if (found.length > 0) work.log.warn({ event: 'swept', requeued: others.length, failed: hopeless.length })
  return { requeued: others.length, failed: hopeless.length }
}

async function failStranded(work: Work, id: string) {
  const request = await claimRequest(work.db, id, randomUUID())
  if (!request) return
  const error = requestErrorOf(
    new AppError('execution_failed', 'The work was begun several times and never came to an end.'),
  )
  try {
    await transact(work.db, (tx) => failRequest(tx, request, error, work.config.maxInFlightPerPayer))
    await work.changeEvents.add(id)
  } catch (refusal) {
    if (!(refusal instanceof StaleAttemptError)) throw refusal
  }
}
