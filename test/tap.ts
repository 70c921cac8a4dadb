// tap without its async hook, for the process of the tests: `test/together.ts` imports it before anything else. An error that
// no test catches fails the test that is running.
//
// tap follows every promise and every resource of the process by an async hook, to find the test in which an uncaught
// error began. That takes a sixth of the processor time of the tests of a service.

import hooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'
import type { Base, Test } from 'tap'

/** tap makes its hook when it is imported, and no other one later. */
async function importTap(): Promise<Test> {
  const { createHook } = hooks
  const idle: hooks.AsyncHook = { enable: () => idle, disable: () => idle }
  let calls = 0
  hooks.createHook = () => {
    calls++
    return idle
  }
  syncBuiltinESMExports()
  const { t } = await import('tap')
  hooks.createHook = createHook
  syncBuiltinESMExports()
  if (calls !== 1) throw new Error(`tap made ${calls} async hooks when it was imported, not 1`)
  return t
}

/** The test that began last of those that run, from `test` down. */
function findRunning(test: Base): Base {
  const running = [...((test as { activeSubtests?: Set<Base> }).activeSubtests ?? [])].at(-1)
  return running ? findRunning(running) : test
}

export const t = await importTap()

// An unhandled rejection comes here too.
process.on('uncaughtException', (error: unknown, origin) => {
  const caught = error instanceof Error ? error : new Error('thrown, and not an Error', { cause: error })
  findRunning(t).threw(Object.assign(caught, { tapCaught: origin }))
})
