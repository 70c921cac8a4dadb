// The life of an outage: found by the clock or told by a heartbeat, alerted once, ended once; whatever comes in between.
import { createHash } from 'node:crypto'
import t from 'tap'
import { BatchOverflowError } from '../../server/db/batch.ts'
import { Refused } from '../../server/receipts/chain.ts'
import { dueAlert, tell } from '../../server/watchdogs/alerts.ts'
import { attend } from '../../server/watchdogs/intake-clock.ts'
import { openScanner, scanWatchdogs } from '../../server/watchdogs/scan.ts'
import { findStandings } from '../../server/watchdogs/snapshot.ts'
import { jcs } from '../client/issuer.ts'
import { type AlertRow, type Kennel, openKennel } from './harness.ts'

async function openYard(terms?: object) {
  const kennel = await openKennel()
  const owner = await kennel.register({ tier: 'dev' })
  await kennel.guard(owner, 'w', terms)
  return {
    ...kennel,
    owner,
    heart: (body?: object) => kennel.beat(owner, 'w', body),
    state: async () => (await kennel.show(owner, 'w')).state as string,
    after: (seconds: number) => kennel.pass(owner, seconds),
    told: async () => (await kennel.alerts(owner, 'w')).map(({ type }) => type.replace('watchdog.', '')),
    alertsOfW: () => kennel.alerts(owner, 'w'),
    [Symbol.asyncDispose]: () => kennel[Symbol.asyncDispose](),
  }
}

/** The chain refuses everything until it is let. */
function blockChain({ api }: Kennel) {
  const { append } = api.chain
  api.chain.append = () => Promise.reject(new BatchOverflowError('full'))
  return () => {
    api.chain.append = append
  }
}

const ms = (moment: string) => Date.parse(moment)

t.test('late after the interval, down after the grace, told once; up with the next heartbeat, told once', async (t) => {
  await using yard = await openYard()
  const { heart, after, scan, state, told } = yard
  await heart({ note: 'step 4' })
  await after(59_000)
  t.equal(await scan(), 0)
  t.equal(await state(), 'up')
  await after(2_000)
  t.equal(await scan(), 0)
  t.equal(await state(), 'late')
  await after(8_000)
  t.equal(await scan(), 0)
  await after(2_000)
  t.equal(await scan(), 1)
  t.equal(await state(), 'down')
  for (let times = 0; times < 3; times++) {
    await after(100_000)
    t.equal(await scan(), 0)
  }
  t.match((await heart()).body, { state: 'up' })
  t.equal(await state(), 'up')
  t.same(await told(), ['missed', 'recovered'], 'with the answer to the heartbeat it is in the outbox')
  await heart()
  await scan()
  t.same(await told(), ['missed', 'recovered'])

  const [missed, recovered] = (await yard.alertsOfW()) as [AlertRow, AlertRow]
  const { data } = missed.body
  t.match(data, {
    watchdog: 'w',
    state: 'down',
    previous: 'late',
    reason: 'overdue',
    missed_count: 1,
    event_seq: 1,
    interval_s: 60_000,
    grace_s: 10_000,
    alert_after: 1,
    note: 'step 4',
  })
  t.equal(ms(data.due_at), ms(data.last_heartbeat_at) + 60_000_000)
  t.equal(ms(data.down_since), ms(data.due_at) + 10_000_000, 'the moment it was due, not the one it was found')
  t.ok(ms(data.detected_at) > ms(data.down_since))
  t.equal(missed.body.timestamp, data.down_since)
  const { data: end } = recovered.body
  t.match(end, { watchdog: 'w', state: 'up', previous: 'down', event_seq: 2, down_since: /Z$/ })
  t.equal(end.down_ms, ms(end.recovered_at) - ms(end.down_since))
  t.equal(end.missed_intervals, Math.floor(end.down_ms / 60_000_000))
  t.equal(end.missed_intervals, 5)
})

