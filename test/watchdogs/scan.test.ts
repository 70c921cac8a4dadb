// Outages: found by the clock or reported by a heartbeat, alerted once and ended once, also under pauses and races.
import { createHash } from 'node:crypto'
import t from 'tap'
import { BatchOverflowError } from '../../server/db/batch.ts'
import { Refused } from '../../server/receipts/chain.ts'
import { dueAlert, raiseWatchdogAlert } from '../../server/watchdogs/alerts.ts'
import { scanWatchdogs } from '../../server/watchdogs/scan.ts'
import { findSnapshots } from '../../server/watchdogs/snapshot.ts'
import { jcs } from '../client/issuer.ts'
import { type AlertRow, openSingleWatchdog, type WatchdogHarness } from './harness.ts'

/** Makes the chain refuse every entry until the returned function is called. */
function blockChain({ api }: WatchdogHarness) {
  const { append } = api.chain
  api.chain.append = () => Promise.reject(new BatchOverflowError('full'))
  return () => {
    api.chain.append = append
  }
}

const ms = (moment: string) => Date.parse(moment)

t.test(
  'late after the interval, down after the grace, alerted once; up with the next heartbeat, alerted once',
  async (t) => {
    await using single = await openSingleWatchdog()
    const { sendBeat, after, scan, state, alertTypes } = single
    await sendBeat({ note: 'step 4' })
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
    t.match((await sendBeat()).body, { state: 'up' })
    t.equal(await state(), 'up')
    t.same(await alertTypes(), ['missed', 'recovered'], 'it is in the outbox when the heartbeat is answered')
    await sendBeat()
    await scan()
    t.same(await alertTypes(), ['missed', 'recovered'])

    const [missed, recovered] = (await single.alertsSoFar()) as [AlertRow, AlertRow]
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
    t.equal(ms(data.down_since), ms(data.due_at) + 10_000_000, 'the time of the deadline, not the time of the scan')
    t.ok(ms(data.detected_at) > ms(data.down_since))
    t.equal(missed.body.timestamp, data.down_since)
    const { data: end } = recovered.body
    t.match(end, { watchdog: 'w', state: 'up', previous: 'down', event_seq: 2, down_since: /Z$/ })
    t.equal(end.down_ms, ms(end.recovered_at) - ms(end.down_since))
    t.equal(end.missed_intervals, Math.floor(end.down_ms / 60_000_000))
    t.equal(end.missed_intervals, 5)
  },
)

t.test(
  'every alert has its receipt: over the canonical document, in the chain, with its type alone made public',
  async (t) => {
    await using single = await openSingleWatchdog()
    await single.after(71_000)
    await single.scan()
    await single.sendBeat()
    for (const { type, body, serial } of await single.alertsSoFar()) {
      const { receipt, ...alert } = body
      t.match(receipt.attestation, { serial, label: type, requested_by: 'watchdog' })
      t.equal(receipt.attestation.subject_sha256, createHash('sha256').update(jcs(alert)).digest('hex'))
      t.match((await single.call('GET', `/v1/receipt/${serial}`)).body, { attestation: receipt.attestation })
    }
    t.equal((await single.alertsSoFar()).length, 2)
  },
)

t.test('a watchdog without any heartbeat is alerted too', async (t) => {
  await using single = await openSingleWatchdog()
  await single.after(71_000)
  t.equal(await single.scan(), 1)
  const [{ body }] = (await single.alertsSoFar()) as [AlertRow]
  t.match(body.data, { last_heartbeat_at: null, missed_count: 1 })
})

t.test('alert_after waits for so many intervals, by the terms of the time of the scan', async (t) => {
  await using single = await openSingleWatchdog({ alert_after: 3 })
  await single.after(189_000)
  t.equal(await single.scan(), 0)
  t.equal(await single.state(), 'late')
  await single.putWatchdog(single.owner, 'w', { alert_after: 2 })
  t.equal(await single.scan(), 1)
  const [{ body }] = (await single.alertsSoFar()) as [AlertRow]
  t.match(body.data, { alert_after: 2, missed_count: 3 })
})

t.test('after a change of terms the deadline is checked at its new time, later or earlier', async (t) => {
  await using single = await openSingleWatchdog()
  await single.after(65_000)
  await single.putWatchdog(single.owner, 'w', { interval_s: 600_000 })
  await single.after(500_000)
  t.equal(await single.scan(), 0)
  await single.putWatchdog(single.owner, 'w', { interval_s: 300_000 })
  t.equal(await single.scan(), 1)
})

