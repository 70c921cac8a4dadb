// Couriers beside each other, and receivers that keep them waiting.
import t from 'tap'
import { openCourier } from '../../server/alerts/delivery-loop.ts'
import { alertPruneLag, KEEP_DAYS, pruneAlerts, recallAlerts } from '../../server/alerts/outbox.ts'
import { updateWebhookUrl } from '../../server/alerts/webhooks.ts'
import { transact } from '../../server/db/pool.ts'
import { openRunner } from '../../workers/runner.ts'
import { buildTasks } from '../../workers/tasks.ts'
import { readResult } from '../api-harness.ts'
import { PATIENT } from '../queue.ts'
import { PAGE, payingFetch } from '../system.ts'
import { type Hook, openAccountHarness } from './harness.ts'
import { type Answering, failing, failingFirst, held, type Received, status } from './receiver.ts'

const idOf = ({ headers }: Received) => headers['webhook-id']

t.test('several workers: never two at one webhook, nothing twice, all in order', async (t) => {
  await using office = await openAccountHarness()
  const { receiver, work } = office
  const hooks: Hook[] = []
  const told = new Map<string, string[]>()
  for (let n = 0; n < 5; n++) {
    const hook = await office.makeHook()
    hooks.push(hook)
    told.set(hook.path, await office.tell(hook, 8))
  }
  const couriers = [openCourier(work), openCourier(work), openCourier(work)]
  for (const courier of couriers) courier.wake()
  // One that finds nothing to take has not seen what others still have to settle.
  while (
    (await Promise.all(hooks.map((hook) => office.alerts(hook)))).flat().some(({ state }) => state === 'pending')
  ) {
    for (const courier of couriers) courier.wake()
    await Promise.all(couriers.map((courier) => courier.idle()))
  }
  for (const { path } of hooks) {
    const items = receiver.received.filter((item) => item.path === path)
    t.same(items.map(idOf), told.get(path))
    t.ok(
      items.every(({ besides }) => besides === 0),
      'one at a time',
    )
  }
  for (const courier of couriers) await courier[Symbol.asyncDispose]()
})

t.test('a job only wakes; one that is doubled, late or for nothing does no harm', async (t) => {
  await using office = await openAccountHarness()
  let woken = 0
  const courier = { wake: () => void woken++, idle: async () => {}, async [Symbol.asyncDispose]() {} }
  const hook = await office.makeHook()
  const task = buildTasks(office.work, courier).deliver_alerts!
  for (let n = 0; n < 3; n++) await task({ webhook_id: hook.id }, {} as never)
  t.equal(woken, 3)
  const { answer, release } = held()
  office.receiver.answers.set(hook.path, answer)
  await office.tell(hook)
  const [first, second] = [openCourier(office.work), openCourier(office.work)]
  first.wake()
  await office.receiver.arrivals(hook.path, 1)
  first.wake()
  second.wake()
  await second.idle()
  release()
  await first.idle()
  t.equal(office.receiver.received.length, 1)
  t.match(await office.alerts(hook), [{ state: 'delivered', attempts: 1 }])
})

t.test('one that is too slow loses its right: another sends the same, and the first settles nothing', async (t) => {
  await using office = await openAccountHarness()
  const { receiver, front, work } = office
  const hook = await office.makeHook()
  const { answer, release } = held(500)
  const answers = [answer, status(200)]
  receiver.answers.set(hook.path, (...given) => answers.shift()?.(...given))
  const [id] = await office.tell(hook)
  const [slow, other] = [openCourier(work), openCourier(work)]
  slow.wake()
  await receiver.arrivals(hook.path, 1)
  await front.tables.query(`update webhooks set sending_until = now() - interval '1 second'`)
  other.wake()
  await other.idle()
  release()
  await slow.idle()
  t.same(receiver.received.map(idOf), [id, id])
  t.match(await office.alerts(hook), [{ state: 'delivered', attempts: 1, log: [200] }])
  t.ok(front.logged.some((line) => line.event === 'alert_overtaken' && line.alert_id === id))
})