t.test(
  'every alert has its receipt: over the canonical document, in the chain, public in nothing but its kind',
  async (t) => {
    await using yard = await openYard()
    await yard.after(71_000)
    await yard.scan()
    await yard.heart()
    for (const { type, body, serial } of await yard.alertsOfW()) {
      const { receipt, ...alert } = body
      t.match(receipt.attestation, { serial, label: type, requested_by: 'watchdog' })
      t.equal(receipt.attestation.subject_sha256, createHash('sha256').update(jcs(alert)).digest('hex'))
      t.match((await yard.call('GET', `/v1/receipt/${serial}`)).body, { attestation: receipt.attestation })
    }
    t.equal((await yard.alertsOfW()).length, 2)
  },
)

t.test('one that was never heard from is told as well', async (t) => {
  await using yard = await openYard()
  await yard.after(71_000)
  t.equal(await yard.scan(), 1)
  const [{ body }] = (await yard.alertsOfW()) as [AlertRow]
  t.match(body.data, { last_heartbeat_at: null, missed_count: 1 })
})

t.test('alert_after waits for so many intervals; interval and grace count as they stand then', async (t) => {
  await using yard = await openYard({ alert_after: 3 })
  await yard.after(189_000)
  t.equal(await yard.scan(), 0)
  t.equal(await yard.state(), 'late')
  await yard.guard(yard.owner, 'w', { alert_after: 2 })
  t.equal(await yard.scan(), 1)
  const [{ body }] = (await yard.alertsOfW()) as [AlertRow]
  t.match(body.data, { alert_after: 2, missed_count: 3 })
})

t.test('a deadline that is put off is looked at then, and one that is drawn near is looked at sooner', async (t) => {
  await using yard = await openYard()
  await yard.after(65_000)
  await yard.guard(yard.owner, 'w', { interval_s: 600_000 })
  await yard.after(500_000)
  t.equal(await yard.scan(), 0)
  await yard.guard(yard.owner, 'w', { interval_s: 300_000 })
  t.equal(await yard.scan(), 1)
})

t.test('reminders while it is down, and none before or after', async (t) => {
  await using yard = await openYard({ remind_every_s: 300_000 })
  await yard.after(80_000)
  await yard.scan()
  await yard.after(280_000)
  t.equal(await yard.scan(), 0)
  await yard.after(20_000)
  t.equal(await yard.scan(), 1)
  t.equal(await yard.scan(), 0)
  await yard.after(1_000_000)
  t.equal(await yard.scan(), 1, 'one, however many were due')
  await yard.heart()
  await yard.after(50_000)
  t.equal(await yard.scan(), 0)
  t.same(await yard.told(), ['missed', 'reminder', 'reminder', 'recovered'])
  const [, first] = await yard.alertsOfW()
  t.match(first?.body.data, { state: 'down', previous: 'down', event_seq: 2 })
  t.ok(first?.body.data.down_ms >= 300_000_000)
})

t.test('a heartbeat that says fail is told at once, as one outage until all is well', async (t) => {
  await using yard = await openYard()
  const { heart, told, after, scan } = yard
  t.match((await heart({ status: 'fail', note: 'disk full' })).body, { state: 'down' })
  t.same(await told(), ['missed'])
  t.match((await heart({ status: 'fail', note: 'still full' })).body, { state: 'down' })
  await after(1_000_000)
  t.equal(await scan(), 0, 'it is not missed on top')
  t.match((await heart()).body, { state: 'up' })
  t.match((await heart({ status: 'fail' })).body, { state: 'down' })
  t.same(await told(), ['missed', 'recovered', 'missed'])
  const [{ body }, , again] = (await yard.alertsOfW()) as [AlertRow, AlertRow, AlertRow]
  t.match(body.data, { reason: 'failed', previous: 'new', missed_count: 0, note: 'disk full', state: 'down' })
  t.equal(body.data.down_since, body.data.last_heartbeat_at)
  t.match(again.body.data, { reason: 'failed', previous: 'up' })
})

