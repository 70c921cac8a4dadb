// A watchdog that alternates between up and down: the limits of its alerts and receipts, and that its state stays right.
import t from 'tap'
import { LIMITS, secondsToMidnightUtc } from '../../server/accounts/tiers.ts'
import { OUTAGE_BURST, OUTAGE_SPACING_SECONDS } from '../../server/alerts/daily-allowance.ts'
import { MAX_WAITING } from '../../server/alerts/outbox.ts'
import type { Account } from '../accounts/harness.ts'
import { openSingleWatchdog, type SingleWatchdog, type WatchdogHarness } from './harness.ts'

async function count({ tables }: WatchdogHarness, table: string): Promise<number> {
  const { rows } = await tables.query(`select count(*)::int n from ${table}`)
  return rows[0].n
}

/** Marks every alert so far as delivered. */
const deliver = ({ tables }: WatchdogHarness) =>
  tables.query(
    `update alerts set state = 'delivered', settled_at = now(), next_attempt_at = null where state = 'pending'`,
  )

async function alternate(single: SingleWatchdog, times: number) {
  for (let n = 0; n < times; n++) {
    t.match((await single.sendBeat({ status: 'fail' })).body, { state: 'down' })
    t.match((await single.sendBeat()).body, { state: 'up' })
    await deliver(single)
  }
}

const pairs = (n: number) => Array.from({ length: n }, () => ['missed', 'recovered']).flat()

t.test('of 30 outages 12 are alerted; the rest become one when the allowance permits another', async (t) => {
  await using single = await openSingleWatchdog()
  await alternate(single, 30)
  t.same(await single.alertTypes(), pairs(OUTAGE_BURST))
  t.equal(await count(single, 'receipts'), 2 * OUTAGE_BURST)
  t.equal(await single.scan(), 0)
  await single.after(OUTAGE_SPACING_SECONDS - 100)
  t.equal(await single.scan(), 0, 'not yet')
  await single.after(100)
  t.equal(await single.scan(), 1)
  t.equal(await single.scan(), 1)
  t.equal(await single.scan(), 0)
  t.same(await single.alertTypes(), pairs(OUTAGE_BURST + 1), 'the outages in between are one pair')
  const alerts = await single.alertsSoFar()
  t.equal(alerts.at(-2)?.body.data.coalesced, 30 - OUTAGE_BURST - 1, 'which has the number of the others')
  t.notOk('coalesced' in alerts[0]!.body.data)
  t.same(
    alerts.map(({ event_seq }) => event_seq),
    alerts.map((_, n) => n + 1),
  )

  await single.sendBeat({ status: 'fail' })
  await single.after(OUTAGE_SPACING_SECONDS)
  t.equal(await single.scan(), 1)
  t.same((await single.alertTypes()).at(-1), 'missed', 'an outage that goes on is alerted without an end')
  t.equal(await single.state(), 'down')
  await single.sendBeat()
  t.same(await single.alertTypes(), pairs(OUTAGE_BURST + 2), 'its end needs no allowance')
  await single.after(OUTAGE_BURST * OUTAGE_SPACING_SECONDS)
  await deliver(single)
  await alternate(single, OUTAGE_BURST + 1)
  t.equal((await single.alertTypes()).length, 2 * (2 * OUTAGE_BURST + 2), 'after an hour the allowance is whole again')
})

t.test('an outage beyond the allowance writes no index and raises no alert', async (t) => {
  await using single = await openSingleWatchdog()
  await alternate(single, OUTAGE_BURST + 1)
  const checkAt = async () => (await single.tables.query('select check_at from watchdogs')).rows[0].check_at as Date
  const before = await checkAt()
  let asked = 0
  const { append } = single.api.chain
  single.api.chain.append = (entry) => {
    asked++
    return append(entry)
  }
  await alternate(single, 10)
  t.same(await checkAt(), before)
  t.equal(asked, 0)
})

t.test('repeated missed deadlines are limited too, and still shown', async (t) => {
  await using single = await openSingleWatchdog({ interval_s: 10, grace_s: 0 })
  const { sendBeat, after, scan, state } = single
  const outage = async () => {
    await after(11)
    await scan()
    t.equal(await state(), 'down')
    await sendBeat()
    t.equal(await state(), 'up')
    await deliver(single)
  }
  for (let n = 0; n < OUTAGE_BURST; n++) await outage()
  t.same(await single.alertTypes(), pairs(OUTAGE_BURST))
  for (let n = 0; n < 3; n++) await outage()
  t.same(await single.alertTypes(), pairs(OUTAGE_BURST), 'beyond the allowance nothing is alerted')
  await sendBeat()
  await after(OUTAGE_SPACING_SECONDS)
  await scan()
  t.same(
    (await single.alertTypes()).slice(2 * OUTAGE_BURST),
    ['missed'],
    'the watchdog is down at that time, so the outage has no end',
  )
  const { body } = (await single.alertsSoFar()).at(-1)!
  t.match(body.data, { reason: 'overdue', coalesced: 3 })
  await sendBeat()
  t.same(await single.alertTypes(), pairs(OUTAGE_BURST + 1))
})

