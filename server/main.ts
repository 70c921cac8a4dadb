// Entry of the API process. After SIGTERM it finishes the answers in progress.

import { openServer } from './app.ts'
import { publicSettings, readConfig } from './config.ts'
import { openApi, openCore } from './context.ts'
import { openPresence } from './operate/presence.ts'
import { buildProbe } from './operate/readiness.ts'
import { openWarningLog } from './operate/warning-log.ts'
import { runProcess } from './process.ts'
import { describeAssessment } from './verification/offer/offer.ts'

/** A call that gets no database connection in this time is answered 503. */
const ACQUIRE_TIMEOUT_MS = 4000

await runProcess(async (opened) => {
  const config = readConfig()
  if (!config.databaseUrl) throw new Error('DATABASE_URL is required here; `npm start` starts its own database')
  const core = opened.use(await openCore(config, config.databaseUrl, { acquireTimeoutMs: ACQUIRE_TIMEOUT_MS }))
  const presence = opened.use(await openPresence(core, 'web', publicSettings(config), { probe: buildProbe(core) }))
  opened.use(openWarningLog(core, presence))
  const api = opened.use(await openApi(core, presence))
  const server = opened.use(await openServer(api))
  core.log.info({ event: 'listening', address: server.address, assessment: describeAssessment(config) })
  return { log: core.log, stopping: () => api.drain() }
})