t.test('a fail during an outage changes nothing about it', async (t) => {
  await using yard = await openYard()
  await yard.after(71_000)
  await yard.scan()
  t.match((await yard.heart({ status: 'fail' })).body, { state: 'down' })
  t.same(await yard.told(), ['missed'])
  t.match((await yard.heart()).body, { state: 'up' })
  t.same(await yard.told(), ['missed', 'recovered'])
})

t.test('heartbeats of one batch count in their order', async (t) => {
  await using yard = await openYard()
  const { heartbeats } = yard.api
  const { rows } = await yard.tables.query('select account_id from watchdogs')
  const beat = (status: 'ok' | 'fail') =>
    heartbeats.add({ accountId: rows[0].account_id, name: 'w', status, note: null })
  const answers = await Promise.all([beat('ok'), beat('ok'), beat('fail'), beat('ok'), beat('fail'), beat('fail')])
  t.same(
    answers.map((answer) => answer?.state),
    ['up', 'up', 'down', 'up', 'down', 'down'],
  )
  t.match(await yard.show(yard.owner, 'w'), { beats: 6, state: 'down' })
})

t.test('a heartbeat counts although the chain takes nothing; the scanner tells what it turned', async (t) => {
  await using yard = await openYard()
  const { heart, told, scan, scanAgain, state, after } = yard
  await after(71_000)
  await scan()
  const release = blockChain(yard)
  const answer = await heart()
  t.equal(answer.status, 200)
  t.match(answer.body, { state: 'up' })
  t.equal(await state(), 'up')
  t.same(await told(), ['missed'])
  await after(11)
  await t.rejects(scan(), BatchOverflowError)
  release()
  t.equal(await scanAgain(), 0, 'it is tried again in a while')
  await after(11)
  t.equal(await scan(), 1)
  t.same(await told(), ['missed', 'recovered'])
  const [, { body }] = (await yard.alertsOfW()) as [AlertRow, AlertRow]
  t.equal(body.data.recovered_at, body.data.last_heartbeat_at, 'told as of the heartbeat')
  t.equal(await state(), 'up')
})

t.test('an outage that began and ended while nothing could be told is told whole', async (t) => {
  await using yard = await openYard()
  const release = blockChain(yard)
  t.match((await yard.heart({ status: 'fail' })).body, { state: 'down' })
  t.match((await yard.heart()).body, { state: 'up' })
  release()
  t.same(await yard.told(), [])
  await yard.after(11)
  t.equal(await yard.scan(), 1)
  t.equal(await yard.scan(), 1)
  t.equal(await yard.scan(), 0)
  t.same(await yard.told(), ['missed', 'recovered'])
})

t.test('a heartbeat between the look and the lock has won', async (t) => {
  await using yard = await openYard()
  const { rows } = await yard.tables.query<{ id: string }>('select id from watchdogs')
  await yard.after(71_000)
  const [seen] = await findStandings(yard.api.db, [rows[0]!.id])
  await yard.heart()
  const telling = dueAlert(seen!, { overdue: true, remind: false })
  t.ok((await tell(yard.api.chain, telling!)) instanceof Refused)
  t.same(await yard.told(), [])
  t.equal(await yard.state(), 'up')

  await yard.after(71_000)
  const [again] = await findStandings(yard.api.db, [rows[0]!.id])
  const twice = [again!, again!].map((standing) => dueAlert(standing, { overdue: true, remind: false })!)
  const outcomes = await Promise.all(twice.map((one) => tell(yard.api.chain, one)))
  t.equal(outcomes.filter((outcome) => outcome instanceof Refused).length, 1, 'one of two')
  await yard.owner.call('POST', '/v1/watchdog/w/pause', { body: { paused: true } })
  const [down] = await findStandings(yard.api.db, [rows[0]!.id])
  t.equal(dueAlert(down!, { overdue: true, remind: true }), null)
  t.same(await yard.told(), ['missed'])
})

