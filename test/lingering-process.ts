// A process of the service that still waits for something when all that it opened is closed, as for an outside answer.
import { runProcess } from '../server/process.ts'
import { openLog } from '../server/telemetry.ts'

await runProcess(async () => {
  setInterval(() => {}, 60_000)
  const log = openLog('info')
  log.info({ event: 'ready' })
  return { log }
})
