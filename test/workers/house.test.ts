// A small run of the chaos test of the whole service, with few processes: servers are restarted and processes killed while
// buyers and an account record what they were answered. No time is measured.
import t from 'tap'
import { runHouse } from '../../bench/chaos/house.ts'
import { openLab } from '../../bench/lab.ts'

t.test('the house under faults: journals, tables, audit and chain agree', async (t) => {
  await using lab = await openLab({ quick: true, profile: undefined, databaseUrl: process.env.TEST_DATABASE_URL ?? '' })
  const report = await runHouse(lab, {
    seed: 1,
    seconds: 6,
    everySeconds: 1.5,
    webs: 1,
    workers: 2,
    buyers: 2,
    accounts: 1,
    kinds: ['worker killed', 'Postgres restarted', 'Redis lost'],
    isCalm: true,
    leaks: false,
  })
  t.same(report.violations, [])
  t.equal(report.incidents.length, 3)
  t.ok(report.purchases.length > 0 && report.calls > 0)
})
