// Group commit, with a writer whose batches the test ends by hand.
import t from 'tap'
import { BatchOverflowError, openBatcher } from '../../server/db/batch.ts'

/** A batcher whose writer waits for the test at each batch. The outcomes are the items, doubled. */
function openManualBatcher(limits: { batch: number; queue: number; gatherMs?: number }) {
  const batches: { items: number[]; finish(): void; fail(error: Error): void }[] = []
  let begin = () => {}
  const batcher = openBatcher<number, number>(
    (items) =>
      new Promise((resolve, reject) => {
        batches.push({ items, finish: () => resolve(items.map((item) => item * 2)), fail: reject })
        begin()
      }),
    limits,
  )
  return {
    batcher,
    batches,
    /** The batch with this number, once it is being written. */
    async begun(number: number) {
      while (batches.length < number)
        await new Promise<void>((resolve) => {
          begin = resolve
        })
      return batches[number - 1]!
    },
  }
}

t.test('items of one tick are one batch; items that arrive during its write are the next', async (t) => {
  const { batcher, begun } = openManualBatcher({ batch: 10, queue: 100 })
  const first = [1, 2, 3].map((item) => batcher.add(item))
  const one = await begun(1)
  const second = [4, 5].map((item) => batcher.add(item))
  t.same(one.items, [1, 2, 3])
  t.equal(batcher.size, 5)
  one.finish()
  t.same(await Promise.all(first), [2, 4, 6], 'each gets its own outcome')
  const two = await begun(2)
  t.same(two.items, [4, 5])
  two.finish()
  t.same(await Promise.all(second), [8, 10])
  t.equal(batcher.size, 0)
})

t.test('a batch has a largest size, and one is written at a time', async (t) => {
  const { batcher, batches, begun } = openManualBatcher({ batch: 2, queue: 100 })
  const all = [1, 2, 3, 4, 5].map((item) => batcher.add(item))
  for (const [number, items] of [
    [1, [1, 2]],
    [2, [3, 4]],
    [3, [5]],
  ] as const) {
    const batch = await begun(number)
    t.same(batch.items, items)
    t.equal(batches.length, number, 'none is begun before the one before it is done')
    batch.finish()
  }
  t.same(await Promise.all(all), [2, 4, 6, 8, 10])
})

t.test('beyond the queue, which counts the batch being written, items are refused until there is room', async (t) => {
  const { batcher, begun } = openManualBatcher({ batch: 2, queue: 3 })
  const taken = [1, 2].map((item) => batcher.add(item))
  const one = await begun(1)
  const third = batcher.add(3)
  await t.rejects(batcher.add(4), BatchOverflowError)
  one.finish()
  await Promise.all(taken)
  const fifth = batcher.add(5)
  ;(await begun(2)).finish()
  t.equal(await third, 6)
  ;(await begun(3)).finish()
  t.equal(await fifth, 10)
})

t.test('a batch that fails rejects its items and no others', async (t) => {
  const { batcher, begun } = openManualBatcher({ batch: 2, queue: 100 })
  const [a, b, c] = [1, 2, 3].map((item) => batcher.add(item)) as [Promise<number>, Promise<number>, Promise<number>]
  ;(await begun(1)).fail(new Error('disk full'))
  await t.rejects(a, { message: 'disk full' })
  await t.rejects(b, { message: 'disk full' })
  ;(await begun(2)).finish()
  t.equal(await c, 6)
})

t.test('a writer that throws synchronously fails its batch', async (t) => {
  const batcher = openBatcher<number, number>(
    () => {
      throw new Error('no disk')
    },
    { batch: 2, queue: 2 },
  )
  await t.rejects(batcher.add(1), { message: 'no disk' })
  await t.rejects(batcher.add(2), { message: 'no disk' }, 'the next batch is tried too')
})

t.test('a batch with the wrong number of outcomes fails', async (t) => {
  const batcher = openBatcher<number, number>(async () => [1], { batch: 10, queue: 10 })
  const both = [batcher.add(1), batcher.add(2)]
  await t.rejects(both[0]!, /1 outcomes for 2 items/)
  await t.rejects(both[1]!, /1 outcomes for 2 items/)
})

t.test('disposing waits for all items', async (t) => {
  const { batcher, begun } = openManualBatcher({ batch: 1, queue: 10 })
  const taken = [1, 2].map((item) => batcher.add(item))
  const closing = batcher[Symbol.asyncDispose]().then(() => 'closed')
  ;(await begun(1)).finish()
  ;(await begun(2)).finish()
  t.same(await Promise.all(taken), [2, 4])
  t.equal(await closing, 'closed')
  t.equal(batcher.size, 0)
})

t.test('after a batch of several items as many gather again; after a lone item none waits', async (t) => {
  // Longer than the test may take: only the number of items ends the pause.
  const { batcher, begun } = openManualBatcher({ batch: 10, queue: 100, gatherMs: 600_000 })
  const nextTick = () => new Promise((resolve) => setImmediate(resolve))
  for (const [number, items] of [
    [1, [1]],
    [2, [2, 3, 4]],
  ] as const) {
    const added = items.map((item) => batcher.add(item))
    ;(await begun(number)).finish()
    await Promise.all(added)
  }
  const added: Promise<number>[] = []
  for (const item of [5, 6, 7]) {
    added.push(batcher.add(item))
    await nextTick()
  }
  const third = await begun(3)
  t.same(third.items, [5, 6, 7], 'though they came in different ticks')
  third.finish()
  t.same(await Promise.all(added), [10, 12, 14])
  await batcher[Symbol.asyncDispose]()
})

t.test('an item that others do not join is written after the pause', async (t) => {
  const { batcher, begun } = openManualBatcher({ batch: 10, queue: 100, gatherMs: 1 })
  const several = [batcher.add(1), batcher.add(2)]
  ;(await begun(1)).finish()
  await Promise.all(several)
  const last = batcher.add(3)
  const second = await begun(2)
  t.same(second.items, [3])
  second.finish()
  t.equal(await last, 6)
})
