// Workers killed while they send: another worker sends the alert again soon, with the same id, at least once.
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { startChild } from '../children.ts'
import { openSurvivor } from '../crash-harness.ts'
import { until } from '../until.ts'
import { type AlertHarness, openAlertHarness } from './harness.ts'
import type { Received } from './receiver.ts'

t.jobs = 3
/** The line of the log about an attempt of a worker in this process. */
const attempt = ({ front }: AlertHarness) => until(() => front.logged.find(({ event }) => event === 'alert_attempt'))
const idOf = ({ headers }: Received) => headers['webhook-id']

t.test('killed before the receiver has answered', { buffered: true }, async (t) => {
  await using harness = await openAlertHarness()
  const { front, receiver } = harness
  const hook = await harness.makeHook()
  const answered = Promise.withResolvers<void>()
  receiver.answers.set(hook.path, async (response) => {
    await answered.promise
    response.writeHead(200).end()
  })
  await using worker = startChild('workers/main.ts', front.env)
  await worker.logs('worker_started')
  const [id] = await harness.raise(hook)
  await receiver.arrivals(hook.path, 1)
  worker.kill('SIGKILL')
  await worker.ended
  answered.resolve()
  // Ends the lease, instead of waiting for that.
  await front.tables.query(`update webhooks set sending_until = now() - interval '1 second'`)
  await using _other = await openSurvivor(front)
  t.match(await attempt(harness), { alert_id: id, outcome: 'delivered', attempt: 1 })
  t.same(receiver.received.map(idOf), [id, id])
  t.equal(receiver.received[0]?.body.toString(), receiver.received[1]?.body.toString())
})

t.test('killed after the receiver has answered 200 and before that is recorded', { buffered: true }, async (t) => {
  await using harness = await openAlertHarness()
  const { front, receiver } = harness
  const hook = await harness.makeHook()
  const settling = await front.tables.connect()
  const sent = Promise.withResolvers<void>()
  receiver.answers.set(hook.path, async (response, { besides }) => {
    t.equal(besides, 0)
    // Settling waits for this lock.
    await settling.query('begin')
    await settling.query('select from webhooks where id = $1 for update', [hook.id])
    response.writeHead(200).end(() => sent.resolve())
    receiver.answers.delete(hook.path)
  })
  await using worker = startChild('workers/main.ts', front.env)
  await worker.logs('worker_started')
  const [id] = await harness.raise(hook)
  await sent.promise
  worker.kill('SIGKILL')
  await worker.ended
  await settling.query('rollback')
  settling.release()
  t.match(await harness.alerts(hook), [{ state: 'pending', attempts: 0 }])
  await front.tables.query(`update webhooks set sending_until = now() - interval '1 second'`)
  await using _other = await openSurvivor(front)
  await attempt(harness)
  t.same(receiver.received.map(idOf), [id, id])
  t.match(await harness.alerts(hook), [{ state: 'delivered', attempts: 1 }])
})

t.test('without help from the test, another worker sends it within 30 seconds', { buffered: true }, async (t) => {
  await using harness = await openAlertHarness()
  const { front, receiver } = harness
  const hook = await harness.makeHook()
  receiver.answers.set(hook.path, () => {})
  await using other = startChild('workers/main.ts', front.env)
  await using worker = startChild('workers/main.ts', front.env)
  await Promise.all([other.logs('worker_started'), worker.logs('worker_started')])
  // Stopped, so that `worker` is the one that sends.
  other.kill('SIGSTOP')
  const [id] = await harness.raise(hook)
  await receiver.arrivals(hook.path, 1)
  receiver.answers.delete(hook.path)
  const killedAt = performance.now()
  worker.kill('SIGKILL')
  other.kill('SIGCONT')
  await Promise.race([receiver.arrivals(hook.path, 2), pause(45_000, undefined, { ref: false })])
  const seconds = (performance.now() - killedAt) / 1000
  t.comment(`sent again ${seconds.toFixed(1)} s after kill -9`)
  t.same(receiver.received.map(idOf), [id, id])
  t.ok(seconds < 30, `${seconds.toFixed(1)} s`)
})
