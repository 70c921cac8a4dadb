// Imported first by the processes of the run: lets the bench change their clock. On SIGUSR2 the process reads from the file
// that CLOCK_FILE names how many milliseconds its clock is off.
//
// It covers what the process asks of Date, which is all of its times that are not the database's. It does not cover timers and
// performance.now(), which no step of a clock moves, nor the process's threads, nor the clock of Postgres.
import { readFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const file = process.env.CLOCK_FILE
if (isMainThread && file) {
  const True = Date
  let offset = 0
  process.on('SIGUSR2', () => {
    offset = Number(readFileSync(file, 'utf8'))
  })
  const now = () => True.now() + offset
  globalThis.Date = new Proxy(True, {
    construct: (target, args, made) => Reflect.construct(target, args.length === 0 ? [now()] : args, made),
    apply: () => new True(now()).toString(),
    get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
  })
}
