// Several delivery loops at once, receivers that answer slowly, and the pruning of the outbox.
import t from 'tap'
import { openDeliveryLoop } from '../../server/alerts/delivery-loop.ts'
import { alertPruneLag, KEEP_DAYS, pruneAlerts, recallAlerts } from '../../server/alerts/outbox.ts'
import { updateWebhookUrl } from '../../server/alerts/webhooks.ts'
import { transact } from '../../server/db/pool.ts'
import { openRunner } from '../../workers/runner.ts'
import { buildTasks } from '../../workers/tasks.ts'
import { readResult } from '../api-harness.ts'
import { PATIENT } from '../queue.ts'
import { PAGE, payingFetch } from '../system.ts'
import { type Hook, openAlertHarness } from './harness.ts'
import { type Answering, failing, failingFirst, held, type Received, status } from './receiver.ts'

const idOf = ({ headers }: Received) => headers['webhook-id']

t.test('several loops send to one webhook: one send at a time, each alert once, in order', async (t) => {
  await using harness = await openAlertHarness()
  const { receiver, work } = harness
  const hooks: Hook[] = []
  const raised = new Map<string, string[]>()
  for (let n = 0; n < 5; n++) {
    const hook = await harness.makeHook()
    hooks.push(hook)
    raised.set(hook.path, await harness.raise(hook, 8))
  }
  const loops = [openDeliveryLoop(work), openDeliveryLoop(work), openDeliveryLoop(work)]
  for (const loop of loops) loop.wake()
  // A loop that finds nothing to claim is idle although others still send.
  while (
    (await Promise.all(hooks.map((hook) => harness.alerts(hook)))).flat().some(({ state }) => state === 'pending')
  ) {
    for (const loop of loops) loop.wake()
    await Promise.all(loops.map((loop) => loop.idle()))
  }
  for (const { path } of hooks) {
    const items = receiver.received.filter((item) => item.path === path)
    t.same(items.map(idOf), raised.get(path))
    t.ok(
      items.every(({ besides }) => besides === 0),
      'one at a time',
    )
  }
  for (const loop of loops) await loop[Symbol.asyncDispose]()
})

t.test('a job only wakes the loop; a duplicate, late or needless job does no harm', async (t) => {
  await using harness = await openAlertHarness()
  let woken = 0
  const loop = { wake: () => void woken++, idle: async () => {}, async [Symbol.asyncDispose]() {} }
  const hook = await harness.makeHook()
  const task = buildTasks(harness.work, loop).deliver_alerts!
  for (let n = 0; n < 3; n++)
    await task({ webhook_id: hook.id }, { abortSignal: new AbortController().signal } as never)
  t.equal(woken, 3)
  const { answer, release } = held()
  harness.receiver.answers.set(hook.path, answer)
  await harness.raise(hook)
  const [first, second] = [openDeliveryLoop(harness.work), openDeliveryLoop(harness.work)]
  first.wake()
  await harness.receiver.arrivals(hook.path, 1)
  first.wake()
  second.wake()
  await second.idle()
  release()
  await first.idle()
  t.equal(harness.receiver.received.length, 1)
  t.match(await harness.alerts(hook), [{ state: 'delivered', attempts: 1 }])
})

t.test(
  'a loop that is too slow loses its lease: another sends the same alert, and the first settles nothing',
  async (t) => {
    await using harness = await openAlertHarness()
    const { receiver, front, work } = harness
    const hook = await harness.makeHook()
    const { answer, release } = held(500)
    const answers = [answer, status(200)]
    receiver.answers.set(hook.path, (...given) => answers.shift()?.(...given))
    const [id] = await harness.raise(hook)
    const [slow, other] = [openDeliveryLoop(work), openDeliveryLoop(work)]
    slow.wake()
    await receiver.arrivals(hook.path, 1)
    await front.tables.query(`update webhooks set sending_until = now() - interval '1 second'`)
    other.wake()
    await other.idle()
    release()
    await slow.idle()
    t.same(receiver.received.map(idOf), [id, id])
    t.match(await harness.alerts(hook), [{ state: 'delivered', attempts: 1, log: [200] }])
    t.ok(front.logged.some((line) => line.event === 'alert_overtaken' && line.alert_id === id))
  },
)

t.test('after a change of URL an attempt that hangs at the old URL delays no other alert', async (t) => {
  await using harness = await openAlertHarness()
  const { receiver, front } = harness
  const hook = await harness.makeHook()
  const { answer, release } = held(410)
  receiver.answers.set(hook.path, answer)
  const [id] = await harness.raise(hook)
  const loop = openDeliveryLoop(harness.work)
  loop.wake()
  await receiver.arrivals(hook.path, 1)
  await transact(front.core.db, (tx) => updateWebhookUrl(tx, hook.id, receiver.url('/new')))
  const other = openDeliveryLoop(harness.work)
  other.wake()
  // Either loop may claim it: the one with the hanging attempt goes on searching.
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
  await loop.idle()
  t.match(await harness.webhook(hook), { state: 'active' }, 'the answer of the old URL does not count')
  t.match(await harness.alerts(hook), [{ state: 'delivered', attempts: 1 }])
})

