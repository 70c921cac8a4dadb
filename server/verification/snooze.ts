// Putting a job off: its request waits in the queue, and says what for.
import { isDeepStrictEqual } from 'node:util'
import type { Work } from '../../workers/context.ts'
import type { OriginBusyError } from '../../workers/retrieval/origins.ts'
import { enqueue } from '../db/jobs.ts'
import { transact } from '../db/pool.ts'
import type { SettlementIntent } from '../payments/x402.ts'
import { jobOf } from './admission.ts'
import { holdsRequest, noteIntent, noteWaiting, type Waiting, type WorkingRequest } from './request.ts'

export interface Snooze {
  seconds: number
  /** What the caller is told that the request waits for; nothing where a worker goes on with it soon. */
  waiting?: Waiting
  /** What is known of the settlement by now. */
  intent?: SettlementIntent | null | undefined
  /** The line of an origin that the job joins. */
  line?: OriginBusyError
}

/** The running job row is given up and a fresh one takes its place: no attempt is spent, no backoff applies. */
export async function snooze(request: WorkingRequest, work: Work, { seconds, waiting, intent, line }: Snooze) {
  const runAt = new Date(Date.now() + seconds * 1000)
  const job = { name: 'verify_request' as const, payload: { request_id: request.id }, ...jobOf(request), runAt }
  await transact(work.db, async (tx) => {
    if (!(await holdsRequest(tx, request))) return
    if (intent && !isDeepStrictEqual(intent, request.intent)) await noteIntent(tx, request, intent)
    if (waiting) await noteWaiting(tx, request, waiting)
    if (line) await work.origins.join(tx, line, request.changed_at, job)
    await enqueue(tx, [job])
  })
}

/** So many seconds from now, as ISO 8601. */
export function inSeconds(seconds: number): string {
  return new Date(Date.now() + seconds * 1000).toISOString()
}
