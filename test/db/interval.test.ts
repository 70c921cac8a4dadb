// The loop that runs work again and again until it is disposed.
import t from 'tap'
import { every } from '../../server/db/interval.ts'

const LONG_MS = 600_000

t.test('work that fails is reported and runs again', async (t) => {
  const failures: unknown[] = []
  let runs = 0
  const third = Promise.withResolvers<void>()
  const work = async () => {
    runs++
    if (runs === 3) third.resolve()
    if (runs === 2) throw new Error('the second run')
  }
  await using _loop = every(1, work, (error) => failures.push(error))
  await third.promise
  t.match(failures, [{ message: 'the second run' }])
})

t.test('the first run waits unless it is to be immediate', async (t) => {
  let runs = 0
  const count = () => runs++
  const unexpected = (error: unknown) => t.fail(String(error))
  const waiting = every(LONG_MS, count, unexpected)
  await waiting[Symbol.asyncDispose]()
  t.equal(runs, 0, 'disposed before its first run, which it does not wait for')
  const immediate = every(LONG_MS, count, unexpected, { immediate: true })
  await immediate[Symbol.asyncDispose]()
  t.equal(runs, 1)
})

t.test('disposing waits for the run under way, and no other follows', async (t) => {
  let runs = 0
  const begun = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const work = async () => {
    runs++
    begun.resolve()
    await release.promise
  }
  const loop = every(1, work, (error) => t.fail(String(error)))
  await begun.promise
  let disposed = false
  const disposing = loop[Symbol.asyncDispose]().then(() => {
    disposed = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(disposed)
  t.equal(runs, 1, 'runs do not overlap')
  release.resolve()
  await disposing
  t.equal(runs, 1)
})
