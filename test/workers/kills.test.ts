// A small run of the chaos of kills: buyers, two workers and a web process, with a fault every two seconds. No time is measured.
import t from 'tap'
import { runKills } from '../../bench/chaos-kills.ts'
import { openLab } from '../../bench/lab.ts'

t.test('processes are killed while buyers buy: what they hold, the tables and the audit agree', async (t) => {
  await using lab = await openLab({ quick: true, profile: undefined, databaseUrl: process.env.TEST_DATABASE_URL ?? '' })
  const report = await runKills(lab, { buyers: 4, seconds: 7, everySeconds: 2, seed: 1 })
  t.same(report.violations, [])
  t.match(report.faults, { 'worker killed': 2, 'web killed': 1 })
  t.ok(report.purchases.length >= 4)
})
