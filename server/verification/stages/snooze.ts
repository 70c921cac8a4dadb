// Putting a job off: its request waits in the queue and stores what it waits for.
import { isDeepStrictEqual } from 'node:util'
import { enqueue } from '../../db/jobs.ts'
import { transact } from '../../db/pool.ts'
import type { SettlementIntent } from '../../payments/x402.ts'
import { holdsRequest, storeIntent, storeWaiting, type Waiting, type WorkingRequest } from '../request.ts'
import { jobOf } from './job.ts'
import type { StageTools } from './stage-tools.ts'

export interface Snooze {
  seconds: number
  /** What the request waits for, for the answer to its caller; absent if a worker continues soon. */
  waiting?: Waiting
  /** The settlement intent with what was learned since it was stored. */
  intent?: SettlementIntent | null | undefined
}

/** Stores a new job in place of the running one: no attempt is spent, and no backoff applies. */
export async function snooze(
  request: WorkingRequest,
  { db }: Pick<StageTools, 'db'>,
  { seconds, waiting, intent }: Snooze,
) {
  const runAt = new Date(Date.now() + seconds * 1000)
  const job = { name: 'verify_request' as const, payload: { request_id: request.id }, ...jobOf(request), runAt }
  await transact(db, async (tx) => {
    if (!(await holdsRequest(tx, request))) return
    if (intent && !isDeepStrictEqual(intent, request.intent)) await storeIntent(tx, request, intent)
    if (waiting) await storeWaiting(tx, request, waiting)
    await enqueue(tx, [job])
  })
}

/** The time that many seconds from now, in ISO 8601. */
export function inSeconds(seconds: number): string {
  return new Date(Date.now() + seconds * 1000).toISOString()
}
