// POST /v1/checkout and the billing portal, with Stripe: one open page and one subscription at a time, under failures and
// concurrent calls.
import t from 'tap'
import { openServer } from '../../server/app.ts'
import { openBillingProvider } from '../../server/billing/configured-provider.ts'
import { readConfig } from '../../server/config.ts'
import type { Account, Answer } from '../accounts/harness.ts'
import { openStripeHarness } from './harness.ts'
import { PRICES } from './stripe-server.ts'

const harness = await openStripeHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const { accountHarness, stripe } = harness
const { world } = stripe
const { acts } = world

const ask = (account: Account, tier: string): Promise<Answer> =>
  account.call('POST', '/v1/checkout', { body: { tier } })
const sessionsOf = (account: Account) =>
  [...world.sessions.values()].filter(({ metadata }) => metadata.handle === account.handle)
const openSessionsOf = (account: Account) => sessionsOf(account).filter(({ status }) => status === 'open')
const customersOf = (account: Account) =>
  [...world.customers.values()].filter(({ metadata }) => metadata.handle === account.handle)
const liveOf = (account: Account) =>
  [...world.subscriptions.values()].filter(
    ({ customer, status }) => customersOf(account).some(({ id }) => id === customer) && status !== 'canceled',
  )

t.test('the page is bound to account and tier', async (t) => {
  const account = await accountHarness.register()
  for (const [tier, price, usd] of [
    ['dev', PRICES.dev, '29'],
    ['pro', PRICES.pro, '99'],
  ] as const) {
    const answer = await ask(account, tier)
    const session = sessionsOf(account).at(-1)!
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('cache-control'), 'no-store')
    t.same(answer.body, {
      checkout_url: session.url,
      tier,
      price_usd: usd,
      mode: 'stripe',
      kind: 'subscribe',
      expires_at: new Date(session.expires_at * 1000).toISOString(),
    })
    const { rows } = await accountHarness.tables.query('select id from accounts where handle = $1', [account.handle])
    const metadata = { service: 'countersign', account_id: rows[0].id, handle: account.handle, tier }
    t.match(session, {
      mode: 'subscription',
      customer: customersOf(account)[0]?.id,
      client_reference_id: rows[0].id,
      line_items: [{ price, quantity: '1' }],
      success_url: 'https://countersign.test/checkout/success',
      cancel_url: 'https://countersign.test/checkout/cancel',
      metadata,
      subscription_data: { metadata },
    })
  }
  t.equal(customersOf(account).length, 1, 'one customer per account')
  t.same(
    sessionsOf(account).map(({ status }) => status),
    ['expired', 'open'],
    'a wish for the other tier closes the page before it opens another',
  )
})

t.test('repeated calls get the same page, until it is closed or about to expire', async (t) => {
  const account = await accountHarness.register()
  const first = await ask(account, 'dev')
  for (let n = 0; n < 3; n++) t.same((await ask(account, 'dev')).body, first.body)
  t.equal(sessionsOf(account).length, 1)
  accountHarness.clock.now += 22.5 * 3_600_000
  const second = await ask(account, 'dev')
  t.not(second.body.checkout_url, first.body.checkout_url)
  t.equal(openSessionsOf(account).length, 1)
  openSessionsOf(account)[0]!.status = 'expired'
  t.not((await ask(account, 'dev')).body.checkout_url, second.body.checkout_url, 'closed at Stripe')
})