t.test('another URL: what hangs at the old one holds nothing up', async (t) => {
  await using office = await openAccountHarness()
  const { receiver, front } = office
  const hook = await office.makeHook()
  const { answer, release } = held(410)
  receiver.answers.set(hook.path, answer)
  const [id] = await office.tell(hook)
  const courier = openCourier(office.work)
  courier.wake()
  await receiver.arrivals(hook.path, 1)
  await transact(front.core.db, (tx) => updateWebhookUrl(tx, hook.id, receiver.url('/new')))
  const other = openCourier(office.work)
  other.wake()
  // Either of the two may take it: the one that hangs at the old address goes on looking.
  await receiver.arrivals('/new', 1)
  t.same(
    receiver.received.map(({ path, headers }) => [path, headers['webhook-id']]),
    [
      [hook.path, id],
      ['/new', id],
    ],
  )
  await other.idle()
  release()
  await courier.idle()
  t.match(await office.webhook(hook), { state: 'active' }, 'what the old address said does not count')
  t.match(await office.alerts(hook), [{ state: 'delivered', attempts: 1 }])
})

t.test('at one host four at a time, two of them unproved, and others do not wait for them', async (t) => {
  await using office = await openAccountHarness(['crowded.test', 'other.test'])
  const { receiver } = office
  const { answer, release } = held()
  const crowd = await Promise.all(Array.from({ length: 7 }, () => office.makeHook({ host: 'crowded.test' })))
  const other = await office.makeHook({ host: 'other.test' })
  const fill = async () => {
    for (const hook of [...crowd, other]) await office.tell(hook)
    courier.wake()
    const [item] = (await receiver.arrivals(other.path, 1)).slice(-1)
    return receiver.received
      .slice(0, receiver.received.indexOf(item!) + 1)
      .filter(({ host }) => host === 'crowded.test')
  }
  for (const hook of crowd) receiver.answers.set(hook.path, answer)
  await using courier = openCourier(office.work, PATIENT)
  t.equal((await fill()).length, 2)
  release()
  await courier.idle()
  t.equal(receiver.received.filter(({ host }) => host === 'crowded.test').length, 7)

  const again = held()
  for (const hook of crowd) receiver.answers.set(hook.path, again.answer)
  receiver.received.length = 0
  t.equal((await fill()).length, 4)
  again.release()
})

t.test('receivers that hang take half of the places, and no slot of the queue', async (t) => {
  const hosts = Array.from({ length: 12 }, (_, n) => `slow-${n}.test`)
  await using office = await openAccountHarness(['good.test', ...hosts])
  const { receiver, front, work } = office
  const { answer, release } = held(500)
  let open = 0
  let most = 0
  const hang: Answering = (response, item) => {
    most = Math.max(most, ++open)
    response.once('close', () => open--)
    return answer(response, item)
  }
  const hanging = await Promise.all(
    Array.from({ length: 48 }, (_, n) => office.makeHook({ host: hosts[n % hosts.length]! })),
  )
  for (const hook of hanging) {
    receiver.answers.set(hook.path, hang)
    await office.tell(hook)
  }
  // They have hung before.
  await front.tables.query('update webhooks set slow = true')
  receiver.answers.set('/page', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE))
  {
    await using _runner = await openRunner(work, { concurrency: 1 })
    await Promise.all(hanging.map((hook) => receiver.arrivals(hook.path, 1)).slice(0, 1))
    const good = await office.makeHook({ host: 'good.test' })
    await office.tell(good)
    await receiver.arrivals(good.path, 1)
    t.ok(most <= 32, `${most} under way`)
    const body = { source_url: receiver.url('/page'), claim: 'The harbour was opened in 1874.' }
    const answer = await front.ask({
      key: 'a-key-of-16-chars',
      body,
      headers: { prefer: 'wait=25' },
      fetch: payingFetch(),
    })
    await readResult(answer)
    t.ok(most <= 32, `${most} under way`)
    release()
  }
})

t.test('one that fails or dawdles waits among the slow from then on, until it does well', async (t) => {
  await using office = await openAccountHarness()
  const hook = await office.makeHook()
  office.receiver.answers.set(hook.path, failingFirst(1))
  await office.tell(hook)
  await office.deliver()
  t.match(await office.webhook(hook), { slow: true })
  await office.hasten()
  await office.deliver()
  t.match(await office.webhook(hook), { slow: false })
})

