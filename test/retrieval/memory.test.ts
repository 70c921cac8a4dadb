// The bound on page bodies in memory.
import t from 'tap'
import { buildBodyMemory, type HeldMemory } from '../../workers/retrieval/memory.ts'

const never = new AbortController().signal

/** Whether it is still waiting after all other work that can continue has continued. */
async function isWaiting(taking: Promise<unknown>): Promise<boolean> {
  const turn = new Promise((resolve) => setImmediate(resolve, 'waiting'))
  return (await Promise.race([taking.catch(() => 'ended'), turn])) === 'waiting'
}

t.test('what is beyond the bound waits until memory is given back', async (t) => {
  const memory = buildBodyMemory(100)
  const first = memory.open(never)
  const second = memory.open(never)
  await first.take(60)
  await second.take(40)
  const more = second.take(10)
  t.ok(await isWaiting(more))
  first[Symbol.dispose]()
  await more
  t.equal(memory.held, 50)
  second[Symbol.dispose]()
  t.equal(memory.held, 0)
})

t.test('fetches that are all half done do not wait for each other: the oldest goes on', async (t) => {
  const memory = buildBodyMemory(100)
  const [oldest, other] = [memory.open(never), memory.open(never)] as [HeldMemory, HeldMemory]
  await oldest.take(50)
  await other.take(50)
  const waiting = other.take(10)
  await oldest.take(30)
  t.equal(memory.held, 130, 'beyond the bound by what one body needs')
  t.ok(await isWaiting(waiting))
  oldest[Symbol.dispose]()
  await waiting
})

t.test('a wait ends with its signal', async (t) => {
  const memory = buildBodyMemory(10)
  await memory.open(never).take(10)
  const stop = new AbortController()
  const held = memory.open(stop.signal)
  const waiting = held.take(1)
  stop.abort(new Error('stopped'))
  await t.rejects(waiting, { message: 'stopped' })
})

t.test('the largest of the stalled fetches is ended when another one needs its memory', async (t) => {
  let now = 0
  const memory = buildBodyMemory(100, () => now)
  const small = memory.open(never)
  const large = memory.open(never)
  await small.take(20)
  await large.take(80)
  const wanting = memory.open(never)
  const early = wanting.take(10)
  t.ok(await isWaiting(early))
  t.notOk(large.signal.aborted, 'not in its first seconds')
  now = 6000
  const again = memory.open(never).take(10)
  t.ok(large.signal.aborted)
  t.match(large.signal.reason, { code: 'source_timeout', message: /too slowly/ })
  t.notOk(small.signal.aborted)
  large[Symbol.dispose]()
  await Promise.all([early, again])
  t.equal(memory.held, 40)
})