t.test('twenty concurrent calls: one customer, one open page', async (t) => {
  const desk = await accountHarness.openApiProcess()
  t.teardown(() => desk[Symbol.asyncDispose]())
  const account = await accountHarness.register()
  const call = (n: number, tier: string) =>
    (n % 2 ? desk : accountHarness).call('POST', '/v1/checkout', { key: account.key, body: { tier } })
  const same = await Promise.all(Array.from({ length: 20 }, (_, n) => call(n, 'dev')))
  t.same([...new Set(same.map(({ body }) => body.checkout_url))], [openSessionsOf(account)[0]?.url])
  t.equal(customersOf(account).length, 1)

  const other = await accountHarness.register()
  const mixed = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      (n % 2 ? desk : accountHarness).call('POST', '/v1/checkout', {
        key: other.key,
        body: { tier: n % 3 ? 'dev' : 'pro' },
      }),
    ),
  )
  for (const { status, body } of mixed)
    t.ok(status === 200 || (status === 409 && body.error.code === 'checkout_superseded'), `${status}`)
  t.ok(openSessionsOf(other).length <= 1, `${openSessionsOf(other).length} can be paid`)
  t.equal((await ask(other, 'dev')).status, 200)
  t.equal(openSessionsOf(other).length, 1)
  t.equal(customersOf(other).length, 1)
})

t.test('twenty pages an hour, of checkout and portal together; one more call does not reach Stripe', async (t) => {
  const account = await accountHarness.register()
  const other = await accountHarness.register()
  const portal = () => account.call('POST', '/v1/billing-portal')
  for (let n = 0; n < 10; n++) {
    t.equal((await ask(account, 'dev')).status, 200)
    t.equal((await portal()).status, 200)
  }
  const asked = stripe.calls.length
  for (const refused of [await ask(account, 'dev'), await ask(account, 'pro'), await portal()]) {
    t.equal(refused.status, 429)
    t.match(refused.body.error, { code: 'rate_limited', message: /^checkouts_per_hour: the free tier has 20\./ })
    const seconds = Number(refused.headers.get('retry-after'))
    t.ok(seconds > 3500 && seconds <= 3600, `${seconds} s`)
  }
  t.equal(stripe.calls.length, asked)
  t.equal((await ask(other, 'dev')).status, 200, 'another account has a count of its own')
  t.ok(stripe.calls.length > asked)
})

t.test('a page that a concurrent call was making is closed', async (t) => {
  const account = await accountHarness.register()
  const held = stripe.hold(/POST \/v1\/checkout\/sessions$/)
  const slow = ask(account, 'dev')
  await held.reached
  const quick = await ask(account, 'pro')
  t.equal(quick.status, 200)
  held.release()
  t.match(await slow, { status: 409, body: { error: { code: 'checkout_superseded', retryable: true } } })
  t.same(
    openSessionsOf(account).map(({ url }) => url),
    [quick.body.checkout_url],
  )
})

t.test('a tier that the account has already is refused', async (t) => {
  const account = await harness.subscriber('dev')
  const again = await ask(account, 'dev')
  t.match(again, { status: 409, body: { error: { code: 'already_subscribed', retryable: false } } })
  t.match(again.body.error.message, /dev.*active.*billing-portal/)
  acts.endWithPeriod(account.subscription)
  t.match((await ask(account, 'dev')).body.error.message, /ends with the paid period/)
  for (const status of ['unpaid', 'incomplete', 'paused'] as const) {
    acts.setStatus(account.subscription, status)
    const other = await ask(account, 'pro')
    t.match(other, { status: 409, body: { error: { code: 'already_subscribed', message: new RegExp(status) } } })
  }
  t.equal(sessionsOf(account).length, 1)
})

t.test('a payment whose event is missing is found by the next call, not sold twice', async (t) => {
  const account = await accountHarness.register()
  acts.payCheckout(await harness.checkout(account, 'dev'))
  world.events.splice(0)
  t.equal((await ask(account, 'dev')).status, 409)
  t.equal(await harness.tierOf(account), 'dev', 'the account has the tier')
})

t.test('a payment at the moment of a call for the other tier', async (t) => {
  const account = await accountHarness.register()
  const session = await harness.checkout(account, 'dev')
  const held = stripe.hold(/GET \/v1\/subscriptions\?/)
  const asked = ask(account, 'pro')
  await held.reached
  acts.payCheckout(session)
  held.release()
  t.match(await asked, { status: 409, body: { error: { code: 'checkout_superseded' } } })
  t.equal(openSessionsOf(account).length, 0)
  t.equal(liveOf(account).length, 1)
  t.equal((await ask(account, 'pro')).body.kind, 'change')
})

