// A small chaos run of the bench: workers are killed, and each silence and each return is alerted exactly once. The silences
// are moved into the past, so that they are due at once.
import t from 'tap'
import { runWatchdogChaos } from '../../bench/chaos/watchdogs.ts'
import { openLab } from '../../bench/lab.ts'

t.test('workers are killed while watchdogs fall silent and come back', async (t) => {
  await using lab = await openLab({ quick: true, profile: undefined, databaseUrl: process.env.TEST_DATABASE_URL ?? '' })
  const { missing, wrong, misdelivered, ...report } = await runWatchdogChaos(lab, {
    watchdogs: 200,
    // Ten watchdogs each: every one gets its heartbeat in time even if a heartbeat takes two seconds.
    clients: 20,
    oneMortalOf: 4,
    seconds: 6,
    killEverySeconds: 1.5,
    outageSeconds: 0,
    hasten: true,
  })
  t.same({ missing, wrong, misdelivered }, { missing: [], wrong: [], misdelivered: [] })
  t.match(report, { silences: 50, returns: 25 })
  t.ok(report.alerts >= 75)
  t.equal(report.delivered, report.alerts)
  t.ok(report.killedWorkers > 0)
})