t.test('reminders while it is down, and none before or after', async (t) => {
  await using single = await openSingleWatchdog({ remind_every_s: 300_000 })
  await single.after(80_000)
  await single.scan()
  await single.after(280_000)
  t.equal(await single.scan(), 0)
  await single.after(20_000)
  t.equal(await single.scan(), 1)
  t.equal(await single.scan(), 0)
  await single.after(1_000_000)
  t.equal(await single.scan(), 1, 'one reminder for all that were due')
  await single.sendBeat()
  await single.after(50_000)
  t.equal(await single.scan(), 0)
  t.same(await single.alertTypes(), ['missed', 'reminder', 'reminder', 'recovered'])
  const [, first] = await single.alertsSoFar()
  t.match(first?.body.data, { state: 'down', previous: 'down', event_seq: 2 })
  t.ok(first?.body.data.down_ms >= 300_000_000)
})

t.test('a heartbeat with fail is alerted at once, as one outage until a heartbeat with ok', async (t) => {
  await using single = await openSingleWatchdog()
  const { sendBeat, alertTypes, after, scan } = single
  t.match((await sendBeat({ status: 'fail', note: 'disk full' })).body, { state: 'down' })
  t.same(await alertTypes(), ['missed'])
  t.match((await sendBeat({ status: 'fail', note: 'still full' })).body, { state: 'down' })
  await after(1_000_000)
  t.equal(await scan(), 0, 'its missed deadline is no second outage')
  t.match((await sendBeat()).body, { state: 'up' })
  t.match((await sendBeat({ status: 'fail' })).body, { state: 'down' })
  t.same(await alertTypes(), ['missed', 'recovered', 'missed'])
  const [{ body }, , again] = (await single.alertsSoFar()) as [AlertRow, AlertRow, AlertRow]
  t.match(body.data, { reason: 'failed', previous: 'new', missed_count: 0, note: 'disk full', state: 'down' })
  t.equal(body.data.down_since, body.data.last_heartbeat_at)
  t.match(again.body.data, { reason: 'failed', previous: 'up' })
})

t.test('a fail during an outage changes nothing', async (t) => {
  await using single = await openSingleWatchdog()
  await single.after(71_000)
  await single.scan()
  t.match((await single.sendBeat({ status: 'fail' })).body, { state: 'down' })
  t.same(await single.alertTypes(), ['missed'])
  t.match((await single.sendBeat()).body, { state: 'up' })
  t.same(await single.alertTypes(), ['missed', 'recovered'])
})

t.test('heartbeats of one batch are applied in their order', async (t) => {
  await using single = await openSingleWatchdog()
  const { heartbeats } = single.api
  const { rows } = await single.tables.query('select account_id from watchdogs')
  const beat = (status: 'ok' | 'fail') =>
    heartbeats.add({ accountId: rows[0].account_id, name: 'w', status, note: null })
  const answers = await Promise.all([beat('ok'), beat('ok'), beat('fail'), beat('ok'), beat('fail'), beat('fail')])
  t.same(
    answers.map((answer) => answer?.state),
    ['up', 'up', 'down', 'up', 'down', 'down'],
  )
  t.match(await single.show(single.owner, 'w'), { beats: 6, state: 'down' })
})

t.test('a heartbeat counts while the chain refuses entries; the scanner raises its alert later', async (t) => {
  await using single = await openSingleWatchdog()
  const { sendBeat, alertTypes, scan, scanAgain, state, after } = single
  await after(71_000)
  await scan()
  const release = blockChain(single)
  const answer = await sendBeat()
  t.equal(answer.status, 200)
  t.match(answer.body, { state: 'up' })
  t.equal(await state(), 'up')
  t.same(await alertTypes(), ['missed'])
  await after(11)
  await t.rejects(scan(), BatchOverflowError)
  release()
  t.equal(await scanAgain(), 0, 'the next attempt comes after a delay')
  await after(11)
  t.equal(await scan(), 1)
  t.same(await alertTypes(), ['missed', 'recovered'])
  const [, { body }] = (await single.alertsSoFar()) as [AlertRow, AlertRow]
  t.equal(body.data.recovered_at, body.data.last_heartbeat_at, 'the time of the heartbeat')
  t.equal(await state(), 'up')
})

t.test('an outage that began and ended while no alert could be raised gets both of its alerts', async (t) => {
  await using single = await openSingleWatchdog()
  const release = blockChain(single)
  t.match((await single.sendBeat({ status: 'fail' })).body, { state: 'down' })
  t.match((await single.sendBeat()).body, { state: 'up' })
  release()
  t.same(await single.alertTypes(), [])
  await single.after(11)
  t.equal(await single.scan(), 1)
  t.equal(await single.scan(), 1)
  t.equal(await single.scan(), 0)
  t.same(await single.alertTypes(), ['missed', 'recovered'])
})

