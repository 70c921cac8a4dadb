// Fairness: receivers that hang, and accounts with many alerts, do not delay alerts to receivers that answer or are new.
import t from 'tap'
import { BOUNDS, openDeliveryLoop } from '../../server/alerts/delivery-loop.ts'
import { FIRST_TIMEOUT_MS, TIMEOUT_MS } from '../../server/alerts/post.ts'
import { updateWebhookUrl } from '../../server/alerts/webhooks.ts'
import { transact } from '../../server/db/pool.ts'
import { PATIENT } from '../queue.ts'
import { type AlertHarness, type Hook, openAlertHarness } from './harness.ts'
import { held, status } from './receiver.ts'

const names = (count: number, suffix = 'test') =>
  Array.from({ length: count }, (_, n) => `r${n}.${suffix}`) as [string, ...string[]]

/** Webhooks of different accounts, one at each host, whose receivers hang until they are released. */
async function makeHanging(harness: AlertHarness, hosts: readonly string[], code = 500) {
  const crowd = []
  for (const host of hosts) {
    const hook = await harness.makeHook({ host })
    const { answer, release } = held(code)
    harness.receiver.answers.set(hook.path, answer)
    crowd.push({ ...hook, release })
  }
  return crowd
}

/** Delivers one alert to each, after which the receivers are proved. */
async function prove(harness: AlertHarness, ...hooks: Hook[]) {
  for (const hook of hooks) await harness.raise(hook)
  await harness.deliver()
  for (const hook of hooks) t.match(await harness.webhook(hook), { tried: true, slow: false })
}

const pathsOf = ({ receiver }: AlertHarness) => receiver.received.map(({ path }) => path)

t.test(
  '70 accounts whose receivers hang take half of the sends; a proved receiver waits for none of them',
  async (t) => {
    const hosts = names(70)
    await using harness = await openAlertHarness(['proved.test', ...hosts])
    const { receiver } = harness
    const proved = await harness.makeHook({ host: 'proved.test' })
    await prove(harness, proved)
    const crowd = await makeHanging(harness, hosts)
    for (const hook of crowd) await harness.raise(hook)
    await using loop = openDeliveryLoop(harness.work, PATIENT)
    loop.wake()
    await Promise.all(crowd.slice(0, BOUNDS.unproved).map(({ path }) => receiver.arrivals(path, 1)))
    for (let n = 2; n <= 4; n++) {
      await harness.raise(proved)
      loop.wake()
      await receiver.arrivals(proved.path, n)
      const hung = receiver.received.filter(({ path }) => path !== proved.path).length
      t.equal(hung, BOUNDS.unproved, `alert ${n} arrived while ${hung} hang and ${crowd.length - hung} wait`)
    }
    for (const { release } of crowd) release()
  },
)

t.test('slow receivers do not take all sends from receivers that were never tried', async (t) => {
  const hosts = names(6)
  await using harness = await openAlertHarness(['new.test', ...hosts])
  const { receiver, front } = harness
  const crowd = await makeHanging(harness, hosts)
  await front.tables.query('update webhooks set tried = true, slow = true')
  for (const hook of crowd) await harness.raise(hook)
  await using loop = openDeliveryLoop(harness.work, { ...PATIENT, unproved: 4, slow: 2 })
  loop.wake()
  await Promise.all(crowd.slice(0, 2).map(({ path }) => receiver.arrivals(path, 1)))
  const newcomer = await harness.makeHook({ host: 'new.test' })
  await harness.raise(newcomer)
  loop.wake()
  await receiver.arrivals(newcomer.path, 1)
  t.equal(receiver.received.length, 3)
  for (const { release } of crowd) release()
})

