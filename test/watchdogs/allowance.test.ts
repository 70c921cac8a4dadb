// A watchdog that alternates: what it may cost in alerts and receipts, and that nothing of the truth is lost by it.
import t from 'tap'
import { LIMITS, secondsToMidnightUtc } from '../../server/accounts/tiers.ts'
import { OUTAGE_BURST, OUTAGE_SPACING_SECONDS } from '../../server/alerts/daily-allowance.ts'
import { MAX_WAITING } from '../../server/alerts/outbox.ts'
import type { Account } from '../accounts/harness.ts'
import { type Kennel, openKennel } from './harness.ts'

async function openYard(terms?: object, tier: 'free' | 'dev' = 'dev') {
  const kennel = await openKennel()
  const owner = await kennel.register({ tier })
  await kennel.guard(owner, 'w', terms)
  return {
    ...kennel,
    owner,
    fail: () => kennel.beat(owner, 'w', { status: 'fail' }),
    ok: () => kennel.beat(owner, 'w'),
    state: async () => (await kennel.show(owner, 'w')).state as string,
    after: (seconds: number) => kennel.pass(owner, seconds),
    alertsOfW: () => kennel.alerts(owner, 'w'),
    told: async () => (await kennel.alerts(owner, 'w')).map(({ type }) => type.replace('watchdog.', '')),
    receipts: () => count(kennel, 'receipts'),
    [Symbol.asyncDispose]: () => kennel[Symbol.asyncDispose](),
  }
}
type Yard = Awaited<ReturnType<typeof openYard>>

async function count({ tables }: Kennel, table: string): Promise<number> {
  const { rows } = await tables.query(`select count(*)::int n from ${table}`)
  return rows[0].n
}

/** As if every alert so far had been delivered. */
const deliver = ({ tables }: Kennel) =>
  tables.query(
    `update alerts set state = 'delivered', settled_at = now(), next_attempt_at = null where state = 'pending'`,
  )

async function alternate(yard: Yard, times: number) {
  for (let n = 0; n < times; n++) {
    t.match((await yard.fail()).body, { state: 'down' })
    t.match((await yard.ok()).body, { state: 'up' })
    await deliver(yard)
  }
}

const pairs = (n: number) => Array.from({ length: n }, () => ['missed', 'recovered']).flat()

t.test('60 alternating heartbeats make alerts for 12 outages; the rest become one when there is a token', async (t) => {
  await using yard = await openYard()
  await alternate(yard, 30)
  t.same(await yard.told(), pairs(OUTAGE_BURST))
  t.equal(await yard.receipts(), 2 * OUTAGE_BURST)
  t.equal(await yard.scan(), 0)
  await yard.after(OUTAGE_SPACING_SECONDS - 100)
  t.equal(await yard.scan(), 0, 'not yet')
  await yard.after(100)
  t.equal(await yard.scan(), 1)
  t.equal(await yard.scan(), 1)
  t.equal(await yard.scan(), 0)
  t.same(await yard.told(), pairs(OUTAGE_BURST + 1), 'what began and ended meanwhile is one pair')
  const alerts = await yard.alertsOfW()
  t.equal(alerts.at(-2)?.body.data.coalesced, 30 - OUTAGE_BURST - 1, 'and says how many more it stands for')
  t.notOk('coalesced' in alerts[0]!.body.data)
  t.same(
    alerts.map(({ event_seq }) => event_seq),
    alerts.map((_, n) => n + 1),
  )

  await yard.fail()
  await yard.after(OUTAGE_SPACING_SECONDS)
  t.equal(await yard.scan(), 1)
  t.same((await yard.told()).at(-1), 'missed', 'the latest state: an outage that goes on is alerted without an end')
  t.equal(await yard.state(), 'down')
  await yard.ok()
  t.same(await yard.told(), pairs(OUTAGE_BURST + 2), 'its end needs no token')
  await yard.after(OUTAGE_BURST * OUTAGE_SPACING_SECONDS)
  await deliver(yard)
  await alternate(yard, OUTAGE_BURST + 1)
  t.equal((await yard.told()).length, 2 * (2 * OUTAGE_BURST + 2), 'after an hour the allowance is whole again')
})

t.test('a flip beyond the allowance writes no index and asks for no alert', async (t) => {
  await using yard = await openYard()
  await alternate(yard, OUTAGE_BURST + 1)
  const checkAt = async () => (await yard.tables.query('select check_at from watchdogs')).rows[0].check_at as Date
  const before = await checkAt()
  let asked = 0
  const { append } = yard.api.chain
  yard.api.chain.append = (entry) => {
    asked++
    return append(entry)
  }
  await alternate(yard, 10)
  t.same(await checkAt(), before)
  t.equal(asked, 0)
})

t.test('deadlines missed again and again are limited alike, and shown all the same', async (t) => {
  await using yard = await openYard({ interval_s: 10, grace_s: 0 })
  const { ok, after, scan, state } = yard
  const outage = async () => {
    await after(11)
    await scan()
    t.equal(await state(), 'down')
    await ok()
    t.equal(await state(), 'up')
    await deliver(yard)
  }
  for (let n = 0; n < OUTAGE_BURST; n++) await outage()
  t.same(await yard.told(), pairs(OUTAGE_BURST))
  for (let n = 0; n < 3; n++) await outage()
  t.same(await yard.told(), pairs(OUTAGE_BURST), 'beyond the allowance nothing is alerted')
  await ok()
  await after(OUTAGE_SPACING_SECONDS)
  await scan()
  t.same((await yard.told()).slice(2 * OUTAGE_BURST), ['missed'], 'down by then: the outage goes on')
  const { body } = (await yard.alertsOfW()).at(-1)!
  t.match(body.data, { reason: 'overdue', coalesced: 3 })
  await ok()
  t.same(await yard.told(), pairs(OUTAGE_BURST + 1))
})