t.test('many workers at once, many watchdogs, heartbeats in between: each outage is told once', async (t) => {
  await using yard = await openYard()
  await using other = await yard.openApiProcess()
  const many = await yard.register({ tier: 'pro' })
  const names = Array.from({ length: 60 }, (_, n) => `w${n}`)
  for (const name of names) await yard.guard(many, name)
  await yard.pass(many, 71_000)
  const beats = names.filter((_, n) => n % 3 === 0).map((name) => yard.beat(many, name))
  await Promise.all([...Array.from({ length: 4 }, (_, n) => scanAt(yard, n % 2 ? yard.api : other.api)), ...beats])
  await yard.scan()
  for (const [n, name] of names.entries()) {
    const types = (await yard.alerts(many, name)).map(({ type }) => type)
    const expected = n % 3 ? [['watchdog.missed']] : [[], ['watchdog.missed', 'watchdog.recovered']]
    t.ok(
      expected.some((one) => JSON.stringify(one) === JSON.stringify(types)),
      `${name}: ${types}`,
    )
  }
})

/** A scan of several at once: whoever comes second finds nothing. */
async function scanAt({ tables }: Kennel, api: Kennel['api']) {
  await tables.query(
    `update watchdog_scans set open_at = clock_timestamp(), seen_at = clock_timestamp() - interval '1 s'`,
  )
  await scanWatchdogs(api)
}

t.test('paused: nothing is told, until it is resumed or resumes by itself', async (t) => {
  await using yard = await openYard()
  const { owner, after, scan, told, state, heart } = yard
  const pause = (body: object) => owner.call('POST', '/v1/watchdog/w/pause', { body })
  const later = () => new Date(Date.now() + 3_600_000_000).toISOString()
  await heart()
  await pause({ paused: true, until: later() })
  await after(3_000_000)
  t.equal(await scan(), 0)
  t.equal(await state(), 'paused')
  await after(601_000)
  t.equal(await scan(), 0)
  t.equal(await state(), 'up')
  await after(65_000)
  t.equal(await scan(), 0, 'a whole interval and the grace from then')
  await after(6_000)
  t.equal(await scan(), 1)

  await pause({ paused: true })
  t.match((await heart({ status: 'fail' })).body, { state: 'paused' })
  await after(100_000_000)
  t.equal(await scan(), 0)
  await pause({ paused: false })
  t.equal(await scan(), 0)
  await after(71_000)
  t.equal(await scan(), 1, 'missed anew')
  await heart()
  t.same(await told(), ['missed', 'missed', 'recovered'])

  await heart({ status: 'fail' })
  await pause({ paused: true })
  t.match((await heart()).body, { state: 'paused' })
  await after(1_000_000)
  t.equal(await scan(), 0)
  await pause({ paused: false })
  t.equal(await scan(), 1)
  t.same((await told()).slice(3), ['missed', 'recovered'], 'the end of an outage is told when the pause is over')
  t.equal(await state(), 'up')
})

t.test('a gap of ours is held against nobody', async (t) => {
  await using yard = await openYard()
  const { owner, tables, api } = yard
  for (const name of ['beaten', 'paused', 'down']) await yard.guard(owner, name)
  await yard.beat(owner, 'down', { status: 'fail' })
  await owner.call('POST', '/v1/watchdog/paused/pause', { body: { paused: true } })
  // So many seconds without a scan. One sent a heartbeat meanwhile, the others their last an interval before.
  const gap = 600_000
  await yard.after(gap + 60_000)
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
  t.equal(await yard.scan(gap, { ...api, log }), 0)
  t.match(lines, [{ event: 'watchdog_gap', moved: 2 }])
  const { started, seen } = await clocks()
  t.equal(started.w, before.w! + gap * 1000, 'what went by before the gap counts')
  t.equal(started.beaten, seen, 'all of it was in the gap')
  t.match(started, { paused: before.paused, down: before.down })
  t.same(await yard.told(), [])
  await yard.after(9_000)
  t.equal(await yard.scan(), 0)
  await yard.after(2_000)
  t.equal(await yard.scan(), 1)
})