t.test('from dev to pro: a page confirms the change of the one subscription', async (t) => {
  const account = await harness.subscriber('dev')
  const { status, body } = await ask(account, 'pro')
  t.equal(status, 200)
  t.match(body, { tier: 'pro', price_usd: '99', mode: 'stripe', kind: 'change', expires_at: null })
  const portal = world.portals.get(body.checkout_url.split('/').at(-1))!
  const [item] = world.subscriptions.get(account.subscription)!.items.data
  t.match(portal, {
    customer: account.customer,
    flow_data: {
      type: 'subscription_update_confirm',
      after_completion: { redirect: { return_url: 'https://countersign.test/checkout/success' } },
      subscription_update_confirm: {
        subscription: account.subscription,
        items: { 0: { id: item?.id, price: PRICES.pro, quantity: '1' } },
      },
    },
  })
  t.equal(openSessionsOf(account).length, 0)
  acts.setPrice(account.subscription, PRICES.pro)
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'pro')
  t.equal(liveOf(account).length, 1)
  await ask(account, 'dev')
  t.equal(world.configurations.length, 1, 'the portal is configured once')
  t.match(world.configurations[0]?.features, {
    subscription_update: { enabled: 'true', proration_behavior: 'always_invoice' },
    subscription_cancel: { enabled: 'true', mode: 'at_period_end' },
  })
})

t.test('the billing portal', async (t) => {
  const account = await harness.subscriber('dev')
  const { status, body } = await account.call('POST', '/v1/billing-portal')
  t.equal(status, 200)
  t.same(Object.keys(body), ['portal_url', 'mode', 'expires_at'])
  t.equal(world.portals.get(body.portal_url.split('/').at(-1))?.customer, account.customer)
  const nobody = await accountHarness.register()
  t.match(await nobody.call('POST', '/v1/billing-portal'), { status: 404, body: { error: { code: 'not_found' } } })
})

t.test('after the end of a subscription a new one can be bought', async (t) => {
  const account = await harness.subscriber('dev')
  acts.setStatus(account.subscription, 'canceled')
  await harness.deliverAll()
  acts.payCheckout(await harness.checkout(account, 'dev'))
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'dev')
  t.equal(liveOf(account).length, 1)
  t.equal(customersOf(account).length, 1)
})

t.test('after a failure of Stripe (503), the repeated call makes nothing twice', async (t) => {
  for (const path of ['customers', 'subscriptions', 'checkout/sessions'])
    for (const how of ['drop before', 'drop after', '500 before', '500 after'] as const) {
      const account = await accountHarness.register()
      stripe.faults.push({ match: new RegExp(`(POST|GET) /v1/${path}(\\?.*)?$`), how, times: 3 })
      const failed = await ask(account, 'dev')
      const name = `${path}: ${how}`
      t.match(failed, { status: 503, body: { error: { code: 'provider_unavailable', retryable: true } } }, name)
      t.match(failed.headers.get('retry-after'), /^\d+$/)
      t.notMatch(failed.bytes.toString(), /sk_test|cus_/)
      stripe.faults.length = 0
      const answer = await ask(account, 'dev')
      t.equal(answer.status, 200, name)
      t.ok(
        openSessionsOf(account).some(({ url }) => url === answer.body.checkout_url),
        name,
      )
      // A lost answer is repeated under its key. After a refusal there may be a second object that was never given out.
      if (how.startsWith('drop')) {
        t.equal(customersOf(account).length, 1, name)
        t.equal(sessionsOf(account).length, 1, name)
      }
    }
})

t.test('the SDK repeats a call whose answer was lost', async (t) => {
  const account = await accountHarness.register()
  stripe.faults.push({ match: /POST \/v1\/checkout\/sessions$/, how: 'drop after', times: 1 })
  t.equal((await ask(account, 'dev')).status, 200)
  t.equal(sessionsOf(account).length, 1)
})

