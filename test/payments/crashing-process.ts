// A process of the service that kills itself with SIGKILL at one place of a payment.
//   CRASH_IN=worker|api   the process; a worker takes no job before it gets a message
//   CRASH_PLACE=...    the place
import { once } from 'node:events'
import { openServer } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { openApi, openCore } from '../../server/context.ts'
import type { Facilitator } from '../../server/payments/x402.ts'
import { runProcess } from '../../server/process.ts'
import { openWork } from '../../workers/context.ts'
import { openRunner } from '../../workers/runner.ts'
import { NO_THREADS } from '../no-threads.ts'

export type Place = 'after verify' | 'before call' | 'after call' | 'after receipt'

const { CRASH_IN: half, CRASH_PLACE: place } = process.env

function pass(here: Place) {
  if (here === place) process.kill(process.pid, 'SIGKILL')
}

function mortal(facilitator: Facilitator): Facilitator {
  return {
    ...facilitator,
    async verify(...given) {
      await facilitator.verify(...given)
      pass('after verify')
    },
    async settle(offer, intent) {
      pass('before call')
      const outcome = await facilitator.settle(offer, intent)
      pass('after call')
      return outcome
    },
  }
}

await runProcess(async (opened) => {
  const config = readConfig()
  const core = opened.use(await openCore(config, config.databaseUrl ?? '', { threads: NO_THREADS }))
  core.facilitator = mortal(core.facilitator)
  if (half === 'api') {
    const api = opened.use(await openApi(core))
    const server = opened.use(await openServer(api))
    core.log.info({ event: 'listening', address: server.address })
    return { log: core.log, stopping: () => api.drain() }
  }
  const work = opened.use(await openWork(core))
  const { chain } = work
  work.chain = {
    ...chain,
    async append(entry) {
      const appended = await chain.append(entry)
      pass('after receipt')
      return appended
    },
  }
  const released = once(process, 'message')
  process.send?.({ type: 'ready' })
  await released
  opened.use(await openRunner(work))
  process.send?.({ type: 'running' })
  return { log: core.log }
})
