// What the receiver of one account answers counts against that webhook, also where another account has its receiver at the same host.
import t from 'tap'
import { openDeliveryLoop } from '../../server/alerts/delivery-loop.ts'
import { PATIENT } from '../queue.ts'
import { openAlertHarness } from './harness.ts'
import { type Answering, held, status } from './receiver.ts'

const HOSTILE: [string, Answering, string][] = [
  ['500', status(500), 'active'],
  ['410', status(410), 'disabled'],
  ['a request for no more alerts', status(500, { 'webhook-delivery': 'disable' }), 'disabled'],
  ['429 with an hour', status(429, { 'retry-after': '3600' }), 'active'],
  ['503 with an hour', status(503, { 'retry-after': '3600' }), 'active'],
  ['a redirect', status(307, { location: 'https://hook.test/' }), 'active'],
  ['a connection that breaks', (response) => response.destroy(), 'active'],
]

t.test('an answer to one account changes nothing for another account at the same host', async (t) => {
  await using harness = await openAlertHarness()
  for (const [about, answer, state] of HOSTILE) {
    const [hostile, honest] = [await harness.makeHook(), await harness.makeHook()]
    harness.receiver.answers.set(hostile.path, answer)
    await harness.raise(hostile)
    await harness.deliver()
    await harness.raise(honest, 2)
    await harness.deliver()
    t.match(await harness.webhook(hostile), { state, slow: true }, about)
    t.match(await harness.webhook(honest), { state: 'active', slow: false }, about)
    const sent = { state: 'delivered', attempts: 1 }
    t.match(await harness.alerts(honest), [sent, sent], about)
  }
})

t.test('the receivers of one account that hang leave their host to a proved receiver of another', async (t) => {
  await using harness = await openAlertHarness()
  const { receiver } = harness
  const honest = await harness.makeHook()
  await harness.raise(honest)
  await harness.deliver()
  const first = await harness.makeHook()
  const hostile = [first]
  for (let n = 0; n < 5; n++) hostile.push(await harness.makeHook({ owner: first }))
  const { answer, release } = held(500)
  for (const { path } of hostile) receiver.answers.set(path, answer)
  for (const hook of hostile) await harness.raise(hook)
  await using loop = openDeliveryLoop(harness.work, PATIENT)
  loop.wake()
  while (receiver.received.filter(({ path }) => path !== honest.path).length < 2) await receiver.anyArrival()
  for (let n = 2; n <= 4; n++) {
    await harness.raise(honest)
    loop.wake()
    await receiver.arrivals(honest.path, n)
  }
  t.equal(receiver.received.filter(({ path }) => path !== honest.path).length, 2, 'two hang, four wait')
  release()
})
