// The pool of threads: tasks that fail, spin, take all memory or wait, and the closing of the pool.
import { setFlagsFromString } from 'node:v8'
import t from 'tap'
import {
  isExhausted,
  isThreadShortage,
  openThreads,
  type RunOptions,
  type ThreadErrorCode,
  type Threads,
} from '../../server/threads/pool.ts'

const tasks = new URL('./tasks.ts', import.meta.url)

function flags() {
  return new Int32Array(new SharedArrayBuffer(8))
}

/** Resolves when the task that has these flags is running. */
async function begun(flags: Int32Array) {
  const { async: waits, value } = Atomics.waitAsync(flags, 0, 0)
  if (waits) await value
}

function goOn(flags: Int32Array) {
  Atomics.store(flags, 1, 1)
  Atomics.notify(flags, 1)
}

const ended = (code: ThreadErrorCode) => ({ name: 'ThreadError', code })

const answer = (threads: Threads) => threads.run(tasks, 'echo', 'alive')

t.test('runs any function of any file and answers its result', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  t.same(await threads.run(tasks, 'echo', { a: [1, 'two'] }), { a: [1, 'two'] })
  t.same(await threads.run(tasks, 'measure', Uint8Array.of(1, 2, 3)), { length: 3, sum: 6 })
  t.equal(threads.queueSize, 0)
  t.equal(threads.threadCount, 1)
})

t.test('flags of the process do not raise what the heap of a thread may hold', async (t) => {
  for (const flag of ['--max-old-space-size=1000', '--max-semi-space-size=64']) setFlagsFromString(flag)
  await using threads = openThreads({ maxThreads: 1 })
  const limit = await threads.run<number>(tasks, 'heapLimit', null)
  t.ok(limit < 256 * 2 ** 20, `${limit} bytes`)
})

t.test('errors of a task reach the caller', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  await t.rejects(threads.run(tasks, 'fail', null), { name: 'TypeError', message: 'as it was thrown' })
  await t.rejects(threads.run(tasks, 'noSuchFunction', null), /No handler function/)
  t.equal(await answer(threads), 'alive')
})

t.test('a signal ends a spinning task, with its thread only', async (t) => {
  await using threads = openThreads({ maxThreads: 2 })
  const spinning = flags()
  const holding = flags()
  const abort = new AbortController()
  const spun = threads.run(tasks, 'spin', spinning, { signal: abort.signal })
  const held = threads.run(tasks, 'hold', holding)
  await Promise.all([begun(spinning), begun(holding)])
  abort.abort()
  await t.rejects(spun, ended('aborted'))
  t.equal(await answer(threads), 'alive')
  goOn(holding)
  t.equal(await held, 'went on', 'the other thread goes on')
})

t.test('a time limit has a code of its own', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  await t.rejects(threads.run(tasks, 'spin', flags(), { signal: AbortSignal.timeout(20) }), ended('timed_out'))
  t.equal(await answer(threads), 'alive')
})

t.test('a task that takes all memory is ended, with its thread only', async (t) => {
  await using threads = openThreads({ maxThreads: 2 })
  const holding = flags()
  const held = threads.run(tasks, 'hold', holding)
  await begun(holding)
  await t.rejects(threads.run(tasks, 'hoard', null), ended('out_of_memory'))
  t.equal(await answer(threads), 'alive')
  goOn(holding)
  t.equal(await held, 'went on', 'the other thread goes on')
})

t.test('a task that exits its thread is reported', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  await t.rejects(threads.run(tasks, 'exit', null), ended('exited'))
  t.equal(await answer(threads), 'alive')
})

t.test('a waiting task can be aborted', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  const holding = flags()
  const held = threads.run(tasks, 'hold', holding)
  await begun(holding)

  const abort = new AbortController()
  const waiting = threads.run(tasks, 'echo', 'waiting', { signal: abort.signal })
  const next = threads.run(tasks, 'echo', 'next')
  t.equal(threads.queueSize, 2)
  abort.abort()
  await t.rejects(waiting, ended('aborted'))
  t.equal(threads.queueSize, 1)

  goOn(holding)
  t.equal(await held, 'went on')
  t.equal(await next, 'next')
})

t.test('an aborted signal runs nothing', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  await t.rejects(threads.run(tasks, 'spin', flags(), { signal: AbortSignal.abort() }), ended('aborted'))
  t.equal(await answer(threads), 'alive')
})

t.test('many tasks at once all end, in few threads', async (t) => {
  await using threads = openThreads({ maxThreads: 2 })
  const found = await Promise.all(Array.from({ length: 50 }, (_, i) => threads.run<number>(tasks, 'echo', i)))
  t.same(
    found,
    Array.from({ length: 50 }, (_, i) => i),
  )
  t.ok(threads.threadCount <= 2)
})

t.test('disposing ends running and waiting tasks', async (t) => {
  const threads = openThreads({ maxThreads: 1 })
  const spinning = flags()
  const spun = threads.run(tasks, 'spin', spinning)
  const waiting = threads.run(tasks, 'echo', 'late')
  await begun(spinning)
  const both = Promise.all([t.rejects(spun, ended('closed')), t.rejects(waiting, ended('closed'))])
  await threads[Symbol.asyncDispose]()
  await both
  await t.rejects(threads.run(tasks, 'echo', 'later'), ended('closed'))
})

t.test('a thread gets no variable that could hold a secret', async (t) => {
  process.env.COUNTERSIGN_TEST_SECRET = 'secret'
  t.teardown(() => delete process.env.COUNTERSIGN_TEST_SECRET)
  await using threads = openThreads({ maxThreads: 1 })
  const harmless = process.env.NODE_COMPILE_CACHE === undefined ? [] : ['NODE_COMPILE_CACHE']
  t.same(await threads.run(tasks, 'environment', null), harmless)
})

