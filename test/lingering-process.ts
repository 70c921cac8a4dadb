// A process of the service that never gets through its start, with STARTS=never, or gets through it at the second SIGTERM, with
// STARTS=second, or else still waits for something when all that it opened is closed, as for an outside answer.
import { runProcess } from '../server/process.ts'
import { openLog } from '../server/telemetry.ts'

await runProcess(async () => {
  const log = openLog('info')
  log.info({ event: 'ready' })
  setInterval(() => {}, 60_000)
  // All listeners of a signal run before the next signal is delivered, so a second signal may follow this line.
  let heard = 0
  const second = Promise.withResolvers<void>()
  process.on('SIGTERM', () => {
    log.info({ event: 'asked' })
    if (++heard === 2) second.resolve()
  })
  process.on('removeListener', (signal) => log.info({ event: 'listener_removed', signal }))
  if (process.env.STARTS === 'never') await new Promise(() => {})
  if (process.env.STARTS === 'second') await second.promise
  return { log }
})
