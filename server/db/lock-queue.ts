// The queue in front of a lock that is held from one transaction to the next. While one turn writes, the next is already
// waiting for the lock, so no round trip lies between them; it takes its items only when it has the lock, so that whatever
// came meanwhile goes along.
import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Batcher, BatchOverflowError } from './batch.ts'

interface Waiting<Item, Outcome> {
  item: Item
  resolve: (outcome: Outcome) => void
  reject: (error: unknown) => void
}

/**
 * @param write gets the lock, takes the items, and answers one outcome for each. Called again while a call before it is
 *   still writing, but never before that has taken its items.
 * @param limits `batch`: most items of one turn; `queue`: most items held before `add` rejects with BatchOverflowError.
 */
export function openTurns<Item, Outcome>(
  write: (take: () => Item[]) => Promise<readonly Outcome[]>,
  limits: { batch: number; queue: number },
): Batcher<Item, Outcome> {
  const waiting: Waiting<Item, Outcome>[] = []
  const turns = new Set<Promise<void>>()
  // A turn is nobody's: it must not run inside the transaction of whoever happened to begin it.
  const apart = AsyncLocalStorage.snapshot()
  let taken = 0
  let isNextWaiting = false

  function beginNext() {
    if (isNextWaiting || waiting.length === 0) return
    isNextWaiting = true
    const turn: Promise<void> = apart(runTurn).finally(() => turns.delete(turn))
    turns.add(turn)
  }

  async function runTurn() {
    // In a later turn of the event loop, so that everything this one brings goes along.
    await nextTurn()
    const asking = waiting.length
    let mine: Waiting<Item, Outcome>[] | undefined
    const take = () => {
      if (!mine) {
        mine = waiting.splice(0, limits.batch)
        taken += mine.length
        isNextWaiting = false
        beginNext()
      }
      return mine.map(({ item }) => item)
    }
    try {
      const outcomes = await write(take)
      if (outcomes.length !== mine?.length) throw new Error(`${outcomes.length} outcomes for ${mine?.length} items`)
      for (const [index, { resolve }] of mine.entries()) resolve(outcomes[index] as Outcome)
    } catch (error) {
      // Without the lock nothing was taken. Whoever came after this turn began has not been waiting as long.
      for (const { reject } of mine ?? waiting.splice(0, asking)) reject(error)
    }
    taken -= mine?.length ?? 0
    isNextWaiting &&= mine !== undefined
    beginNext()
  }

  return {
    add(item) {
      if (waiting.length + taken >= limits.queue) return Promise.reject(new BatchOverflowError('too much is waiting'))
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject })
        beginNext()
      })
    },
    get size() {
      return waiting.length + taken
    },
    async [Symbol.asyncDispose]() {
      while (turns.size > 0) await Promise.all(turns)
    },
  }
}