t.test('a heartbeat between reading and locking makes the alert void', async (t) => {
  await using single = await openSingleWatchdog()
  const { rows } = await single.tables.query<{ id: string }>('select id from watchdogs')
  await single.after(71_000)
  const [seen] = await findSnapshots(single.api.db, [rows[0]!.id])
  await single.sendBeat()
  const draft = dueAlert(seen!, { overdue: true, remind: false })
  t.ok((await raiseWatchdogAlert(single.api.chain, draft!)) instanceof Refused)
  t.same(await single.alertTypes(), [])
  t.equal(await single.state(), 'up')

  await single.after(71_000)
  const [again] = await findSnapshots(single.api.db, [rows[0]!.id])
  const twice = [again!, again!].map((snapshot) => dueAlert(snapshot, { overdue: true, remind: false })!)
  const outcomes = await Promise.all(twice.map((one) => raiseWatchdogAlert(single.api.chain, one)))
  t.equal(outcomes.filter((outcome) => outcome instanceof Refused).length, 1, 'one of two')
  await single.owner.call('POST', '/v1/watchdog/w/pause', { body: { paused: true } })
  const [down] = await findSnapshots(single.api.db, [rows[0]!.id])
  t.equal(dueAlert(down!, { overdue: true, remind: true }), null)
  t.same(await single.alertTypes(), ['missed'])
})

t.test('many workers at once, many watchdogs, heartbeats in between: each outage is alerted once', async (t) => {
  await using single = await openSingleWatchdog()
  await using other = await single.openApiProcess()
  const many = await single.register({ tier: 'pro' })
  const names = Array.from({ length: 60 }, (_, n) => `w${n}`)
  for (const name of names) await single.putWatchdog(many, name)
  await single.pass(many, 71_000)
  const beats = names.filter((_, n) => n % 3 === 0).map((name) => single.beat(many, name))
  await Promise.all([...Array.from({ length: 4 }, (_, n) => scanAt(single, n % 2 ? single.api : other.api)), ...beats])
  await single.scan()
  for (const [n, name] of names.entries()) {
    const types = (await single.alerts(many, name)).map(({ type }) => type)
    const expected = n % 3 ? [['watchdog.missed']] : [[], ['watchdog.missed', 'watchdog.recovered']]
    t.ok(
      expected.some((one) => JSON.stringify(one) === JSON.stringify(types)),
      `${name}: ${types}`,
    )
  }
})

/** For scans at the same time: only one of them gets a step. */
async function scanAt({ tables }: WatchdogHarness, api: WatchdogHarness['api']) {
  await tables.query(
    `update watchdog_scans set open_at = clock_timestamp(), seen_at = clock_timestamp() - interval '1 s'`,
  )
  await scanWatchdogs(api)
}

t.test('while paused nothing is alerted, until it is resumed or the pause ends', async (t) => {
  await using single = await openSingleWatchdog()
  const { owner, after, scan, alertTypes, state, sendBeat } = single
  const pause = (body: object) => owner.call('POST', '/v1/watchdog/w/pause', { body })
  const later = () => new Date(Date.now() + 3_600_000_000).toISOString()
  await sendBeat()
  await pause({ paused: true, until: later() })
  await after(3_000_000)
  t.equal(await scan(), 0)
  t.equal(await state(), 'paused')
  await after(601_000)
  t.equal(await scan(), 0)
  t.equal(await state(), 'up')
  await after(65_000)
  t.equal(await scan(), 0, 'a whole interval and the grace from the end of the pause')
  await after(6_000)
  t.equal(await scan(), 1)

  await pause({ paused: true })
  t.match((await sendBeat({ status: 'fail' })).body, { state: 'paused' })
  await after(100_000_000)
  t.equal(await scan(), 0)
  await pause({ paused: false })
  t.equal(await scan(), 0)
  await after(71_000)
  t.equal(await scan(), 1, 'a new missed deadline')
  await sendBeat()
  t.same(await alertTypes(), ['missed', 'missed', 'recovered'])

  await sendBeat({ status: 'fail' })
  await pause({ paused: true })
  t.match((await sendBeat()).body, { state: 'paused' })
  await after(1_000_000)
  t.equal(await scan(), 0)
  await pause({ paused: false })
  t.equal(await scan(), 1)
  t.same(
    (await alertTypes()).slice(3),
    ['missed', 'recovered'],
    'the end of the outage is alerted when the pause is over',
  )
  t.equal(await state(), 'up')
})
