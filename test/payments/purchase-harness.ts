// A whole service that takes real payments; the test controls its queue's clock and its workers.
import { randomBytes } from 'node:crypto'
import type { Facilitator } from '../../server/payments/x402.ts'
import { openLog } from '../../server/telemetry.ts'
import { recoveryToken } from '../../server/verification/recovery-token.ts'
import { rescue } from '../../workers/beat.ts'
import { openRunner } from '../../workers/runner.ts'
import { startChild } from '../children.ts'
import { startSystem, usualSettings } from '../system.ts'
import type { Place } from './crashing-process.ts'
import { openLogLines } from './log-lines.ts'
import type { Purchase } from './test-purchase.ts'

export type PurchaseHarness = Awaited<ReturnType<typeof openPurchaseHarness>>

/** @param env the configuration of its payments; `open` opens a facilitator other than the configured one */
export async function openPurchaseHarness(
  env: Record<string, string>,
  open?: (log: ReturnType<typeof openLog>) => Promise<Facilitator>,
) {
  await using opened = new AsyncDisposableStack()
  const logLines = openLogLines()
  const log = openLog('trace', logLines)
  const settings = { SIGNING_SEED: randomBytes(32).toString('hex'), RATE_LIMIT_PER_MINUTE: '0', ...env }
  const overrides = { log, ...(open && { facilitator: await open(log) }) }
  const system = opened.use(await startSystem({ env: settings, overrides }))
  const { work } = system.service
  let { runner } = system.service
  const closing = opened.move()
  return {
    system,
    logLines,
    env: settings,
    recover: (id: string, headers?: Record<string, string>) =>
      system.recover(id, recoveryToken(work.secrets.recovery, id), headers),
    /** Makes all waiting jobs due now. */
    async hurry() {
      await system.sql(`
        with due as (update graphile_worker._private_jobs set run_at = now() where locked_at is null returning id)
        select pg_notify('jobs:insert', json_build_object('r', random(), 'count', count(*))::text) from due`)
    },
    /** Waits for the next settlement of this purchase that is not paid, and until its job is back in the queue. */
    inDoubt: async (order: Purchase) => logLines.next('settlement', { request_id: await order.requestId }),
    /** Stops the worker of this process. */
    stopWorker: () => runner[Symbol.asyncDispose](),
    /** Starts another worker, and frees the jobs of the earlier ones as if their beats were old. */
    async startWorker() {
      await system.sql(`update worker_beats set beat_at = beat_at - interval '1 hour'`)
      await system.sql(`update graphile_worker._private_jobs set locked_at = locked_at - interval '1 hour'
                        where locked_by is not null`)
      await rescue(work)
      runner = closing.use(await openRunner(work))
    },
    /** Starts a process of this service that crashes at that place. */
    startCrashingProcess(half: 'api' | 'worker', place: Place) {
      const own = { DATABASE_URL: system.databaseUrl, PORT: '0', LOG_LEVEL: 'debug' }
      const aim = { CRASH_IN: half, CRASH_PLACE: place }
      const given = { ...settings, ...system.site.env, ...own, ...aim }
      const whole = { ...usualSettings(given), ...given }
      return closing.use(startChild('test/payments/crashing-process.ts', whole, { ipc: true }))
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}