t.test('an account with an untried receiver goes before all that were served lately', async (t) => {
  const hosts = names(12)
  await using harness = await openAlertHarness(['new.test', ...hosts])
  const { receiver, front } = harness
  const crowd = await makeHanging(harness, hosts)
  const places = 4
  await using loop = openDeliveryLoop(harness.work, { ...PATIENT, unproved: places, slow: places })
  for (const hook of crowd) await harness.raise(hook)
  loop.wake()
  for (const [n, { path, release }] of crowd.entries()) {
    await receiver.arrivals(path, 1)
    t.equal(receiver.received.length - n <= places, true)
    release()
  }
  await loop.idle()
  // Every receiver hangs again, and every alert is due again, as after a PUT or a redelivery.
  const again = crowd.map(({ path }) => {
    const { answer, release } = held(500)
    receiver.answers.set(path, answer)
    return { path, release }
  })
  await front.tables.query(`update alerts set next_attempt_at = now() - interval '1 minute'`)
  receiver.received.length = 0
  loop.wake()
  const newcomer = await harness.makeHook({ host: 'new.test' })
  const arrivedAgain = () => again.filter(({ path }) => pathsOf(harness).includes(path))
  while (receiver.received.length < places) await receiver.anyArrival()
  await harness.raise(newcomer)
  arrivedAgain()[0]?.release()
  await receiver.arrivals(newcomer.path, 1)
  t.equal(pathsOf(harness).indexOf(newcomer.path), places, 'it got the first free send')
  for (const { release } of again) release()
})

t.test('many due alerts of one account do not go before the first of another', async (t) => {
  const hosts = names(6)
  await using harness = await openAlertHarness(['other.test', ...hosts])
  const { receiver } = harness
  const first = await harness.makeHook({ host: hosts[0] })
  const busy = [first]
  for (const host of hosts.slice(1)) busy.push(await harness.makeHook({ host, owner: first }))
  const other = await harness.makeHook({ host: 'other.test' })
  await prove(harness, ...busy, other)
  const gates = busy.map(({ path }) => {
    const { answer, release } = held()
    receiver.answers.set(path, answer)
    return release
  })
  receiver.received.length = 0
  for (const hook of busy) await harness.raise(hook)
  await harness.raise(other)
  await using loop = openDeliveryLoop(harness.work, { ...PATIENT, proved: 2 })
  loop.wake()
  await receiver.arrivals(other.path, 1)
  t.ok(pathsOf(harness).indexOf(other.path) <= 1, 'it was the second')
  for (const release of gates) release()
})

t.test('an account has at most two sends to unproved receivers, and eight in all', async (t) => {
  const hosts = names(12)
  await using harness = await openAlertHarness(['other.test', ...hosts])
  const { receiver } = harness
  const first = await harness.makeHook({ host: hosts[0] })
  const many = [first]
  for (const host of hosts.slice(1)) many.push(await harness.makeHook({ host, owner: first }))
  const other = await harness.makeHook({ host: 'other.test' })
  for (const most of [BOUNDS.account.unproved, BOUNDS.account.all]) {
    const { answer, release } = held()
    for (const { path } of many) receiver.answers.set(path, answer)
    for (const hook of [...many, other]) await harness.raise(hook)
    receiver.received.length = 0
    await using loop = openDeliveryLoop(harness.work, PATIENT)
    loop.wake()
    // The waiting alerts are due for longer. A send to the other account shows that none of them may be claimed.
    while (receiver.received.length < most + 1) await receiver.anyArrival()
    await harness.raise(other)
    loop.wake()
    while (pathsOf(harness).filter((path) => path === other.path).length < 2) await receiver.anyArrival()
    t.equal(receiver.received.length, most + 2)
    release()
    await loop.idle()
  }
})

t.test('hosts of one registrable domain count together', async (t) => {
  const hosts = names(7, 'crowded.test')
  await using harness = await openAlertHarness(['other.test', ...hosts])
  const { receiver } = harness
  const crowd = await makeHanging(harness, hosts)
  for (const hook of crowd) await harness.raise(hook)
  const other = await harness.makeHook({ host: 'other.test' })
  await harness.raise(other)
  await using loop = openDeliveryLoop(harness.work)
  loop.wake()
  await receiver.arrivals(other.path, 1)
  t.equal(receiver.received.length, BOUNDS.domain.unproved + 1)
  for (const { release } of crowd) release()
})

