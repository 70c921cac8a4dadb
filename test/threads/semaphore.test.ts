// Slow work and free work hold half of the places; the rest stays for others.
import t from 'tap'
import type { Lane } from '../../server/threads/lanes.ts'
import { buildSemaphore } from '../../server/threads/semaphore.ts'

const never = new AbortController().signal
const lane = (payer: string, isFree = false): Lane => ({ payer, domain: `${payer}.test`, isFree })
const tooSlow = () => new Error('too slow')

// The timers of the semaphore do not keep a process alive.
const alive = setInterval(() => {}, 60_000)
t.teardown(() => clearInterval(alive))

/** Work that ends when it is told to, or when it is aborted. */
function openWork() {
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  return {
    begun: begun.promise,
    end: gate.resolve,
    run(signal: AbortSignal) {
      begun.resolve()
      return Promise.race([gate.promise, aborted(signal)])
    },
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

/** A semaphore that knows how long work usually takes. */
async function openKnowing(places: number) {
  const semaphore = buildSemaphore(places, { tooSlow, slowMs: 1 })
  await semaphore.timed(async () => {})
  return semaphore
}

t.test('slow work keeps half of the places, and gives the others up when work waits', async (t) => {
  const semaphore = await openKnowing(4)
  const slow = Array.from({ length: 6 }, openWork)
  const passing = slow.map(({ run }, i) => semaphore.pass(run, never, lane(`slow ${i}`)))
  const outcomes = passing.map((one) => one.catch((error) => error))
  for (let i = 0; i < 3; i++) {
    const quick = openWork()
    const passed = semaphore.pass(quick.run, never, lane(`quick ${i}`))
    await quick.begun
    quick.end()
    await passed
  }
  for (const { end } of slow) end()
  const ended = (await Promise.all(outcomes)).map((outcome) => outcome instanceof Error && outcome.message)
  t.same(ended.slice(0, 2), [false, false], 'these two went on')
  t.same(ended.slice(2, 4), ['too slow', 'too slow'])
})

t.test('slow work goes on while nothing waits that could take its place', async (t) => {
  const [semaphore, later] = [await openKnowing(4), await openKnowing(4)]
  const [slow, others] = [Array.from({ length: 4 }, openWork), Array.from({ length: 4 }, openWork)]
  const passing = slow.map(({ run }) => semaphore.pass(run, never))
  await Promise.all(slow.map(({ begun }) => begun))
  // What began later has been slow for long enough to be ended.
  const passingLater = others.map(({ run }) => later.pass(run, never).catch(() => {}))
  await later.pass(async () => {}, never)
  await t.rejects(semaphore.pass(openWork().run, never, lane('slow before'), true), { message: 'too slow' })
  for (const { end } of [...slow, ...others]) end()
  await t.resolves(Promise.all([...passing, ...passingLater]))
})

t.test('work that was slow before begins at once or not at all', async (t) => {
  const semaphore = await openKnowing(4)
  const slow = Array.from({ length: 2 }, openWork)
  const passing = slow.map(({ run }) => semaphore.pass(run, never, lane('one'), true))
  await Promise.all(slow.map(({ begun }) => begun))
  await t.rejects(semaphore.pass(openWork().run, never, lane('two'), true), { message: 'too slow' })
  t.equal(semaphore.waiting, 0)
  await semaphore.pass(async () => {}, never, lane('three'))
  for (const { end } of slow) end()
  await Promise.all(passing)
  await semaphore.pass(async () => {}, never, lane('two'), true)
})

t.test('free work has half of the places', async (t) => {
  const semaphore = await openKnowing(4)
  const free = Array.from({ length: 4 }, openWork)
  const passing = free.map(({ run }, i) => semaphore.pass(run, never, lane(`free ${i}`, true)))
  await Promise.all(free.slice(0, 2).map(({ begun }) => begun))
  t.equal(semaphore.waiting, 2)
  await semaphore.pass(async () => {}, never, lane('paid'))
  for (const { end } of free) end()
  await Promise.all(passing)
})

t.test('while it is not known how long work takes, none is slow', async (t) => {
  const semaphore = buildSemaphore(2, { tooSlow, slowMs: 1 })
  const works = Array.from({ length: 2 }, openWork)
  const passing = works.map(({ run }) => semaphore.pass(run, never))
  const third = semaphore.pass(async () => {}, never)
  await Promise.all(works.map(({ begun }) => begun))
  t.equal(semaphore.waiting, 1)
  for (const { end } of works) end()
  await t.resolves(Promise.all([...passing, third]))
})
