// The whole service in one process, API and worker, for `npm start`, the demo and the tests. In production the processes of the
// Procfile open the same parts separately.

import { openWork, type Work, type WorkOverrides } from '../workers/context.ts'
import { openDrainableRunner, type Runner } from '../workers/runner.ts'
import { openServer } from './app.ts'
import { type Config, publicSettings } from './config.ts'
import { type Api, type Overrides, openApi, openCore } from './context.ts'
import { openPresence } from './operate/presence.ts'
import { buildProbe } from './operate/readiness.ts'
import { openWarningLog } from './operate/warning-log.ts'

export interface Service extends AsyncDisposable {
  address: string
  api: Api
  work: Work
  runner: Runner
}

/** Needs a migrated database. Disposing drains both halves. */
export async function openService(
  config: Config,
  databaseUrl: string,
  overrides: Overrides & WorkOverrides = {},
): Promise<Service> {
  await using opened = new AsyncDisposableStack()
  const core = opened.use(await openCore(config, databaseUrl, overrides))
  const presence = opened.use(await openPresence(core, 'all', publicSettings(config), { probe: buildProbe(core) }))
  opened.use(openWarningLog(core, presence))
  const work = opened.use(await openWork(core, overrides))
  const runner = opened.use(await openDrainableRunner(work, presence))
  const api = opened.use(await openApi(core, presence))
  const server = opened.use(await openServer(api))
  opened.defer(() => api.drain())
  const closing = opened.move()
  return { address: server.address, api, work, runner, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}
