// The rows of the matrix of faults in which a process is killed (kill -9), for one claim and for several: in every case the buyer is
// charged exactly once, and the work is done once.
//
// Prints the rows as a table: npm run test:only -- test/payments/matrix-kills.test.ts
import t from 'tap'
import type { Child } from '../children.ts'
import { SELLERS, type Sold } from '../system.ts'
import { openEvmHarness } from './evm-harness.ts'
import { cells } from './faults.ts'
import { expectPaid, formatTable, nameOf, playCell, type Row, rowOf } from './matrix.ts'

const table: Row[] = []
const shared = await openEvmHarness()
t.teardown(() => shared[Symbol.asyncDispose]())

const soldAs: Sold[] = ['source', 'claims']
const deadly = cells.filter(({ kills }) => kills)

/** Starts the processes in their order, each while the one before it is used, because a process takes long to load. */
function hire(starts: (() => Child)[]): () => Child {
  let waiting = starts.shift()?.()
  return () => {
    const child = waiting
    if (!child) throw new Error('No more processes were asked for.')
    waiting = starts.shift()?.()
    return child
  }
}

const next = hire(
  soldAs.flatMap(() => [
    ...deadly.map(
      ({ kills }) =>
        () =>
          shared.startCrashingProcess('worker', kills!),
    ),
    () => shared.startCrashingProcess('api', 'after verify'),
  ]),
)

for (const sold of soldAs) {
  for (const cell of deadly) {
    const door = { cell, keyless: false, sold }
    t.test(nameOf(door), async (t) => void table.push(await playCell(t, shared, door, next())))
  }

  /** The first signed call ends without an answer. */
  const apiKilled = sold === 'claims' ? 'claims: API killed after verify' : 'API killed after verify'
  t.test(apiKilled, async (t) => {
    const harness = shared
    const crashing = next()
    const { address } = await crashing.logs('listening')
    const order = await harness.order({ sold, url: `${address}${SELLERS[sold]}` })
    Object.assign(harness.facilitator.asked, { verify: 0, settle: 0 })
    await t.rejects(order.buy(), 'the connection breaks')
    t.match(await crashing.ended, { signal: 'SIGKILL' })
    t.equal(harness.facilitator.asked.verify, 1)
    order.goTo(harness.system.url(SELLERS[sold]))
    const last = await order.buyAndWait()
    await expectPaid(t, harness, order, last)
    t.equal(order.signatures.length, 2)
    t.equal(harness.facilitator.asked.settle, 1, 'the first authorization was never given out of hand')
    table.push(
      await rowOf(apiKilled, harness, order, { first: 'never given to settle', answer: 'none', open: 1, last }),
    )
  })
}

t.test('every place of a worker in the table is one of these', async (t) => {
  t.same(
    deadly.map(({ kills }) => kills),
    ['before call', 'after call', 'after receipt'],
  )
})

t.teardown(() => console.log(formatTable(table)))
