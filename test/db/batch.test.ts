import t from 'tap'
import { BatchOverflowError, openBatcher } from '../../server/db/batch.ts'

/** A writer that does one batch each time it is let; its outcomes are the items, doubled. */
function openPress(limits: { batch: number; queue: number }) {
  const batches: { items: number[]; print(): void; jam(error: Error): void }[] = []
  let begin = () => {}
  const batcher = openBatcher<number, number>(
    (items) =>
      new Promise((resolve, reject) => {
        batches.push({ items, print: () => resolve(items.map((item) => item * 2)), jam: reject })
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

t.test('what one turn brings is one batch; what comes meanwhile is the next', async (t) => {
  const { batcher, begun } = openPress({ batch: 10, queue: 100 })
  const first = [1, 2, 3].map((item) => batcher.add(item))
  const one = await begun(1)
  const second = [4, 5].map((item) => batcher.add(item))
  t.same(one.items, [1, 2, 3])
  t.equal(batcher.size, 5)
  one.print()
  t.same(await Promise.all(first), [2, 4, 6], 'each gets its own outcome')
  const two = await begun(2)
  t.same(two.items, [4, 5])
  two.print()
  t.same(await Promise.all(second), [8, 10])
  t.equal(batcher.size, 0)
})

t.test('a batch has a largest size, and one is written at a time', async (t) => {
  const { batcher, batches, begun } = openPress({ batch: 2, queue: 100 })
  const all = [1, 2, 3, 4, 5].map((item) => batcher.add(item))
  for (const [number, items] of [
    [1, [1, 2]],
    [2, [3, 4]],
    [3, [5]],
  ] as const) {
    const batch = await begun(number)
    t.same(batch.items, items)
    t.equal(batches.length, number, 'none is begun before the one before it is done')
    batch.print()
  }
  t.same(await Promise.all(all), [2, 4, 6, 8, 10])
})

t.test('past its queue it refuses, counting what is being written; with room again it takes', async (t) => {
  const { batcher, begun } = openPress({ batch: 2, queue: 3 })
  const taken = [1, 2].map((item) => batcher.add(item))
  const one = await begun(1)
  const third = batcher.add(3)
  await t.rejects(batcher.add(4), BatchOverflowError)
  one.print()
  await Promise.all(taken)
  const fifth = batcher.add(5)
  ;(await begun(2)).print()
  t.equal(await third, 6)
  ;(await begun(3)).print()
  t.equal(await fifth, 10)
})

t.test('a batch that fails rejects its items and no others', async (t) => {
  const { batcher, begun } = openPress({ batch: 2, queue: 100 })
  const [a, b, c] = [1, 2, 3].map((item) => batcher.add(item)) as [Promise<number>, Promise<number>, Promise<number>]
  ;(await begun(1)).jam(new Error('paper'))
  await t.rejects(a, { message: 'paper' })
  await t.rejects(b, { message: 'paper' })
  ;(await begun(2)).print()
  t.equal(await c, 6)
})

t.test('a writer that throws at once is a batch that fails', async (t) => {
  const batcher = openBatcher<number, number>(
    () => {
      throw new Error('no ink')
    },
    { batch: 2, queue: 2 },
  )
  await t.rejects(batcher.add(1), { message: 'no ink' })
  await t.rejects(batcher.add(2), { message: 'no ink' }, 'and the next is tried all the same')
})

t.test('outcomes that do not pair with the items reach nobody', async (t) => {
  const batcher = openBatcher<number, number>(async () => [1], { batch: 10, queue: 10 })
  const both = [batcher.add(1), batcher.add(2)]
  await t.rejects(both[0]!, /1 outcomes for 2 items/)
  await t.rejects(both[1]!, /1 outcomes for 2 items/)
})

t.test('closing waits for everything that was taken', async (t) => {
  const { batcher, begun } = openPress({ batch: 1, queue: 10 })
  const taken = [1, 2].map((item) => batcher.add(item))
  const closing = batcher[Symbol.asyncDispose]().then(() => 'closed')
  ;(await begun(1)).print()
  ;(await begun(2)).print()
  t.same(await Promise.all(taken), [2, 4])
  t.equal(await closing, 'closed')
  t.equal(batcher.size, 0)
})
