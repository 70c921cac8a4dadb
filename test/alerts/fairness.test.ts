// Receivers that hang, and accounts with much to send, beside those that answer and those that are new.
import t from 'tap'
import { BOUNDS, openCourier } from '../../server/alerts/delivery-loop.ts'
import { FIRST_TIMEOUT_MS, TIMEOUT_MS } from '../../server/alerts/post.ts'
import { updateWebhookUrl } from '../../server/alerts/webhooks.ts'
import { transact } from '../../server/db/pool.ts'
import { PATIENT } from '../queue.ts'
import { type AccountHarness, type Hook, openAccountHarness } from './harness.ts'
import { held, status } from './receiver.ts'

const names = (count: number, suffix = 'test') =>
  Array.from({ length: count }, (_, n) => `r${n}.${suffix}`) as [string, ...string[]]

/** Webhooks of accounts of their own, one at each host, that hang until they are released. */
async function makeCrowd(office: AccountHarness, hosts: readonly string[], code = 500) {
  const crowd = []
  for (const host of hosts) {
    const hook = await office.makeHook({ host })
    const { answer, release } = held(code)
    office.receiver.answers.set(hook.path, answer)
    crowd.push({ ...hook, release })
  }
  return crowd
}

/** Delivers one alert, after which the receiver is proved. */
async function prove(office: AccountHarness, ...hooks: Hook[]) {
  for (const hook of hooks) await office.tell(hook)
  await office.deliver()
  for (const hook of hooks) t.match(await office.webhook(hook), { tried: true, slow: false })
}

const pathsOf = ({ receiver }: AccountHarness) => receiver.received.map(({ path }) => path)

t.test(
  '70 accounts whose receivers hang take half of the sends; one that answered before waits for none',
  async (t) => {
    const hosts = names(70)
    await using office = await openAccountHarness(['victim.test', ...hosts])
    const { receiver } = office
    const victim = await office.makeHook({ host: 'victim.test' })
    await prove(office, victim)
    const crowd = await makeCrowd(office, hosts)
    for (const hook of crowd) await office.tell(hook)
    await using courier = openCourier(office.work, PATIENT)
    courier.wake()
    await Promise.all(crowd.slice(0, BOUNDS.unproved).map(({ path }) => receiver.arrivals(path, 1)))
    for (let n = 2; n <= 4; n++) {
      await office.tell(victim)
      courier.wake()
      await receiver.arrivals(victim.path, n)
      const hung = receiver.received.filter(({ path }) => path !== victim.path).length
      t.equal(hung, BOUNDS.unproved, `alert ${n} arrived while ${hung} hang and ${crowd.length - hung} wait`)
    }
    for (const { release } of crowd) release()
  },
)

t.test('slow receivers leave places to those that were never tried', async (t) => {
  const hosts = names(6)
  await using office = await openAccountHarness(['new.test', ...hosts])
  const { receiver, front } = office
  const crowd = await makeCrowd(office, hosts)
  await front.tables.query('update webhooks set tried = true, slow = true')
  for (const hook of crowd) await office.tell(hook)
  await using courier = openCourier(office.work, { ...PATIENT, unproved: 4, slow: 2 })
  courier.wake()
  await Promise.all(crowd.slice(0, 2).map(({ path }) => receiver.arrivals(path, 1)))
  const newcomer = await office.makeHook({ host: 'new.test' })
  await office.tell(newcomer)
  courier.wake()
  await receiver.arrivals(newcomer.path, 1)
  t.equal(receiver.received.length, 3)
  for (const { release } of crowd) release()
})