t.test('receivers that answer once and then hang lose their place among the receivers that answer', async (t) => {
  const hosts = names(70)
  await using harness = await openAlertHarness(['proved.test', ...hosts])
  const { receiver } = harness
  const proved = await harness.makeHook({ host: 'proved.test' })
  const hanging = await Promise.all(hosts.map((host) => harness.makeHook({ host })))
  await prove(harness, proved, ...hanging)
  const { answer, release } = held()
  let ended = 0
  for (const { path } of hanging)
    receiver.answers.set(path, (response, item) => {
      response.once('close', () => ended++)
      return answer(response, item)
    })
  for (const hook of hanging) await harness.raise(hook)
  await harness.raise(proved)
  await using loop = openDeliveryLoop(harness.work, { ...BOUNDS, slowMs: 50 })
  loop.wake()
  await receiver.arrivals(proved.path, 2)
  t.equal(ended, 0, 'the alert arrived while all of them hang')
  release()
})

t.test('a PUT at the same host keeps the lane; another host starts untried', async (t) => {
  await using harness = await openAlertHarness(['hook.test', 'other.test'])
  const { receiver, front } = harness
  const hook = await harness.makeHook()
  const put = (url: string) => transact(front.core.db, (tx) => updateWebhookUrl(tx, hook.id, url))
  const known = async () => {
    const { tried, slow } = await harness.webhook(hook)
    return { tried, slow }
  }
  t.same(await known(), { tried: false, slow: false })
  receiver.answers.set(hook.path, status(500))
  await harness.raise(hook)
  await harness.deliver()
  const slow = { tried: true, slow: true }
  t.same(await known(), slow)
  await put(hook.url)
  t.same(await known(), slow, 'the same URL')
  await put(receiver.url('/elsewhere'))
  t.same(await known(), slow, 'another path')
  await put(receiver.url('/elsewhere', 'other.test'))
  t.same(await known(), { tried: false, slow: false })
  await harness.deliver()
  t.same(await known(), { tried: true, slow: false })
  await put(receiver.url('/elsewhere', 'hook.test'))
  t.same(await known(), { tried: false, slow: false }, 'only the present host counts')

  const { answer, release } = held()
  receiver.answers.set('/elsewhere', answer)
  await harness.raise(hook)
  await using loop = openDeliveryLoop(harness.work)
  loop.wake()
  await receiver.arrivals('/elsewhere', 2)
  await put(receiver.url('/evaded'))
  t.same(await known(), slow, 'a receiver that hangs is slow in spite of the PUT')
  release()
})

t.test('the first attempt at a host has five seconds', async (t) => {
  await using harness = await openAlertHarness()
  const { receiver, front } = harness
  const hook = await harness.makeHook()
  receiver.answers.set(hook.path, () => {})
  await harness.raise(hook)
  await harness.deliver()
  const { rows } = await front.tables.query<{ ms: number }>('select ms from alert_attempts')
  t.equal(rows.length, 1)
  const [{ ms }] = rows as [{ ms: number }]
  t.ok(FIRST_TIMEOUT_MS - 50 <= ms && ms < TIMEOUT_MS, `${ms} ms`)
  t.match(await harness.alerts(hook), [{ state: 'pending', attempts: 1, log: [/within 5 seconds/] }])
  const [row] = await harness.alerts(hook)
  t.ok(row!.wait_s! <= 6, `${row?.wait_s} s: the retry comes within 10 seconds`)
})

t.test('the latest 50 attempts of an alert are kept', async (t) => {
  await using harness = await openAlertHarness()
  const { front } = harness
  const hook = await harness.makeHook()
  await harness.raise(hook)
  await harness.deliver()
  for (let n = 0; n < 51; n++) {
    await front.tables.query('update alerts set next_attempt_at = now()')
    await harness.deliver()
  }
  t.match(await harness.alerts(hook), [{ state: 'delivered', attempts: 52 }])
  const { rows } = await front.tables.query('select min(attempt), count(*)::int from alert_attempts')
  t.same(rows, [{ min: 3, count: 50 }])
})
