// The queue in front of the chain's lock, without a database: a lock that is given by hand.
import t from 'tap'
import { BatchOverflowError } from '../../server/db/batch.ts'
import { openLockQueue } from '../../server/db/lock-queue.ts'

/** Turns that stop where they would wait for the lock, and where they would wait for the commit. */
function openApiProcess(limits = { batch: 4, queue: 10 }) {
  const waiting: PromiseWithResolvers<void>[] = []
  const writing: { items: number[]; commit: () => void; fail: (error: Error) => void }[] = []
  const turns = openLockQueue(async (take: () => number[]) => {
    const lock = Promise.withResolvers<void>()
    waiting.push(lock)
    await lock.promise
    const items = take()
    const commit = Promise.withResolvers<void>()
    writing.push({ items, commit: commit.resolve, fail: commit.reject })
    await commit.promise
    return items.map((item) => item * 10)
  }, limits)
  return { turns, waiting, writing }
}

async function until(holds: () => boolean) {
  while (!holds()) await new Promise((turn) => setImmediate(turn))
}

t.test('whatever comes while a turn waits for the lock goes along', async (t) => {
  const { turns, waiting, writing } = openApiProcess()
  const first = turns.add(1)
  await until(() => waiting.length === 1)
  const others = [turns.add(2), turns.add(3)]
  waiting[0]!.resolve()
  await until(() => writing.length === 1)
  t.same(writing[0]!.items, [1, 2, 3])
  t.equal(waiting.length, 1, 'nobody waits for the lock for nothing')
  writing[0]!.commit()
  t.same(await Promise.all([first, ...others]), [10, 20, 30])
})

t.test('the next turn waits for the lock while one writes, and no third', async (t) => {
  const { turns, waiting, writing } = openApiProcess({ batch: 4, queue: 100 })
  const all = [turns.add(1)]
  await until(() => waiting.length === 1)
  waiting[0]!.resolve()
  await until(() => writing.length === 1)
  all.push(...[2, 3, 4, 5, 6].map((item) => turns.add(item)))
  await until(() => waiting.length === 2)
  await new Promise((turn) => setImmediate(turn))
  t.equal(waiting.length, 2)
  waiting[1]!.resolve()
  await until(() => writing.length === 2)
  t.same(writing[1]!.items, [2, 3, 4, 5], 'no more than a batch')
  await until(() => waiting.length === 3)
  t.equal(turns.size, 6)
  waiting[2]!.resolve()
  await until(() => writing.length === 3)
  for (const turn of writing.toReversed()) turn.commit()
  t.same(await Promise.all(all), [10, 20, 30, 40, 50, 60], 'each gets its own outcome, whichever turn ends first')
  t.equal(turns.size, 0)
})

t.test('a turn that never got the lock fails only those who waited for it from its beginning', async (t) => {
  const { turns, waiting, writing } = openApiProcess()
  const early = Promise.allSettled([turns.add(1), turns.add(2)])
  await until(() => waiting.length === 1)
  const late = turns.add(3)
  waiting[0]!.reject(new Error('no database'))
  t.same(
    (await early).map((one) => one.status),
    ['rejected', 'rejected'],
  )
  await until(() => waiting.length === 2)
  waiting[1]!.resolve()
  await until(() => writing.length === 1)
  writing[0]!.commit()
  t.equal(await late, 30)
})

t.test('a turn that fails after it took its items fails these alone', async (t) => {
  const { turns, waiting, writing } = openApiProcess()
  const failed = turns.add(1)
  await until(() => waiting.length === 1)
  waiting[0]!.resolve()
  await until(() => writing.length === 1)
  const next = turns.add(2)
  await until(() => waiting.length === 2)
  writing[0]!.fail(new Error('the commit failed'))
  await t.rejects(failed, /the commit failed/)
  waiting[1]!.resolve()
  await until(() => writing.length === 2)
  writing[1]!.commit()
  t.equal(await next, 20)
})

t.test('what is being written counts against the queue, and disposing waits for all of it', async (t) => {
  const { turns, waiting, writing } = openApiProcess({ batch: 2, queue: 3 })
  const all = [turns.add(1), turns.add(2), turns.add(3)]
  await t.rejects(turns.add(4), BatchOverflowError)
  await until(() => waiting.length === 1)
  waiting[0]!.resolve()
  await until(() => writing.length === 1 && waiting.length === 2)
  await t.rejects(turns.add(4), BatchOverflowError)
  let disposed = false
  const disposing = turns[Symbol.asyncDispose]().then(() => {
    disposed = true
  })
  writing[0]!.commit()
  await Promise.all(all.slice(0, 2))
  t.notOk(disposed)
  waiting[1]!.resolve()
  await until(() => writing.length === 2)
  writing[1]!.commit()
  await disposing
  t.same(await Promise.all(all), [10, 20, 30])
})

t.test('a turn with too few outcomes is a fault of all of it', async (t) => {
  const turns = openLockQueue(
    async (take: () => number[]) => {
      take()
      return []
    },
    { batch: 4, queue: 4 },
  )
  await t.rejects(turns.add(1), /0 outcomes for 1 items/)
})
