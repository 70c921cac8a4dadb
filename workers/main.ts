// The worker process: takes jobs until it gets a signal to stop, then drains within 30 seconds.
import { publicSettings, readConfig } from '../server/config.ts'
import { openCore } from '../server/context.ts'
import { openPresence } from '../server/operate/presence.ts'
import { openWarningLog } from '../server/operate/warning-log.ts'
import { runProcess } from '../server/process.ts'
import { describeAssessment } from '../server/verification/offer/offer.ts'
import { openWork } from './context.ts'
import { openDrainableRunner } from './runner.ts'

await runProcess(async (opened) => {
  const config = readConfig()
  if (!config.databaseUrl) throw new Error('DATABASE_URL is required here; `npm start` starts its own database')
  const core = opened.use(await openCore(config, config.databaseUrl))
  const presence = opened.use(await openPresence(core, 'worker', publicSettings(config)))
  opened.use(openWarningLog(core, presence))
  const work = opened.use(await openWork(core))
  const runner = opened.use(await openDrainableRunner(work, presence))
  core.log.info({
    event: 'worker_started',
    concurrency: config.workerConcurrency,
    methodology: work.methodology,
    assessment: describeAssessment(config),
  })
  return { log: core.log, died: runner.died }
})