t.test('while no heartbeat could be taken nobody is judged', async (t) => {
  await using yard = await openYard()
  const { tables, api } = yard
  // What the API process would go on saying.
  await tables.query('create function nobody() returns trigger language plpgsql as $$ begin return null; end $$')
  await tables.query(
    `create trigger nobody before update of open_at on watchdog_scans for each row execute function nobody()`,
  )
  await tables.query('update watchdog_scans set seen_at = open_at')
  await yard.after(75_000)
  for (let times = 0; times < 3; times++) t.equal(await scanWatchdogs(api), null)
  await tables.query('drop trigger nobody on watchdog_scans')
  await tables.query(
    `update watchdog_scans set seen_at = seen_at - interval '1000 hours', open_at = open_at - interval '1000 hours'`,
  )
  await attend(api.db)
  while ((await scanWatchdogs(api)) === null);
  t.same(await yard.told(), [], 'and the time without counts for nothing')
})

t.test('a clock that was put back accuses nobody, and does not put alerts off for ever', async (t) => {
  await using yard = await openYard()
  await yard.scan()
  await yard.after(-3_600_000)
  t.equal(await yard.scan(-3_600_000), 0)
  t.same(await yard.told(), [])
  await yard.after(69_000)
  t.equal(await yard.scan(), 0)
  await yard.after(2_000)
  t.equal(await yard.scan(), 1)
})

t.test('a watchdog that cannot be told keeps no other from it, and is tried again later', async (t) => {
  await using yard = await openYard()
  const { owner, tables } = yard
  for (const name of ['a', 'b', 'bad']) await yard.guard(owner, name)
  await tables.query(`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'bad row'; end $$;
    create trigger refuse before insert on alerts for each row when (new.body like '%"watchdog":"bad"%')
      execute function refuse()`)
  await yard.after(71_000)
  t.equal(await yard.scan(), 3)
  t.equal(await yard.scanAgain(), 0)
  for (const [name, count] of [
    ['w', 1],
    ['a', 1],
    ['b', 1],
    ['bad', 0],
  ] as const)
    t.equal((await yard.alerts(owner, name)).length, count, name)
  await tables.query('drop trigger refuse on alerts')
  await yard.after(61)
  t.equal(await yard.scan(), 1)
})

t.test('what is taken up and not told, because its worker died, is taken up again', async (t) => {
  await using yard = await openYard()
  await yard.after(71_000)
  const { append } = yard.api.chain
  const called = Promise.withResolvers<void>()
  yard.api.chain.append = () => {
    called.resolve()
    return new Promise(() => {})
  }
  void yard.scan()
  await called.promise
  yard.api.chain.append = append
  t.equal(await yard.scanAgain(), 0)
  await yard.after(11)
  t.equal(await yard.scan(), 1)
})

t.test('deleted in the middle of an outage: its alerts go with it', async (t) => {
  await using yard = await openYard()
  await yard.after(71_000)
  const { rows } = await yard.tables.query<{ id: string }>('select id from watchdogs')
  const [seen] = await findStandings(yard.api.db, [rows[0]!.id])
  await yard.scan()
  t.equal((await yard.owner.call('DELETE', '/v1/watchdog/w')).status, 204)
  t.ok((await tell(yard.api.chain, dueAlert(seen!, { overdue: true, remind: false })!)) instanceof Refused)
  t.equal((await yard.tables.query('select from alerts')).rowCount, 0)
})

t.test('the scanner waits out a database that fails; what ends it is told as its death', async (t) => {
  await using yard = await openYard()
  const { db } = yard.api
  const failed = Promise.withResolvers<void>()
  const broken = { ...db, transaction: () => Promise.reject(new Error('the database is away')) }
  const warn = () => failed.resolve()
  const waiting = openScanner({ ...yard.api, db: broken, log: { warn } } as never)
  await failed.promise
  await waiting[Symbol.asyncDispose]()
  const mute = () => {
    throw new Error('nobody can be told')
  }
  await using dead = openScanner({ ...yard.api, db: broken, log: { warn: mute } } as never)
  await t.rejects(dead.died, { message: 'nobody can be told' })
})
