// Downtime, clocks that are set, alerts that cannot be written, and workers that die: no false outage is recorded, and no
// alert is lost.
import t from 'tap'
import { Refused } from '../../server/receipts/chain.ts'
import { dueAlert, raiseWatchdogAlert } from '../../server/watchdogs/alerts.ts'
import { recordIntake } from '../../server/watchdogs/intake-clock.ts'
import { openScanner, scanWatchdogs } from '../../server/watchdogs/scan.ts'
import { findSnapshots } from '../../server/watchdogs/snapshot.ts'
import { openSingleWatchdog } from './harness.ts'

t.test('downtime of the service makes no outage', async (t) => {
  await using single = await openSingleWatchdog()
  const { owner, tables, api } = single
  for (const name of ['beaten', 'paused', 'down']) await single.putWatchdog(owner, name)
  await single.beat(owner, 'down', { status: 'fail' })
  await owner.call('POST', '/v1/watchdog/paused/pause', { body: { paused: true } })
  // Seconds without a scan. One watchdog had a heartbeat meanwhile; the others had their last one an interval before.
  const gap = 600_000
  await single.after(gap + 60_000)
  await tables.query(`update watchdogs set started_at = now() - interval '240000 seconds' where name = 'beaten'`)
  const clocks = async () => {
    const { rows } = await tables.query(
      `select name, floor(extract(epoch from started_at) * 1000)::int8 as started,
              floor(extract(epoch from seen_at) * 1000)::int8 as seen
       from watchdogs, watchdog_scans`,
    )
    return {
      started: Object.fromEntries(rows.map(({ name, started }) => [name, Number(started)])),
      seen: Number(rows[0].seen),
    }
  }
  const { started: before } = await clocks()
  const lines: object[] = []
  const log = Object.assign(Object.create(api.log), { warn: (line: object) => lines.push(line) })
  t.equal(await single.scan(gap, { ...api, log }), 0)
  t.match(lines, [{ event: 'watchdog_gap', moved: 2 }])
  const { started, seen } = await clocks()
  t.equal(started.w, before.w! + gap * 1000, 'the time before the gap counts')
  t.equal(started.beaten, seen, 'all of its time was in the gap')
  t.match(started, { paused: before.paused, down: before.down })
  t.same(await single.alertTypes(), [])
  await single.after(9_000)
  t.equal(await single.scan(), 0)
  await single.after(2_000)
  t.equal(await single.scan(), 1)
})

t.test('while no heartbeat could be taken no deadline is judged', async (t) => {
  await using single = await openSingleWatchdog()
  const { tables, api } = single
  // Keeps the API process from recording its intake clock.
  await tables.query('create function ignore() returns trigger language plpgsql as $$ begin return null; end $$')
  await tables.query(
    `create trigger ignore before update of open_at on watchdog_scans for each row execute function ignore()`,
  )
  await tables.query('update watchdog_scans set seen_at = open_at')
  await single.after(75_000)
  for (let times = 0; times < 3; times++) t.equal(await scanWatchdogs(api), null)
  await tables.query('drop trigger ignore on watchdog_scans')
  await tables.query(
    `update watchdog_scans set seen_at = seen_at - interval '1000 hours', open_at = open_at - interval '1000 hours'`,
  )
  await recordIntake(api.db)
  while ((await scanWatchdogs(api)) === null);
  t.same(await single.alertTypes(), [], 'the time without heartbeats does not count')
})

t.test('a clock that was put back makes no outage, and does not put alerts off for ever', async (t) => {
  await using single = await openSingleWatchdog()
  await single.scan()
  await single.after(-3_600_000)
  t.equal(await single.scan(-3_600_000), 0)
  t.same(await single.alertTypes(), [])
  await single.after(69_000)
  t.equal(await single.scan(), 0)
  await single.after(2_000)
  t.equal(await single.scan(), 1)
})

t.test('a watchdog whose alert cannot be written does not hold up others, and is tried again later', async (t) => {
  await using single = await openSingleWatchdog()
  const { owner, tables } = single
  for (const name of ['a', 'b', 'bad']) await single.putWatchdog(owner, name)
  await tables.query(`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'bad row'; end $$;
    create trigger refuse before insert on alerts for each row when (new.body like '%"watchdog":"bad"%')
      execute function refuse()`)
  await single.after(71_000)
  t.equal(await single.scan(), 3)
  t.equal(await single.scanAgain(), 0)
  for (const [name, count] of [
    ['w', 1],
    ['a', 1],
    ['b', 1],
    ['bad', 0],
  ] as const)
    t.equal((await single.alerts(owner, name)).length, count, name)
  await tables.query('drop trigger refuse on alerts')
  await single.after(61)
  t.equal(await single.scan(), 1)
})

t.test('a watchdog that was claimed by a worker that died is claimed again', async (t) => {
  await using single = await openSingleWatchdog()
  await single.after(71_000)
  const { append } = single.api.chain
  const called = Promise.withResolvers<void>()
  single.api.chain.append = () => {
    called.resolve()
    return new Promise(() => {})
  }
  void single.scan()
  await called.promise
  single.api.chain.append = append
  t.equal(await single.scanAgain(), 0)
  await single.after(11)
  t.equal(await single.scan(), 1)
})

t.test('deleting a watchdog during an outage deletes its alerts', async (t) => {
  await using single = await openSingleWatchdog()
  await single.after(71_000)
  const { rows } = await single.tables.query<{ id: string }>('select id from watchdogs')
  const [seen] = await findSnapshots(single.api.db, [rows[0]!.id])
  await single.scan()
  t.equal((await single.owner.call('DELETE', '/v1/watchdog/w')).status, 204)
  t.ok(
    (await raiseWatchdogAlert(single.api.chain, dueAlert(seen!, { overdue: true, remind: false })!)) instanceof Refused,
  )
  t.equal((await single.tables.query('select from alerts')).rowCount, 0)
})

t.test('the scanner waits out a database that fails', async (t) => {
  await using single = await openSingleWatchdog()
  const { db, log } = single.api
  let failures = 0
  const failedTwice = Promise.withResolvers<void>()
  const broken = { ...db, transaction: () => Promise.reject(new Error('the database is away')) }
  const warn = ({ event }: { event: string }) => {
    if (event === 'scan_failed' && ++failures === 2) failedTwice.resolve()
  }
  await using _scanner = openScanner({ ...single.api, db: broken, log: Object.assign(Object.create(log), { warn }) })
  await failedTwice.promise
  t.pass('the scan went on after the first failure')
})
