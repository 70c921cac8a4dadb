// The pool of threads: tasks that fail, spin, take all memory or wait, and the closing of the pool.
import { setFlagsFromString } from 'node:v8'
import t from 'tap'
import { openThreads, type ThreadErrorCode, type Threads } from '../../server/threads/pool.ts'

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

t.test('transferred buffers are detached here and complete in the thread', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  const bytes = new Uint8Array(1000).fill(3)
  const found = threads.run(tasks, 'measure', bytes, { transfer: [bytes.buffer] })
  t.same(await found, { length: 1000, sum: 3000 })
  t.equal(bytes.buffer.detached, true)

  const kept = new Uint8Array(1000).fill(3)
  await threads.run(tasks, 'measure', kept)
  t.equal(kept.buffer.detached, false, 'without it, a clone goes')
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

t.test('a waiting task can be aborted, and its argument is not transferred', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  const holding = flags()
  const held = threads.run(tasks, 'hold', holding)
  await begun(holding)

  const abort = new AbortController()
  const bytes = Uint8Array.of(1, 2)
  const waiting = threads.run(tasks, 'measure', bytes, { transfer: [bytes.buffer], signal: abort.signal })
  const next = threads.run(tasks, 'echo', 'next')
  t.equal(threads.queueSize, 2)
  abort.abort()
  await t.rejects(waiting, ended('aborted'))
  t.equal(bytes.buffer.detached, false)
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
