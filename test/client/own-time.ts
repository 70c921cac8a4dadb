// The time of a command that runs within this process: a test says how much has passed.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Test } from 'tap'

/** Never goes back, as the clock of a machine. */
let ahead = 0

/** Time is what the test says; the timers that look at it are called by `pass`. */
export function ownTime(t: Test) {
  const timers = new Map<unknown, () => void>()
  const { now } = Date
  const { setInterval: begin } = globalThis
  t.intercept(Date, 'now', { value: () => now() + ahead })
  t.intercept(globalThis, 'setInterval', {
    value: (work: () => void, ms: number) => {
      const timer = begin(work, ms)
      timers.set(timer, AsyncLocalStorage.bind(work))
      return timer
    },
  })
  const pass = (ms: number) => {
    ahead += ms
    for (const [timer, work] of timers) if ((timer as { _destroyed?: boolean })._destroyed !== true) work()
  }
  return Object.assign(pass, { begun: () => timers.size })
}
