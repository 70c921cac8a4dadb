// Workers killed while they send: the alert comes again from another, with the same id, at least once and soon.
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { startChild } from '../children.ts'
import { openAccountHarness } from './harness.ts'
import type { Received } from './receiver.ts'

t.jobs = 3
const idOf = ({ headers }: Received) => headers['webhook-id']

t.test('killed while the receiver thinks', { buffered: true }, async (t) => {
  await using office = await openAccountHarness()
  const { front, receiver } = office
  const hook = await office.makeHook()
  const answered = Promise.withResolvers<void>()
  receiver.answers.set(hook.path, async (response) => {
    await answered.promise
    response.writeHead(200).end()
  })
  await using victim = startChild('workers/main.ts', front.env)
  await victim.logs('worker_started')
  const [id] = await office.tell(hook)
  await receiver.arrivals(hook.path, 1)
  victim.kill('SIGKILL')
  await victim.ended
  answered.resolve()
  // In place of waiting until the right to send has run out.
  await front.tables.query(`update webhooks set sending_until = now() - interval '1 second'`)
  await using other = startChild('workers/main.ts', front.env)
  t.match(await other.logs('alert_attempt'), { alert_id: id, outcome: 'delivered', attempt: 1 })
  t.same(receiver.received.map(idOf), [id, id])
  t.equal(receiver.received[0]?.body.toString(), receiver.received[1]?.body.toString())
})

t.test('killed when the receiver has answered 200 and nobody knows yet', { buffered: true }, async (t) => {
  await using office = await openAccountHarness()
  const { front, receiver } = office
  const hook = await office.makeHook()
  const settling = await front.tables.connect()
  const sent = Promise.withResolvers<void>()
  receiver.answers.set(hook.path, async (response, { besides }) => {
    t.equal(besides, 0)
    // The settling has to wait for this.
    await settling.query('begin')
    await settling.query('select from webhooks where id = $1 for update', [hook.id])
    response.writeHead(200).end(() => sent.resolve())
    receiver.answers.delete(hook.path)
  })
  await using victim = startChild('workers/main.ts', front.env)
  await victim.logs('worker_started')
  const [id] = await office.tell(hook)
  await sent.promise
  victim.kill('SIGKILL')
  await victim.ended
  await settling.query('rollback')
  settling.release()
  t.match(await office.alerts(hook), [{ state: 'pending', attempts: 0 }])
  await front.tables.query(`update webhooks set sending_until = now() - interval '1 second'`)
  await using other = startChild('workers/main.ts', front.env)
  await other.logs('alert_attempt')
  t.same(receiver.received.map(idOf), [id, id])
  t.match(await office.alerts(hook), [{ state: 'delivered', attempts: 1 }])
})

t.test('with nobody helping, another worker sends it within 30 seconds', { buffered: true }, async (t) => {
  await using office = await openAccountHarness()
  const { front, receiver } = office
  const hook = await office.makeHook()
  receiver.answers.set(hook.path, () => {})
  await using other = startChild('workers/main.ts', front.env)
  await using victim = startChild('workers/main.ts', front.env)
  await Promise.all([other.logs('worker_started'), victim.logs('worker_started')])
  // Asleep while it is decided who sends.
  other.kill('SIGSTOP')
  const [id] = await office.tell(hook)
  await receiver.arrivals(hook.path, 1)
  receiver.answers.delete(hook.path)
  const killed = performance.now()
  victim.kill('SIGKILL')
  other.kill('SIGCONT')
  await Promise.race([receiver.arrivals(hook.path, 2), pause(45_000, undefined, { ref: false })])
  const seconds = (performance.now() - killed) / 1000
  t.comment(`sent again ${seconds.toFixed(1)} s after kill -9`)
  t.same(receiver.received.map(idOf), [id, id])
  t.ok(seconds < 30, `${seconds.toFixed(1)} s`)
})
