// Stripe's events over HTTP: in any order and any number of copies, the tier in the end is the one of Stripe's records.
// Events that Stripe did not sign change nothing.

import t from 'tap'
import { LONG } from '../long.ts'
import { openStripeHarness } from './harness.ts'
import { PRICES, WEBHOOK_SECRET } from './stripe-server.ts'

const harness = await openStripeHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const { accountHarness, stripe } = harness
const { acts, events } = stripe.world

const eventRows = async () => (await accountHarness.tables.query('select event_id from billing_events')).rows.length

t.test('a purchase: checkout, events, tier, limits', async (t) => {
  const account = await accountHarness.register()
  t.equal((await harness.usageOf(account)).subscription, null)
  const subscription = acts.payCheckout(await harness.checkout(account, 'dev'))
  t.equal(await harness.tierOf(account), 'free', 'paid, but no event has arrived')
  await harness.deliverAll()
  const { tier, limits, subscription: shown } = await harness.usageOf(account)
  t.equal(tier, 'dev')
  t.ok(limits.active_leases > 1)
  const period = stripe.world.subscriptions.get(subscription)?.items.data[0]?.current_period_end ?? 0
  t.same(shown, {
    status: 'active',
    tier: 'dev',
    payment: 'kept',
    current_period_end: new Date(period * 1000).toISOString(),
    cancel_at_period_end: false,
    provider: 'stripe',
  })
})

t.test('the tier that each status gives', async (t) => {
  const account = await harness.subscriber('pro')
  for (const [status, tier] of [
    ['trialing', 'pro'],
    ['past_due', 'pro'],
    ['unpaid', 'free'],
    ['active', 'pro'],
    ['paused', 'free'],
    ['active', 'pro'],
    ['incomplete', 'free'],
    ['incomplete_expired', 'free'],
  ] as const) {
    acts.setStatus(account.subscription, status)
    await harness.deliverAll()
    t.equal(await harness.tierOf(account), tier, status)
  }
  acts.setStatus(account.subscription, 'invented_in_2031' as 'active')
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'free', 'an unknown status')
  acts.setStatus(account.subscription, 'active')
  acts.endWithPeriod(account.subscription)
  await harness.deliverAll()
  t.match(await harness.usageOf(account), { tier: 'pro', subscription: { cancel_at_period_end: true } })
  acts.setStatus(account.subscription, 'canceled')
  await harness.deliverAll()
  t.match(await harness.usageOf(account), { tier: 'free', subscription: null })
})

t.test('the price decides the tier, metadata do not', async (t) => {
  const account = await harness.subscriber('dev')
  for (const [price, tier] of [
    [PRICES.pro, 'pro'],
    [PRICES.oldDev, 'dev'],
    [PRICES.other, 'free'],
    [PRICES.dev, 'dev'],
  ] as const) {
    acts.setPrice(account.subscription, price)
    stripe.world.subscriptions.get(account.subscription)!.metadata.tier = 'pro'
    await harness.deliverAll()
    t.equal(await harness.tierOf(account), tier, price)
  }
})

t.test('a refund or a dispute ends the tier until another payment', async (t) => {
  const account = await harness.subscriber('dev')
  const { subscription } = account
  acts.refund(subscription, 100)
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'dev', 'a partial refund')
  acts.refund(subscription)
  await harness.deliverAll()
  t.match(await harness.usageOf(account), { tier: 'free', subscription: { status: 'active', payment: 'refunded' } })
  acts.renew(subscription, true)
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'dev', 'the next invoice is paid')
  acts.dispute(subscription, 'warning_needs_response')
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'dev', 'an inquiry withdraws nothing')
  const dispute = acts.dispute(subscription)
  await harness.deliverAll()
  t.match(await harness.usageOf(account), { tier: 'free', subscription: { payment: 'disputed' } })
  acts.closeDispute(dispute, 'won')
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'dev', 'won')
  acts.closeDispute(dispute, 'lost')
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'free', 'lost')
})

t.test('a failed payment: the tier lasts for the grace period', async (t) => {
  const account = await harness.subscriber('pro')
  acts.renew(account.subscription, false)
  await harness.deliverAll()
  t.match(await harness.usageOf(account), { tier: 'pro', subscription: { status: 'past_due' } })
  const DAY = 86_400_000
  accountHarness.clock.now += 13 * DAY
  acts.setStatus(account.subscription, 'past_due')
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'pro', 'another failure does not restart the grace period')
  accountHarness.clock.now += DAY
  acts.setStatus(account.subscription, 'past_due')
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'free')
  acts.recover(account.subscription)
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'pro')
  acts.renew(account.subscription, false)
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'pro', 'a failure after a payment has a new grace period')
})