t.test('a customer that was deleted at Stripe is replaced', async (t) => {
  const account = await accountHarness.register()
  await ask(account, 'dev')
  const [first] = customersOf(account)
  acts.deleteCustomer(first!.id)
  world.events.splice(0)
  const answer = await ask(account, 'dev')
  t.equal(answer.status, 200)
  t.equal(customersOf(account).length, 2)
  t.equal(openSessionsOf(account).at(-1)?.customer, customersOf(account)[1]?.id)
})

t.test('a Stripe account that knows neither the customer nor the prices takes no tier away', async (t) => {
  const account = await harness.subscriber('pro')
  const known = world.customers.get(account.customer)!
  world.customers.delete(account.customer)
  const prices = (world.prices as string[]).splice(0)
  t.equal((await ask(account, 'dev')).status, 503)
  t.equal(await harness.tierOf(account), 'pro')
  ;(world.prices as string[]).push(...prices)
  world.customers.set(account.customer, known)
  t.equal((await ask(account, 'pro')).status, 409)
})

t.test('a tier that the operator granted is not sold', async (t) => {
  const account = await accountHarness.register()
  await accountHarness.tables.query(`update accounts set granted_tier = 'dev', tier = 'dev' where handle = $1`, [
    account.handle,
  ])
  t.match(await ask(account, 'dev'), { status: 409, body: { error: { code: 'already_subscribed', message: /dev/ } } })
  const subscription = acts.payCheckout(await harness.checkout(account, 'pro'))
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'pro')
  acts.setStatus(subscription, 'canceled')
  await harness.deliverAll()
  t.equal(await harness.tierOf(account), 'dev', 'the grant stays in force')
})

t.test('input', async (t) => {
  const account = await accountHarness.register()
  for (const body of [{}, { tier: 'free' }, { tier: 'gold' }, { tier: ['dev'] }, { tier: 'dev', account: 'x' }])
    t.equal((await account.call('POST', '/v1/checkout', { body })).status, 400, JSON.stringify(body))
})

t.test('without a provider: 503 that names the reason', async (t) => {
  const account = await accountHarness.register()
  const live = {
    PORT: '0',
    PAYMENT_MODE: 'testnet',
    SIGNING_SEED: '00'.repeat(32),
    PAY_TO_EVM: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    BASE_URL: 'https://countersign.test',
  }
  const half = { PORT: '0', STRIPE_SECRET_KEY: 'sk_test_x' }
  for (const [env, message] of [
    [live, /not set up here\.$/],
    [half, /STRIPE_WEBHOOK_SECRET, STRIPE_PRICE_DEV, STRIPE_PRICE_PRO is not set/],
  ] as const) {
    const config = readConfig(env)
    const billing = await openBillingProvider({ ...accountHarness.api, config, secret: Buffer.alloc(32) })
    await using server = await openServer({ ...accountHarness.api, config, billing })
    const send = (path: string, init: RequestInit) =>
      fetch(new URL(path, server.address), { ...init, headers: { ...typed, ...init.headers } })
    const typed = { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' }
    for (const [path, body] of [
      ['/v1/checkout', '{"tier":"dev"}'],
      ['/v1/billing-portal', '{}'],
    ] as const) {
      const refused = await send(path, { method: 'POST', body })
      t.equal(refused.status, 503)
      t.match(await refused.json(), { error: { code: 'provider_unavailable', message, retryable: true } })
    }
    const signature = { 'stripe-signature': `t=1,v1=${'00'.repeat(32)}` }
    const event = await send('/v1/stripe/webhook', { method: 'POST', body: '{}', headers: signature })
    t.equal(event.status, 503, '5xx makes Stripe repeat the event')
    const usage = await send('/v1/usage', {})
    t.match(await usage.json(), { tier: 'free', subscription: null })
    t.equal((await send('/checkout/x', {})).status, 404)
  }
})