t.test('an account whose receiver was never tried goes before all that were tried lately', async (t) => {
  const hosts = names(12)
  await using office = await openAccountHarness(['new.test', ...hosts])
  const { receiver, front } = office
  const crowd = await makeCrowd(office, hosts)
  const places = 4
  await using courier = openCourier(office.work, { ...PATIENT, unproved: places, slow: places })
  for (const hook of crowd) await office.tell(hook)
  courier.wake()
  for (const [n, { path, release }] of crowd.entries()) {
    await receiver.arrivals(path, 1)
    t.equal(receiver.received.length - n <= places, true)
    release()
  }
  await courier.idle()
  // Every receiver hangs again; every alert is due again, as a PUT or a redelivery makes it.
  const again = crowd.map(({ path }) => {
    const { answer, release } = held(500)
    receiver.answers.set(path, answer)
    return { path, release }
  })
  await front.tables.query(`update alerts set next_attempt_at = now() - interval '1 minute'`)
  receiver.received.length = 0
  courier.wake()
  const newcomer = await office.makeHook({ host: 'new.test' })
  const arrivedAgain = () => again.filter(({ path }) => pathsOf(office).includes(path))
  while (receiver.received.length < places) await receiver.anyArrival()
  await office.tell(newcomer)
  arrivedAgain()[0]?.release()
  await receiver.arrivals(newcomer.path, 1)
  t.equal(pathsOf(office).indexOf(newcomer.path), places, 'the first place that came free')
  for (const { release } of again) release()
})

t.test('an account with many alerts due does not go before the first of another', async (t) => {
  const hosts = names(6)
  await using office = await openAccountHarness(['other.test', ...hosts])
  const { receiver } = office
  const first = await office.makeHook({ host: hosts[0] })
  const busy = [first]
  for (const host of hosts.slice(1)) busy.push(await office.makeHook({ host, owner: first }))
  const other = await office.makeHook({ host: 'other.test' })
  await prove(office, ...busy, other)
  const gates = busy.map(({ path }) => {
    const { answer, release } = held()
    receiver.answers.set(path, answer)
    return release
  })
  receiver.received.length = 0
  for (const hook of busy) await office.tell(hook)
  await office.tell(other)
  await using courier = openCourier(office.work, { ...PATIENT, proved: 2 })
  courier.wake()
  await receiver.arrivals(other.path, 1)
  t.ok(pathsOf(office).indexOf(other.path) <= 1, 'it was the second')
  for (const release of gates) release()
})

t.test('of one account two sends to receivers that are not proved, and eight in all', async (t) => {
  const hosts = names(12)
  await using office = await openAccountHarness(['other.test', ...hosts])
  const { receiver } = office
  const first = await office.makeHook({ host: hosts[0] })
  const many = [first]
  for (const host of hosts.slice(1)) many.push(await office.makeHook({ host, owner: first }))
  const other = await office.makeHook({ host: 'other.test' })
  for (const most of [BOUNDS.account.unproved, BOUNDS.account.all]) {
    const { answer, release } = held()
    for (const { path } of many) receiver.answers.set(path, answer)
    for (const hook of [...many, other]) await office.tell(hook)
    receiver.received.length = 0
    await using courier = openCourier(office.work, PATIENT)
    courier.wake()
    // What waits is due for longer; that the courier takes another's shows that it takes no more of these.
    while (receiver.received.length < most + 1) await receiver.anyArrival()
    await office.tell(other)
    courier.wake()
    while (pathsOf(office).filter((path) => path === other.path).length < 2) await receiver.anyArrival()
    t.equal(receiver.received.length, most + 2)
    release()
    await courier.idle()
  }
})

t.test('hosts of one registrable domain count together', async (t) => {
  const hosts = names(7, 'crowded.test')
  await using office = await openAccountHarness(['other.test', ...hosts])
  const { receiver } = office
  const crowd = await makeCrowd(office, hosts)
  for (const hook of crowd) await office.tell(hook)
  const other = await office.makeHook({ host: 'other.test' })
  await office.tell(other)
  await using courier = openCourier(office.work)
  courier.wake()
  await receiver.arrivals(other.path, 1)
  t.equal(receiver.received.length, BOUNDS.domain.unproved + 1)
  for (const { release } of crowd) release()
})