t.test('one host: at most four sends at a time, two to receivers that never answered', async (t) => {
  await using harness = await openAlertHarness(['crowded.test', 'other.test'])
  const { receiver } = harness
  const { answer, release } = held()
  const crowd = await Promise.all(Array.from({ length: 7 }, () => harness.makeHook({ host: 'crowded.test' })))
  const other = await harness.makeHook({ host: 'other.test' })
  const fill = async () => {
    for (const hook of [...crowd, other]) await harness.raise(hook)
    loop.wake()
    const [item] = (await receiver.arrivals(other.path, 1)).slice(-1)
    return receiver.received
      .slice(0, receiver.received.indexOf(item!) + 1)
      .filter(({ host }) => host === 'crowded.test')
  }
  for (const hook of crowd) receiver.answers.set(hook.path, answer)
  await using loop = openDeliveryLoop(harness.work, PATIENT)
  t.equal((await fill()).length, 2)
  release()
  await loop.idle()
  t.equal(receiver.received.filter(({ host }) => host === 'crowded.test').length, 7)

  const again = held()
  for (const hook of crowd) receiver.answers.set(hook.path, again.answer)
  receiver.received.length = 0
  t.equal((await fill()).length, 4)
  again.release()
})

t.test('receivers that hang take half of the sends, and no slot of the queue', async (t) => {
  const hosts = Array.from({ length: 12 }, (_, n) => `slow-${n}.test`)
  await using harness = await openAlertHarness(['good.test', ...hosts])
  const { receiver, front, work } = harness
  const { answer, release } = held(500)
  let open = 0
  let most = 0
  const hang: Answering = (response, item) => {
    most = Math.max(most, ++open)
    response.once('close', () => open--)
    return answer(response, item)
  }
  const hanging = await Promise.all(
    Array.from({ length: 48 }, (_, n) => harness.makeHook({ host: hosts[n % hosts.length]! })),
  )
  for (const hook of hanging) {
    receiver.answers.set(hook.path, hang)
    await harness.raise(hook)
  }
  // As if they had hung before.
  await front.tables.query('update webhooks set slow = true')
  receiver.answers.set('/page', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE))
  {
    await using _runner = await openRunner(work, { concurrency: 1 })
    await Promise.all(hanging.map((hook) => receiver.arrivals(hook.path, 1)).slice(0, 1))
    const good = await harness.makeHook({ host: 'good.test' })
    await harness.raise(good)
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

t.test('a receiver that fails is in the slow lane until it delivers', async (t) => {
  await using harness = await openAlertHarness()
  const hook = await harness.makeHook()
  harness.receiver.answers.set(hook.path, failingFirst(1))
  await harness.raise(hook)
  await harness.deliver()
  t.match(await harness.webhook(hook), { slow: true })
  await harness.hasten()
  await harness.deliver()
  t.match(await harness.webhook(hook), { slow: false })
})

t.test('a worker that stops finishes its sends and claims nothing more', async (t) => {
  await using harness = await openAlertHarness()
  const { receiver, work } = harness
  const hook = await harness.makeHook()
  const { answer, release } = held()
  receiver.answers.set(hook.path, answer)
  const runner = await openRunner(work)
  await harness.raise(hook, 2)
  await receiver.arrivals(hook.path, 1)
  const stopped = runner[Symbol.asyncDispose]()
  release()
  await stopped
  t.equal(receiver.received.length, 1)
  t.match(await harness.alerts(hook), [{ state: 'delivered' }, { state: 'pending', attempts: 0 }])
  t.match(await harness.webhook(hook), { sender: null })
})

t.test('alerts whose job was lost are sent', async (t) => {
  await using harness = await openAlertHarness()
  const hook = await harness.makeHook()
  await harness.raise(hook)
  await harness.front.tables.query('delete from graphile_worker._private_jobs')
  await using _runner = await openRunner(harness.work)
  const [item] = await harness.receiver.arrivals(hook.path, 1)
  t.ok(item)
})

t.test('an alert without a due time is found by the sweep', async (t) => {
  await using harness = await openAlertHarness()
  const hook = await harness.makeHook()
  await harness.raise(hook, 2)
  await harness.front.tables.query('update alerts set next_attempt_at = null')
  await harness.deliver()
  t.equal(harness.receiver.received.length, 0)
  t.equal(await recallAlerts(harness.work.db), 1, 'the first one; the second waits for it')
  await harness.deliver()
  t.equal(harness.receiver.received.length, 2)
  t.equal(await recallAlerts(harness.work.db), 0)
})

t.test('an alert in an outdated lane is moved to the right one and sent', async (t) => {
  await using harness = await openAlertHarness()
  const hook = await harness.makeHook()
  await using loop = openDeliveryLoop(harness.work, PATIENT)
  for (const [lane, n] of [
    ['proved', 1],
    ['slow', 2],
    ['untried', 3],
  ] as const) {
    await harness.raise(hook)
    await harness.front.tables.query(`update alerts set lane = $1 where state = 'pending'`, [lane])
    loop.wake()
    await loop.idle()
    t.equal(harness.receiver.received.length, n, lane)
  }
})

t.test('settled alerts are kept for 90 days, their receipts for ever', async (t) => {
  await using harness = await openAlertHarness()
  const { front, receiver } = harness
  const hook = await harness.makeHook()
  await harness.raise(hook, 2)
  await harness.deliver()
  receiver.answers.set(hook.path, failing)
  await harness.raise(hook)
  await harness.deliver()
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
  t.match(await harness.alerts(hook), [{ state: 'pending', attempts: 1 }])
  const { rows } = await front.tables.query(
    'select (select count(*) from receipts)::int receipts, (select count(*) from alert_attempts)::int attempts',
  )
  t.same(rows, [{ receipts: 3, attempts: 1 }])
})

t.test('pruning ends with its work or its time; the lag is the age of the oldest row that is due', async (t) => {
  await using harness = await openAlertHarness()
  const { front } = harness
  const hook = await harness.makeHook()
  await harness.raise(hook)
  await harness.deliver()
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
  t.equal(await pruneAlerts(front.core.db, 0), 1000, 'at least one batch')
})