t.test('one outage every five minutes is never limited', async (t) => {
  await using single = await openSingleWatchdog({ interval_s: 200, grace_s: 50 })
  for (let n = 0; n < 3 * OUTAGE_BURST; n++) {
    await single.after(OUTAGE_SPACING_SECONDS)
    t.equal(await single.scan(), 1)
    await single.sendBeat()
    await deliver(single)
  }
  t.same(await single.alertTypes(), pairs(3 * OUTAGE_BURST))
})

t.test('a receiver that accepts nothing: at most 20 alerts wait, and one more that ends an outage', async (t) => {
  await using single = await openSingleWatchdog()
  for (let n = 0; n < OUTAGE_BURST; n++) {
    await single.sendBeat({ status: 'fail' })
    await single.sendBeat()
  }
  t.same(await single.alertTypes(), pairs(MAX_WAITING / 2))
  await single.after(61)
  t.equal(await single.scan(), 0)
  t.equal(await single.state(), 'up')
  await single.sendBeat({ status: 'fail' })
  t.equal(await single.state(), 'down')
  await deliver(single)
  await single.after(61)
  t.equal(await single.scan(), 1, 'as soon as there is room')
  t.match((await single.alertsSoFar()).at(-1), { type: 'watchdog.missed', body: { data: { coalesced: 2 } } })
})

t.test('the limit of a day: tests get 429, failures wait for the next day, missed deadlines do not', async (t) => {
  await using single = await openSingleWatchdog({ interval_s: 600, grace_s: 0 }, 'free')
  const { owner, tables } = single
  const limit = LIMITS.free.watchdog_alerts_per_day
  const ask = () => owner.call('POST', '/v1/watchdog/w/test')
  for (let n = 0; n < limit - 1; n++) {
    t.equal((await ask()).status, 200)
    await deliver(single)
  }
  t.match((await owner.call('GET', '/v1/usage')).body, {
    limits: { watchdog_alerts_per_day: limit },
    used: { watchdog_alerts_today: limit - 1 },
  })
  await alternate(single, 3)
  const types = await single.alertTypes()
  t.equal(types.filter((type) => type === 'missed').length, 1, 'the last of the day')
  t.equal(types.at(-1), 'recovered', 'the end is alerted beyond the limit')
  const refused = await ask()
  t.equal(refused.status, 429)
  t.match(refused.body.error, { code: 'daily_limit', message: /watchdog_alerts_per_day/ })
  t.ok(Math.abs(Number(refused.headers.get('retry-after')) - secondsToMidnightUtc(new Date())) < 60)
  t.equal(await single.scan(), 0)

  await single.sendBeat({ status: 'fail' })
  t.equal(await single.state(), 'down')
  await single.after(601)
  t.equal(await single.scan(), 1, 'its deadline has passed too')
  const { body } = (await single.alertsSoFar()).at(-1)!
  t.match(body, { type: 'watchdog.missed', data: { reason: 'overdue', coalesced: 2 } })
  await single.sendBeat()
  await single.sendBeat({ status: 'fail' })
  t.equal((await single.alertTypes()).at(-1), 'recovered')
  await nextDay(single, owner)
  t.equal(await single.scan(), 1)
  t.match((await single.alertsSoFar()).at(-1), { type: 'watchdog.missed', body: { data: { reason: 'failed' } } })
  await deliver(single)
  t.equal((await ask()).status, 200)
  const { rows } = await tables.query('select count(*)::int n from alert_days')
  t.same(rows, [{ n: 2 }])
})

/** Moves the counts to yesterday and makes the alerts due that wait for the next day. */
async function nextDay({ tables }: SingleWatchdog, owner: Account) {
  await tables.query('update alert_days set day = day - 1')
  await tables.query(
    `update watchdogs set fails_wait_until = now(), check_at = now() - interval '1 second'
     where account_id = (select id from accounts where handle = $1)`,
    [owner.handle],
  )
}

t.test('a watchdog that is deleted and made again does not get a fresh limit of the day', async (t) => {
  await using single = await openSingleWatchdog({}, 'free')
  const limit = LIMITS.free.watchdog_alerts_per_day
  for (let n = 0; n < limit + 5; n++) {
    await single.sendBeat({ status: 'fail' })
    await single.owner.call('DELETE', '/v1/watchdog/w')
    await single.putWatchdog(single.owner, 'w')
  }
  t.equal(await count(single, 'receipts'), limit)
  await single.tables.query(`update alert_days set found = $1`, [OUTAGE_BURST + 86_400 / OUTAGE_SPACING_SECONDS])
  await single.after(71_000)
  t.equal(await single.scan(), 0, 'missed deadlines are limited to what one watchdog can have in a day')
  t.equal(await single.state(), 'down', 'the outage is still shown')
})

t.test('pausing and resuming forgets outages that were not alerted, and their count', async (t) => {
  await using single = await openSingleWatchdog()
  await alternate(single, OUTAGE_BURST + 3)
  await single.owner.call('POST', '/v1/watchdog/w/pause', { body: { paused: true } })
  await single.owner.call('POST', '/v1/watchdog/w/pause', { body: { paused: false } })
  await single.after(3600)
  t.equal(await single.scan(), 0)
  await single.sendBeat({ status: 'fail' })
  const { body } = (await single.alertsSoFar()).at(-1)!
  t.notOk('coalesced' in body.data)
  t.equal((await single.alertTypes()).length, 2 * OUTAGE_BURST + 1)
})