t.test('receivers that answer once and then hang lose their places among the proved', async (t) => {
  const hosts = names(70)
  await using office = await openAccountHarness(['victim.test', ...hosts])
  const { receiver } = office
  const victim = await office.makeHook({ host: 'victim.test' })
  const turncoats = await Promise.all(hosts.map((host) => office.makeHook({ host })))
  await prove(office, victim, ...turncoats)
  const { answer, release } = held()
  let ended = 0
  for (const { path } of turncoats)
    receiver.answers.set(path, (response, item) => {
      response.once('close', () => ended++)
      return answer(response, item)
    })
  for (const hook of turncoats) await office.tell(hook)
  await office.tell(victim)
  await using courier = openCourier(office.work, { ...BOUNDS, slowMs: 50 })
  courier.wake()
  await receiver.arrivals(victim.path, 2)
  t.equal(ended, 0, 'its alert arrived while all of them hang')
  release()
})

t.test('a PUT at the same host keeps what is known of the receiver; another host forgets it', async (t) => {
  await using office = await openAccountHarness(['hook.test', 'other.test'])
  const { receiver, front } = office
  const hook = await office.makeHook()
  const put = (url: string) => transact(front.core.db, (tx) => updateWebhookUrl(tx, hook.id, url))
  const known = async () => {
    const { tried, slow } = await office.webhook(hook)
    return { tried, slow }
  }
  t.same(await known(), { tried: false, slow: false })
  receiver.answers.set(hook.path, status(500))
  await office.tell(hook)
  await office.deliver()
  const slow = { tried: true, slow: true }
  t.same(await known(), slow)
  await put(hook.url)
  t.same(await known(), slow, 'the same URL')
  await put(receiver.url('/elsewhere'))
  t.same(await known(), slow, 'another path')
  await put(receiver.url('/elsewhere', 'other.test'))
  t.same(await known(), { tried: false, slow: false })
  await office.deliver()
  t.same(await known(), { tried: true, slow: false })
  await put(receiver.url('/elsewhere', 'hook.test'))
  t.same(await known(), { tried: false, slow: false }, 'it is known by its present host only')

  const { answer, release } = held()
  receiver.answers.set('/elsewhere', answer)
  await office.tell(hook)
  await using courier = openCourier(office.work)
  courier.wake()
  await receiver.arrivals('/elsewhere', 2)
  await put(receiver.url('/evaded'))
  t.same(await known(), slow, 'a PUT does not save a receiver that hangs from the mark')
  release()
})

t.test('the first attempt at a host gets five seconds, later ones fifteen', async (t) => {
  await using office = await openAccountHarness()
  const { receiver, front } = office
  const hook = await office.makeHook()
  receiver.answers.set(hook.path, () => {})
  await office.tell(hook)
  await office.deliver()
  const { rows } = await front.tables.query<{ ms: number }>('select ms from alert_attempts')
  t.equal(rows.length, 1)
  const [{ ms }] = rows as [{ ms: number }]
  t.ok(FIRST_TIMEOUT_MS - 50 <= ms && ms < TIMEOUT_MS, `${ms} ms`)
  t.match(await office.alerts(hook), [{ state: 'pending', attempts: 1, log: [/within 5 seconds/] }])
  const [row] = await office.alerts(hook)
  t.ok(row!.wait_s! <= 6, `${row?.wait_s} s: the retry comes within 10 seconds`)
})

t.test('an alert that is sent again and again keeps its latest 50 attempts', async (t) => {
  await using office = await openAccountHarness()
  const { front } = office
  const hook = await office.makeHook()
  await office.tell(hook)
  await office.deliver()
  for (let n = 0; n < 51; n++) {
    await front.tables.query('update alerts set next_attempt_at = now()')
    await office.deliver()
  }
  t.match(await office.alerts(hook), [{ state: 'delivered', attempts: 52 }])
  const { rows } = await front.tables.query('select min(attempt), count(*)::int from alert_attempts')
  t.same(rows, [{ min: 3, count: 50 }])
})
