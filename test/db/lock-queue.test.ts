// The lock queue, with a lock and a commit that the test gives by hand.
import t from 'tap'
import { BatchOverflowError } from '../../server/db/batch.ts'
import { openLockQueue } from '../../server/db/lock-queue.ts'

/** A lock queue whose transactions wait for the test at the lock and at the commit. */
function openManualQueue(limits = { batch: 4, queue: 10 }) {
  const waiting: PromiseWithResolvers<void>[] = []
  const writing: { items: number[]; commit: () => void; fail: (error: Error) => void }[] = []
  const queue = openLockQueue(async (take: () => number[]) => {
    const lock = Promise.withResolvers<void>()
    waiting.push(lock)
    await lock.promise
    const items = take()
    const commit = Promise.withResolvers<void>()
    writing.push({ items, commit: commit.resolve, fail: commit.reject })
    await commit.promise
    return items.map((item) => item * 10)
  }, limits)
  return { queue, waiting, writing }
}

async function until(holds: () => boolean) {
  while (!holds()) await new Promise((tick) => setImmediate(tick))
}

t.test('items that arrive while a transaction waits for the lock go along', async (t) => {
  const { queue, waiting, writing } = openManualQueue()
  const first = queue.add(1)
  await until(() => waiting.length === 1)
  const others = [queue.add(2), queue.add(3)]
  waiting[0]!.resolve()
  await until(() => writing.length === 1)
  t.same(writing[0]!.items, [1, 2, 3])
  t.equal(waiting.length, 1, 'without items no transaction waits for the lock')
  writing[0]!.commit()
  t.same(await Promise.all([first, ...others]), [10, 20, 30])
})

t.test('one transaction waits for the lock while another writes, and no third', async (t) => {
  const { queue, waiting, writing } = openManualQueue({ batch: 4, queue: 100 })
  const all = [queue.add(1)]
  await until(() => waiting.length === 1)
  waiting[0]!.resolve()
  await until(() => writing.length === 1)
  all.push(...[2, 3, 4, 5, 6].map((item) => queue.add(item)))
  await until(() => waiting.length === 2)
  await new Promise((tick) => setImmediate(tick))
  t.equal(waiting.length, 2)
  waiting[1]!.resolve()
  await until(() => writing.length === 2)
  t.same(writing[1]!.items, [2, 3, 4, 5], 'no more than a batch')
  await until(() => waiting.length === 3)
  t.equal(queue.size, 6)
  waiting[2]!.resolve()
  await until(() => writing.length === 3)
  for (const one of writing.toReversed()) one.commit()
  t.same(
    await Promise.all(all),
    [10, 20, 30, 40, 50, 60],
    'each item gets its own outcome, whichever transaction ends first',
  )
  t.equal(queue.size, 0)
})

t.test('a transaction that never got the lock fails only the items that were there at its start', async (t) => {
  const { queue, waiting, writing } = openManualQueue()
  const early = Promise.allSettled([queue.add(1), queue.add(2)])
  await until(() => waiting.length === 1)
  const late = queue.add(3)
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

t.test('a transaction that fails after it took its items fails these alone', async (t) => {
  const { queue, waiting, writing } = openManualQueue()
  const failed = queue.add(1)
  await until(() => waiting.length === 1)
  waiting[0]!.resolve()
  await until(() => writing.length === 1)
  const next = queue.add(2)
  await until(() => waiting.length === 2)
  writing[0]!.fail(new Error('the commit failed'))
  await t.rejects(failed, /the commit failed/)
  waiting[1]!.resolve()
  await until(() => writing.length === 2)
  writing[1]!.commit()
  t.equal(await next, 20)
})

t.test('items being written count against the queue, and disposing waits for them', async (t) => {
  const { queue, waiting, writing } = openManualQueue({ batch: 2, queue: 3 })
  const all = [queue.add(1), queue.add(2), queue.add(3)]
  await t.rejects(queue.add(4), BatchOverflowError)
  await until(() => waiting.length === 1)
  waiting[0]!.resolve()
  await until(() => writing.length === 1 && waiting.length === 2)
  await t.rejects(queue.add(4), BatchOverflowError)
  let disposed = false
  const disposing = queue[Symbol.asyncDispose]().then(() => {
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

t.test('a transaction with too few outcomes fails its items', async (t) => {
  const queue = openLockQueue(
    async (take: () => number[]) => {
      take()
      return []
    },
    { batch: 4, queue: 4 },
  )
  await t.rejects(queue.add(1), /0 outcomes for 1 items/)
})
