// A queue in front of a lock that passes from one transaction to the next. While one transaction writes, the next already
// waits for the lock, so no round trip lies between them. A transaction takes its items only when it has the lock, so items
// that arrive while it waits are included.
import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as nextTick } from 'node:timers/promises'
import { type Batcher, BatchOverflowError } from './batch.ts'

interface Waiting<Item, Outcome> {
  item: Item
  resolve: (outcome: Outcome) => void
  reject: (error: unknown) => void
}

/**
 * @param write runs one transaction: gets the lock, takes the items by `take`, and answers one outcome for each. It is called
 *   again while a call before it is still writing, but never before that call has taken its items. `take` gives the same items
 *   at each call.
 * @param limits `batch`: most items of one transaction; `queue`: most items held before `add` rejects with BatchOverflowError.
 */
export function openLockQueue<Item, Outcome>(
  write: (take: () => Item[]) => Promise<readonly Outcome[]>,
  limits: { batch: number; queue: number },
): Batcher<Item, Outcome> {
  const waiting: Waiting<Item, Outcome>[] = []
  const running = new Set<Promise<void>>()
  // Run outside the caller's async context, or the batch joins the transaction of the caller that started it.
  const runApart = AsyncLocalStorage.snapshot()
  let taken = 0
  let isNextWaiting = false

  function startNext() {
    if (isNextWaiting || waiting.length === 0) return
    isNextWaiting = true
    const run: Promise<void> = runApart(runOne).finally(() => running.delete(run))
    running.add(run)
  }

  async function runOne() {
    // In a later tick, so that all items of this tick are included.
    await nextTick()
    const presentAtStart = waiting.length
    let batch: Waiting<Item, Outcome>[] | undefined
    const take = () => {
      if (!batch) {
        batch = waiting.splice(0, limits.batch)
        taken += batch.length
        isNextWaiting = false
        startNext()
      }
      return batch.map(({ item }) => item)
    }
    try {
      const outcomes = await write(take)
      if (outcomes.length !== batch?.length) throw new Error(`${outcomes.length} outcomes for ${batch?.length} items`)
      for (const [index, outcome] of outcomes.entries()) batch[index]?.resolve(outcome)
    } catch (error) {
      // Without the lock nothing was taken. Items that arrived after the start have waited less and get another try.
      for (const { reject } of batch ?? waiting.splice(0, presentAtStart)) reject(error)
    }
    taken -= batch?.length ?? 0
    isNextWaiting &&= batch !== undefined
    startNext()
  }

  return {
    add(item) {
      if (waiting.length + taken >= limits.queue)
        return Promise.reject(new BatchOverflowError('too many items are waiting'))
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject })
        startNext()
      })
    },
    get size() {
      return waiting.length + taken
    },
    async [Symbol.asyncDispose]() {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