t.test(
  `all events of a short history, delivered at its end in ${LONG ? 'every order' : 'every fifth order'}`,
  async (t) => {
    const account = await accountHarness.register()
    const subscription = acts.payCheckout(await harness.checkout(account, 'dev'))
    acts.renew(subscription, false)
    acts.setStatus(subscription, 'canceled')
    const sent = events.splice(0).filter(({ type }) => type !== 'customer.subscription.updated')
    t.same(sent.map(({ type }) => type).sort(), [
      'checkout.session.completed',
      'customer.subscription.created',
      'customer.subscription.deleted',
      'invoice.paid',
      'invoice.payment_failed',
    ])
    const wrong: string[] = []
    for (const [index, order] of [...permutations(sent)].entries()) {
      if (!LONG && index % 5 > 0) continue
      await accountHarness.tables.query('delete from billing_events')
      await accountHarness.tables.query(`update accounts set tier = 'dev' where handle = $1`, [account.handle])
      for (const event of order) await harness.deliver(event)
      if ((await harness.tierOf(account)) !== 'free') wrong.push(order.map(({ type }) => type).join(' '))
    }
    t.same(wrong, [])
  },
)

function* permutations<T>(items: T[]): Generator<T[]> {
  if (items.length === 0) yield []
  for (const [index, item] of items.entries())
    for (const rest of permutations(items.toSpliced(index, 1))) yield [item, ...rest]
}

t.test('a replayed event changes nothing and calls nothing', async (t) => {
  const account = await harness.subscriber('dev')
  acts.setPrice(account.subscription, PRICES.pro)
  const [event] = events.splice(0)
  t.match(await harness.deliver(event!), { status: 200, body: { received: true, outcome: 'applied' } })
  const calls = stripe.calls.length
  for (let n = 0; n < 3; n++) t.match(await harness.deliver(event!), { status: 200, body: { outcome: 'repeated' } })
  t.equal(stripe.calls.length, calls)
  t.equal(await harness.tierOf(account), 'pro')
})

t.test('concurrent duplicates through two services', async (t) => {
  const desk = await accountHarness.openApiProcess()
  t.teardown(() => desk[Symbol.asyncDispose]())
  const account = await accountHarness.register()
  acts.payCheckout(await harness.checkout(account, 'pro'))
  const sent = events.splice(0)
  const before = await eventRows()
  const answers = await Promise.all(
    sent.flatMap((event) => [accountHarness, desk, accountHarness, desk].map((at) => harness.deliver(event, { at }))),
  )
  t.ok(answers.every(({ status }) => status === 200))
  t.equal((await eventRows()) - before, sent.length, 'one row each')
  t.equal(await harness.tierOf(account), 'pro')
  t.equal((await desk.call('GET', '/v1/usage', { key: account.key })).body.tier, 'pro')
})

t.test('a slow synchronization does not undo a later one', async (t) => {
  const account = await harness.subscriber('dev')
  acts.setPrice(account.subscription, PRICES.dev)
  const held = stripe.hold(/GET \/v1\/subscriptions\?/)
  const [first] = events.splice(0)
  const slow = harness.deliver(first!)
  await held.reached
  acts.setStatus(account.subscription, 'canceled')
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'free')
  held.release()
  t.equal((await slow).status, 200)
  t.match(await harness.usageOf(account), { tier: 'free', subscription: null })
})

t.test('forged events are refused without a query and without a call to Stripe', async (t) => {
  const account = await harness.subscriber('dev')
  acts.setStatus(account.subscription, 'canceled')
  const [event] = events.splice(0)
  const calls = stripe.calls.length
  const rows = await eventRows()
  const queries = async () =>
    (await accountHarness.tables.query('select sum(looks) n from billing_customers')).rows[0].n
  const looks = await queries()
  const forgeries = {
    'another secret': { secret: 'whsec_of_somebody_else000000000000' },
    'signed 301 s ago': { age: 301 },
    'signed 302 s ahead': { age: -302 },
    'signed 4,000 s ahead': { age: -4000 },
    'another body': { alter: (body: string) => body.replace('canceled', 'active') },
    'a space more': { alter: (body: string) => `${body} ` },
    'no body': { alter: () => '' },
    'no signature': { signature: null },
    'an empty signature': { signature: 't=,v1=' },
    'a scheme for tests': { signature: `t=${Math.floor(accountHarness.clock.now / 1000)},v0=${'00'.repeat(32)}` },
    'no timestamp': { signature: `v1=${'00'.repeat(32)}` },
    nonsense: { signature: 'x'.repeat(5000) },
  }
  for (const [name, forgery] of Object.entries(forgeries)) {
    const answer = await harness.deliver(event!, forgery)
    t.equal(answer.status, 400, name)
    t.same(answer.body, {
      error: { code: 'invalid_request', message: answer.body.error.message, retryable: false },
    })
    t.notMatch(answer.bytes.toString(), WEBHOOK_SECRET)
  }
  t.equal(stripe.calls.length, calls)
  t.equal(await eventRows(), rows)
  t.equal(await queries(), looks)
  t.equal(await harness.tierOf(account), 'dev')
  t.equal((await harness.deliver(event!, { age: 299 })).status, 200)
  t.equal(await harness.tierOf(account), 'free')
})

