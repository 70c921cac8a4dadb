// A whole service that takes real payments, with its queue's clock and its workers' lives under the test's control.
import { randomBytes } from 'node:crypto'
import type { Facilitator } from '../../server/payments/x402.ts'
import { openLog } from '../../server/telemetry.ts'
import { recoveryToken } from '../../server/verification/recovery-token.ts'
import { rescue } from '../../workers/beat.ts'
import { openRunner } from '../../workers/runner.ts'
import { startChild } from '../children.ts'
import { startSystem } from '../system.ts'
import type { Place } from './crashing-process.ts'
import { openLogBook } from './log-lines.ts'
import type { Order } from './test-purchase.ts'

export type Shop = Awaited<ReturnType<typeof openShop>>

/** @param env where it is paid; `open` makes its facilitator, if that is not the one of its configuration */
export async function openShop(
  env: Record<string, string>,
  open?: (log: ReturnType<typeof openLog>) => Promise<Facilitator>,
) {
  await using opened = new AsyncDisposableStack()
  const book = openLogBook()
  const log = openLog('trace', book)
  const settings = { SIGNING_SEED: randomBytes(32).toString('hex'), RATE_LIMIT_PER_MINUTE: '0', ...env }
  const overrides = { log, ...(open && { facilitator: await open(log) }) }
  const system = opened.use(await startSystem({ env: settings, overrides }))
  const { work } = system.service
  let { runner } = system.service
  const closing = opened.move()
  return {
    system,
    book,
    env: settings,
    recover: (id: string, headers?: Record<string, string>) =>
      system.recover(id, recoveryToken(work.secrets.recovery, id), headers),
    /** Lets everything that waits in the queue for a later time happen now. */
    async hurry() {
      await system.sql(`
        with due as (update graphile_worker._private_jobs set run_at = now() where locked_at is null returning id)
        select pg_notify('jobs:insert', json_build_object('r', random(), 'count', count(*))::text) from due`)
    },
    /** The next settlement of this order that is not paid, once the queue has it back. */
    inDoubt: async (order: Order) => book.next('settlement', { request_id: await order.requestId }),
    /** The worker of this process takes no more jobs. */
    stopWorker: () => runner[Symbol.asyncDispose](),
    /** Another worker, which finds what those before it left behind, as if they had been silent for long. */
    async startWorker() {
      await system.sql(`update worker_beats set beat_at = beat_at - interval '1 hour'`)
      await system.sql(`update graphile_worker._private_jobs set locked_at = locked_at - interval '1 hour'
                        where locked_by is not null`)
      await rescue(work)
      runner = closing.use(await openRunner(work))
    },
    /** A process of this service that dies at that place. */
    startVictim(half: 'api' | 'worker', place: Place) {
      const own = { DATABASE_URL: system.databaseUrl, PORT: '0', LOG_LEVEL: 'debug' }
      const aim = { VICTIM: half, VICTIM_PLACE: place }
      const whole = { ...settings, ...system.site.env, ...own, ...aim }
      return closing.use(startChild('test/payments/crashing-process.ts', whole, { ipc: true }))
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}