t.test('one outage an interval of five minutes is never limited', async (t) => {
  await using yard = await openYard({ interval_s: 200, grace_s: 50 })
  for (let n = 0; n < 3 * OUTAGE_BURST; n++) {
    await yard.after(OUTAGE_SPACING_SECONDS)
    t.equal(await yard.scan(), 1)
    await yard.ok()
    await deliver(yard)
  }
  t.same(await yard.told(), pairs(3 * OUTAGE_BURST))
})

t.test('a receiver that takes nothing: at most 20 alerts wait, and one more that ends an outage', async (t) => {
  await using yard = await openYard()
  for (let n = 0; n < OUTAGE_BURST; n++) {
    await yard.fail()
    await yard.ok()
  }
  t.same(await yard.told(), pairs(MAX_WAITING / 2))
  await yard.after(61)
  t.equal(await yard.scan(), 0)
  t.equal(await yard.state(), 'up')
  await yard.fail()
  t.equal(await yard.state(), 'down')
  await deliver(yard)
  await yard.after(61)
  t.equal(await yard.scan(), 1, 'when there is room')
  t.match((await yard.alertsOfW()).at(-1), { type: 'watchdog.missed', body: { data: { coalesced: 2 } } })
})

t.test('the number of a day: tests get 429, failures wait for the next day, missed deadlines do not', async (t) => {
  await using yard = await openYard({ interval_s: 600, grace_s: 0 }, 'free')
  const { owner, tables } = yard
  const limit = LIMITS.free.watchdog_alerts_per_day
  const ask = () => owner.call('POST', '/v1/watchdog/w/test')
  for (let n = 0; n < limit - 1; n++) {
    t.equal((await ask()).status, 200)
    await deliver(yard)
  }
  t.match((await owner.call('GET', '/v1/usage')).body, {
    limits: { watchdog_alerts_per_day: limit },
    used: { watchdog_alerts_today: limit - 1 },
  })
  await alternate(yard, 3)
  const types = await yard.told()
  t.equal(types.filter((type) => type === 'missed').length, 1, 'the last of the day')
  t.equal(types.at(-1), 'recovered', 'which is ended all the same')
  const refused = await ask()
  t.equal(refused.status, 429)
  t.match(refused.body.error, { code: 'daily_limit', message: /watchdog_alerts_per_day/ })
  t.ok(Math.abs(Number(refused.headers.get('retry-after')) - secondsToMidnightUtc(new Date())) < 60)
  t.equal(await yard.scan(), 0)

  await yard.fail()
  t.equal(await yard.state(), 'down')
  await yard.after(601)
  t.equal(await yard.scan(), 1, 'now its deadline has passed as well')
  const { body } = (await yard.alertsOfW()).at(-1)!
  t.match(body, { type: 'watchdog.missed', data: { reason: 'overdue', coalesced: 2 } })
  await yard.ok()
  await yard.fail()
  t.equal((await yard.told()).at(-1), 'recovered')
  await nextDay(yard, owner)
  t.equal(await yard.scan(), 1)
  t.match((await yard.alertsOfW()).at(-1), { type: 'watchdog.missed', body: { data: { reason: 'failed' } } })
  await deliver(yard)
  t.equal((await ask()).status, 200)
  const { rows } = await tables.query('select count(*)::int n from alert_days')
  t.same(rows, [{ n: 2 }])
})

/** As if the counts were yesterday's, and all that waits for today were due. */
async function nextDay({ tables }: Yard, owner: Account) {
  await tables.query('update alert_days set day = day - 1')
  await tables.query(
    `update watchdogs set fails_wait_until = now(), check_at = now() - interval '1 second'
     where account_id = (select id from accounts where handle = $1)`,
    [owner.handle],
  )
}

t.test('a watchdog that is deleted and made again does not get a fresh number of the day', async (t) => {
  await using yard = await openYard({}, 'free')
  const limit = LIMITS.free.watchdog_alerts_per_day
  for (let n = 0; n < limit + 5; n++) {
    await yard.fail()
    await yard.owner.call('DELETE', '/v1/watchdog/w')
    await yard.guard(yard.owner, 'w')
  }
  t.equal(await yard.receipts(), limit)
  await yard.tables.query(`update alert_days set found = $1`, [OUTAGE_BURST + 86_400 / OUTAGE_SPACING_SECONDS])
  await yard.after(71_000)
  t.equal(await yard.scan(), 0, 'nor do missed deadlines, beyond what one watchdog can have in a day')
  t.equal(await yard.state(), 'down', 'which is shown all the same')
})

t.test('paused and resumed: what was not alerted is forgotten, and its count with it', async (t) => {
  await using yard = await openYard()
  await alternate(yard, OUTAGE_BURST + 3)
  await yard.owner.call('POST', '/v1/watchdog/w/pause', { body: { paused: true } })
  await yard.owner.call('POST', '/v1/watchdog/w/pause', { body: { paused: false } })
  await yard.after(3600)
  t.equal(await yard.scan(), 0)
  await yard.fail()
  const { body } = (await yard.alertsOfW()).at(-1)!
  t.notOk('coalesced' in body.data)
  t.equal((await yard.told()).length, 2 * OUTAGE_BURST + 1)
})
