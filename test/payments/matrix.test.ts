// The faults between payment and settlement that kill no process, on a real chain with the stock client. In every case the buyer is
// charged exactly once, or provably not at all; the last answer agrees with the chain; and while the outcome is open no answer is a
// 402, because a stock client signs a new payment at every 402. Processes are killed by matrix-kills.test.ts.
//
// Prints the matrix as a table: npm run test:only -- test/payments/matrix.test.ts
import t from 'tap'
import { openEvmHarness } from './evm-harness.ts'
import { cells } from './faults.ts'
import { type Door, formatTable, nameOf, playCell, type Row } from './matrix.ts'

const table: Row[] = []
const shared = await openEvmHarness()
t.teardown(() => shared[Symbol.asyncDispose]())

/** The buyer has a key of its own; or, at /buy, nothing but its signed payment; or buys several claims. */
const alive = cells.filter(({ kills }) => !kills)
const doors: Door[] = [
  ...alive.map((cell) => ({ cell, keyless: false, sold: 'source' as const })),
  ...alive.map((cell) => ({ cell, keyless: true, sold: 'source' as const })),
  ...alive.map((cell) => ({ cell, keyless: false, sold: 'claims' as const })),
]
for (const door of doors) t.test(nameOf(door), async (t) => void table.push(await playCell(t, shared, door)))

t.teardown(() => console.log(formatTable(table)))