t.test('other event types, other business, other methods and bodies', async (t) => {
  const rows = await eventRows()
  const other = stripe.world.send('payout.paid', { id: 'po_1' })
  const foreign = stripe.world.send('invoice.paid', { id: 'in_1', customer: 'cus_of_another_business' })
  stripe.world.customers.set('cus_of_another_business', {
    id: 'cus_of_another_business',
    object: 'customer',
    metadata: {},
  })
  const nobody = stripe.world.send('charge.refunded', { id: 'ch_1', customer: null })
  events.splice(0)
  for (const event of [other, foreign, nobody])
    t.match(await harness.deliver(event), { status: 200, body: { received: true, outcome: 'ignored' } }, event.type)
  t.equal(await eventRows(), rows)
  t.equal((await accountHarness.call('GET', '/v1/stripe/webhook')).status, 404)
  const signature = `t=1,v1=${'00'.repeat(32)}`
  const typed = { 'content-type': 'text/plain', 'stripe-signature': signature }
  t.equal(
    (await accountHarness.call('POST', '/v1/stripe/webhook', { body: Buffer.from('x'), headers: typed })).status,
    415,
  )
  const large = { 'content-type': 'application/json', 'stripe-signature': signature }
  const body = Buffer.alloc(1_048_577, 0x20)
  t.equal((await accountHarness.call('POST', '/v1/stripe/webhook', { body, headers: large })).status, 413)
})

t.test('no limit per address refuses an event', async (t) => {
  const strict = await accountHarness.openApiProcess({ RATE_LIMIT_PER_MINUTE: '1' })
  t.teardown(() => strict[Symbol.asyncDispose]())
  const account = await harness.subscriber('dev')
  for (const price of [PRICES.pro, PRICES.dev, PRICES.pro]) acts.setPrice(account.subscription, price)
  for (const event of events.splice(0)) {
    t.equal((await harness.deliver(event, { at: strict, signature: `t=1,v1=${'00'.repeat(32)}` })).status, 400)
    t.equal((await harness.deliver(event, { at: strict })).status, 200)
  }
  t.equal(await harness.tierOf(account), 'pro')
})

t.test('an event that fails is answered 5xx, leaves no trace, and is applied when it is repeated', async (t) => {
  const account = await harness.subscriber('dev')
  acts.setPrice(account.subscription, PRICES.pro)
  const [event] = events.splice(0)
  const rows = await eventRows()
  for (const how of ['500 before', 'drop before', 'drop after'] as const) {
    stripe.faults.push({ match: /GET \/v1\/subscriptions/, how, times: 3 })
    const answer = await harness.deliver(event!)
    t.match(answer, { status: 503, body: { error: { code: 'provider_unavailable', retryable: true } } }, how)
    t.equal(await eventRows(), rows)
    t.equal(await harness.tierOf(account), 'dev')
    stripe.faults.length = 0
  }
  await accountHarness.tables.query(
    `alter table billing_subscriptions add constraint broken check (tier <> 'pro') not valid`,
  )
  t.equal((await harness.deliver(event!)).status, 500, 'a fault of the service')
  t.equal(await eventRows(), rows, 'event, subscription and tier are written together or not at all')
  t.equal(await harness.tierOf(account), 'dev')
  await accountHarness.tables.query('alter table billing_subscriptions drop constraint broken')
  t.match(await harness.deliver(event!), { status: 200, body: { outcome: 'applied' } })
  t.equal(await harness.tierOf(account), 'pro')
})

t.test('a customer that was deleted at Stripe', async (t) => {
  const account = await harness.subscriber('dev')
  acts.deleteCustomer(account.customer)
  await harness.deliverAll()
  t.match(await harness.usageOf(account), { tier: 'free', subscription: null })
  acts.payCheckout(await harness.checkout(account, 'pro'))
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'pro', 'the account subscribes as another customer')
})

t.test('the end of a tier applies at once and deletes nothing', async (t) => {
  const account = await harness.subscriber('dev')
  const lease = () => account.call('POST', '/v1/lease', { body: { agent: 'a', action: 'b', ttl_s: 60, lim: '' } })
  t.equal((await lease()).status, 201)
  t.equal((await lease()).status, 201)
  acts.setStatus(account.subscription, 'canceled')
  await harness.deliverAll()
  const refused = await lease()
  t.match(
    refused,
    { status: 403, body: { error: { code: 'tier_limit' } } },
    'nothing can be added above the free limits',
  )
  t.match(await harness.usageOf(account), { tier: 'free', used: { active_leases: 2 } }, 'existing leases stay')
})