t.test('the event loop runs while a thread works', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  const abort = new AbortController()
  const spinning = flags()
  const spun = threads.run(tasks, 'spin', spinning, { signal: abort.signal })
  await begun(spinning)
  let turns = 0
  for (; turns < 1000; turns++) await new Promise(setImmediate)
  abort.abort()
  await t.rejects(spun, ended('aborted'))
  t.equal(turns, 1000)
})

/** Holds a thread until it is told to go on. */
async function occupy(threads: Threads, options: RunOptions = {}) {
  const holding = flags()
  const ended = threads.run(tasks, 'hold', holding, options)
  await begun(holding)
  return { ended, goOn: () => goOn(holding) }
}

/** Resolves when another pool has ended a task that ran for so long. */
async function pass(runningMs: number) {
  await using other = openThreads({ maxThreads: 1 })
  await other.run(tasks, 'spin', flags(), { runningMs }).catch(() => {})
}

const lane = (payer: string, { domain = `${payer}.example`, isFree = false } = {}) => ({ payer, domain, isFree })

t.test('a limit on running counts no waiting', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  const held = await occupy(threads)
  const spinning = flags()
  const waits = threads.run(tasks, 'spin', spinning, { runningMs: 30 })
  await pass(90)
  t.equal(threads.queueSize, 1, 'three times its limit has passed')
  held.goOn()
  await begun(spinning)
  await t.rejects(waits, ended('ran_too_long'))
  t.equal(await answer(threads), 'alive')
})

t.test('a limit on waiting counts no running', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  const held = await occupy(threads, { waitingMs: 1 })
  const waits = threads.run(tasks, 'echo', 'late', { waitingMs: 20 })
  const error = await waits.catch((thrown) => thrown)
  t.match(error, ended('waited'))
  t.ok(isThreadShortage(error))
  t.notOk(isExhausted(error))
  t.equal(threads.queueSize, 0)
  held.goOn()
  t.equal(await held.ended, 'went on')
})

t.test('the payer and the domain that used the least time come first, and free work after paid', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  const held = await occupy(threads, { lane: lane('busy') })
  const order: string[] = []
  const queue = (name: string, own: RunOptions['lane']) =>
    threads.run(tasks, 'echo', name, { lane: own }).then(() => order.push(name))
  const all = [
    queue('free', lane('account', { isFree: true })),
    queue('same payer', lane('busy', { domain: 'elsewhere.example' })),
    queue('same domain', lane('another', { domain: 'busy.example' })),
    queue('other', lane('other')),
  ]
  // Less than a millisecond counts as nothing.
  await pass(20)
  held.goOn()
  await Promise.all([held.ended, ...all])
  t.equal(order[0], 'other')
  t.equal(order.at(-1), 'free')
})

t.test('free work leaves a thread to paid work', async (t) => {
  await using threads = openThreads({ maxThreads: 2 })
  const free = lane('account', { isFree: true })
  const held = await occupy(threads, { lane: free })
  const second = threads.run(tasks, 'echo', 'second', { lane: free })
  t.equal(threads.queueSize, 1)
  t.equal(await threads.run(tasks, 'echo', 'paid', { lane: lane('buyer') }), 'paid')
  t.equal(threads.queueSize, 1)
  held.goOn()
  t.equal(await second, 'second')
})

t.test('slow tasks leave a thread to others, and end all the same', async (t) => {
  await using threads = openThreads({ maxThreads: 2, quickMs: 40 })
  const spinning = [flags(), flags(), flags()]
  const slow = spinning.map((own, n) =>
    threads.run(tasks, 'spin', own, { runningMs: 2000, lane: lane(`hostile ${n}`) }).catch((error) => error.code),
  )
  await begun(spinning[0]!)
  await begun(spinning[1]!)
  // Without this, they would wait for one of the three to end.
  for (let n = 0; n < 5; n++) t.equal(await threads.run(tasks, 'echo', n, { lane: lane(`honest ${n}`) }), n)
  let over = 0
  for (const one of slow) void one.then(() => over++)
  t.equal(over, 0, 'no slow task has ended')
  t.same(await Promise.all(slow), ['ran_too_long', 'ran_too_long', 'ran_too_long'])
})

t.test('tasks that are known to be slow hold half of the threads, and are not ended for the others', async (t) => {
  await using threads = openThreads({ maxThreads: 2, quickMs: 1 })
  const first = await occupy(threads, { isSlow: true })
  const second = threads.run(tasks, 'echo', 'second', { isSlow: true })
  t.equal(threads.queueSize, 1, 'a thread is free, and not for it')
  t.equal(await threads.run(tasks, 'echo', 'quick'), 'quick')
  t.equal(threads.queueSize, 1)
  first.goOn()
  t.same([await first.ended, await second], ['went on', 'second'])
})

t.test('a slow task keeps its thread while no other task waits', async (t) => {
  await using threads = openThreads({ maxThreads: 2, quickMs: 1 })
  const held = [await occupy(threads), await occupy(threads)]
  await pass(30)
  for (const { goOn } of held) goOn()
  t.same(await Promise.all(held.map(({ ended }) => ended)), ['went on', 'went on'])
})

t.test('a slow task that lost its thread can be aborted, and the pool be closed', async (t) => {
  const threads = openThreads({ maxThreads: 1, quickMs: 1 })
  const abort = new AbortController()
  const first = await occupy(threads)
  const second = flags()
  const moved = threads.run(tasks, 'spin', second, { signal: abort.signal })
  const waits = threads.run(tasks, 'echo', 'waits')
  first.goOn()
  await first.ended
  abort.abort()
  await t.rejects(moved, ended('aborted'))
  t.equal(await waits, 'waits')
  await threads[Symbol.asyncDispose]()
})
