// The installation that the capacity bench measures: one web process, one worker process, Postgres and buyers on this
// machine.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { openChild } from './child.ts'
import { openGenerator } from './generator.ts'
import { type Lab, openClient } from './lab.ts'
import { bodyFor, signPayments } from './orders.ts'
import { openWatch, peakMb } from './watch.ts'
import { openSource } from './worker-harness.ts'

export type Kind = 'short' | 'long'

/** Who uses CPU, as the watch names them. */
export const USERS = [
  'load loop',
  'API loop',
  'API threads',
  'Postgres',
  'worker loop',
  'worker threads',
  'page loop',
] as const
export type User = (typeof USERS)[number]

export interface Run {
  /** Completed verifications per second, from the first call to the last result. */
  rate: number
  /** Milliseconds of CPU of one verification. */
  cpu: Record<User, number>
  /** Cores that other programs used during the run, including the bench itself. */
  others: number
}

export interface CapacityHouse extends AsyncDisposable {
  /** Most verifications that the worker runs in parallel. */
  concurrency: number
  bytes: Record<Kind, number>
  /** The largest memory of the two processes so far, in MB; NaN if the system does not report it. */
  memory(): { web: number; worker: number }
  /** Buys these verifications with so many connections and waits for all results. */
  run(kinds: readonly Kind[]): Promise<Run>
}

export const CALLERS = 32

export async function openCapacityHouse(lab: Lab): Promise<CapacityHouse> {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const source = opened.use(await openSource(lab))
  const env = { DATABASE_URL: url, TRUST_PROXY: '1', MAX_QUEUE_SECONDS: '0', ...source.env }
  const worker = opened.use(await openChild(lab, 'workers/main.ts', { event: 'worker_started', env }))
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env }))
  const generator = opened.use(await openGenerator(lab))
  const client = await openClient(url, opened)
  const processes = { load: generator.pid, API: api.pid, worker: worker.pid, page: source.page.pid }
  let bought = 0
  const closing = opened.move()
  return {
    concurrency: Number(worker.ready.concurrency),
    bytes: source.bytes,
    memory: () => ({ web: peakMb(api.pid), worker: peakMb(worker.pid) }),
    async run(kinds) {
      const payments = await signPayments(kinds.length)
      const requests = kinds.map((kind, n) => {
        const order = bought++
        const body = JSON.stringify(bodyFor(source.nextUrl(kind === 'long' ? '/long/' : '/')))
        const headers = {
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
          'payment-signature': payments[n]!,
          'x-forwarded-for': `10.${order >> 16}.${(order >> 8) & 255}.${order & 255}`,
        }
        return { headers, body }
      })
      await using watch = await openWatch(url, processes)
      const milliseconds = await watch.during(async () => {
        const started = performance.now()
        await generator.run({
          origin: String(api.ready.address),
          path: '/api/agent/v1/verify-source',
          method: 'POST',
          requests,
          connections: CALLERS,
          status: 202,
        })
        while ((await client.query(WORKING)).rowCount) await pause(POLL_MS)
        return performance.now() - started
      })
      const { rows } = await client.query<{ n: number }>(COMPLETED)
      if (rows[0]!.n !== bought) throw new Error(`${rows[0]!.n} of ${bought} verifications were completed`)
      const { used, busyMs, elapsedMs } = watch.sums()
      const ours = [...used.values()].reduce((sum, ms) => sum + ms, 0)
      const cpu = Object.fromEntries(USERS.map((name) => [name, (used.get(name) ?? 0) / kinds.length]))
      return {
        rate: (kinds.length * 1000) / milliseconds,
        // Sound: USERS names every member.
        cpu: cpu as Run['cpu'],
        others: Math.max(0, (busyMs - ours) / elapsedMs),
      }
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

const POLL_MS = 20
const WORKING = `select from verification_requests
  where state in ('accepted', 'observed', 'assessed', 'settling', 'settled') limit 1`
const COMPLETED = "select count(*)::int n from verification_requests where state = 'completed'"