t.test('a worker that is told to stop finishes what it sends, and takes nothing more', async (t) => {
  await using office = await openAccountHarness()
  const { receiver, work } = office
  const hook = await office.makeHook()
  const { answer, release } = held()
  receiver.answers.set(hook.path, answer)
  const runner = await openRunner(work)
  await office.tell(hook, 2)
  await receiver.arrivals(hook.path, 1)
  const stopped = runner[Symbol.asyncDispose]()
  release()
  await stopped
  t.equal(receiver.received.length, 1)
  t.match(await office.alerts(hook), [{ state: 'delivered' }, { state: 'pending', attempts: 0 }])
  t.match(await office.webhook(hook), { sender: null })
})

t.test('alerts whose job is gone are sent all the same', async (t) => {
  await using office = await openAccountHarness()
  const hook = await office.makeHook()
  await office.tell(hook)
  await office.front.tables.query('delete from graphile_worker._private_jobs')
  await using _runner = await openRunner(office.work)
  const [item] = await office.receiver.arrivals(hook.path, 1)
  t.ok(item)
})

t.test('one that nobody would look at is found by the sweep', async (t) => {
  await using office = await openAccountHarness()
  const hook = await office.makeHook()
  await office.tell(hook, 2)
  await office.front.tables.query('update alerts set next_attempt_at = null')
  await office.deliver()
  t.equal(office.receiver.received.length, 0)
  t.equal(await recallAlerts(office.work.db), 1, 'the first; the other waits for it')
  await office.deliver()
  t.equal(office.receiver.received.length, 2)
  t.equal(await recallAlerts(office.work.db), 0)
})

t.test('an alert in the lane of an earlier time is moved to its own and sent', async (t) => {
  await using office = await openAccountHarness()
  const hook = await office.makeHook()
  await using courier = openCourier(office.work, PATIENT)
  for (const [lane, n] of [
    ['proved', 1],
    ['slow', 2],
    ['untried', 3],
  ] as const) {
    await office.tell(hook)
    await office.front.tables.query(`update alerts set lane = $1 where state = 'pending'`, [lane])
    courier.wake()
    await courier.idle()
    t.equal(office.receiver.received.length, n, lane)
  }
})

t.test('settled alerts are kept for 90 days, their receipts for ever', async (t) => {
  await using office = await openAccountHarness()
  const { front, receiver } = office
  const hook = await office.makeHook()
  await office.tell(hook, 2)
  await office.deliver()
  receiver.answers.set(hook.path, failing)
  await office.tell(hook)
  await office.deliver()
  const age = (days: number) =>
    front.tables.query(
      `update alerts set created_at = now() - $1 * interval '1 day',
      settled_at = case when settled_at is null then null else now() - $1 * interval '1 day' end`,
      [days],
    )
  await age(KEEP_DAYS - 1)
  t.equal(await pruneAlerts(front.core.db), 0)
  await age(KEEP_DAYS + 1)
  t.equal(await pruneAlerts(front.core.db), 2)
  t.match(await office.alerts(hook), [{ state: 'pending', attempts: 1 }])
  const { rows } = await front.tables.query(
    'select (select count(*) from receipts)::int receipts, (select count(*) from alert_attempts)::int attempts',
  )
  t.same(rows, [{ receipts: 3, attempts: 1 }])
})

t.test(
  'pruning goes on until nothing is left, or its time is over; the lag says by how much it is behind',
  async (t) => {
    await using office = await openAccountHarness()
    const { front } = office
    const hook = await office.makeHook()
    await office.tell(hook)
    await office.deliver()
    t.equal(await alertPruneLag(front.core.db), 0)
    const fill = () =>
      front.tables.query(
        `insert into alerts (id, webhook_id, event_seq, type, body, serial, state, settled_at)
       select 'wh_' || md5(n::text), $1, n + 1, 'watchdog.test', '{}', 1, 'delivered',
              now() - ($2 + 1) * interval '1 day'
       from generate_series(1, 2500) n`,
        [hook.id, KEEP_DAYS],
      )
    await fill()
    t.ok(Math.abs((await alertPruneLag(front.core.db)) - 86_400) < 3600)
    await front.tables.query(`insert into alert_days (day, account_id) values (current_date - 2, $1)`, [hook.accountId])
    t.equal(await pruneAlerts(front.core.db), 2500)
    t.equal(await alertPruneLag(front.core.db), 0)
    t.equal((await front.tables.query('select from alert_days')).rowCount, 0)
    await fill()
    t.equal(await pruneAlerts(front.core.db, 0), 1000, 'one batch at least')
  },
)
