// The setup of Stripe, and what `doctor` reports about it.
import t from 'tap'
import { HANDLED_TYPES } from '../../server/billing/events.ts'
import { inspectBilling } from '../../server/billing/startup-checks.ts'
import { describeConfig, readConfig } from '../../server/config.ts'
import { runDoctor } from '../../server/doctor.ts'
import { problemsOf } from '../problems.ts'
import { openStripeServer, PRICES, SECRET_KEY, WEBHOOK_SECRET } from './stripe-server.ts'

const stripe = await openStripeServer()
t.teardown(() => stripe[Symbol.asyncDispose]())
const LIVE = {
  PAYMENT_MODE: 'testnet',
  SIGNING_SEED: '00'.repeat(32),
  PAY_TO_EVM: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  BASE_URL: 'https://countersign.test',
}

t.test('a partial setup', async (t) => {
  t.same(problemsOf({ ...LIVE, ...stripe.env }), [])
  t.same(problemsOf(LIVE), [], 'no setup is valid')
  for (const name of ['STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET', 'STRIPE_PRICE_DEV', 'STRIPE_PRICE_PRO']) {
    t.match(problemsOf({ ...LIVE, ...stripe.env, [name]: '' }), [new RegExp(`^${name} is required`)])
    const config = readConfig({ ...stripe.env, [name]: '' })
    t.equal(config.stripe, undefined)
    t.match(await inspectBilling(config), [{ verdict: 'wrong', detail: new RegExp(`half set up: ${name} is not set`) }])
  }
})

t.test('invalid values', async (t) => {
  t.same(readConfig(stripe.env).stripe, {
    secretKey: SECRET_KEY,
    webhookSecret: WEBHOOK_SECRET,
    prices: { dev: [PRICES.dev, PRICES.oldDev], pro: [PRICES.pro] },
    apiBase: stripe.url,
  })
  for (const [name, value] of [
    ['STRIPE_PRICE_DEV', 'a,'],
    ['STRIPE_PRICE_PRO', 'a b'],
    ['STRIPE_PRICE_PRO', PRICES.dev],
    ['STRIPE_API_BASE', 'https://api.stripe.test/v1'],
    ['STRIPE_API_BASE', 'api.stripe.test'],
    ['STRIPE_WEBHOOK_SECRET', 'whsec_a b'],
  ] as const)
    t.equal(problemsOf({ ...stripe.env, [name]: value }).length, 1, `${name}=${value}`)
  const shown = JSON.stringify(describeConfig(readConfig(stripe.env)))
  t.ok(!shown.includes(SECRET_KEY) && !shown.includes(WEBHOOK_SECRET))
})

t.test('doctor: no setup', async (t) => {
  const find = async (env: Record<string, string>) =>
    (await runDoctor(readConfig(env))).filter(({ subject }) => subject === 'subscriptions')
  t.match(await find({}), [{ ok: true, detail: /simulated/ }])
  t.match(await inspectBilling(readConfig(LIVE)), [{ verdict: 'right', detail: /not set up: .* answers 503/ }])
})

t.test('doctor: key, prices, webhook', async (t) => {
  const env = { ...stripe.env, BASE_URL: 'https://countersign.test' }
  const { endpoints } = stripe.world
  const look = async (more: Record<string, string> = {}) =>
    (await inspectBilling(readConfig({ ...env, ...more }))).map(({ verdict, detail }) => `${verdict} ${detail}`)
  const endpoint = { id: 'we_1', url: 'https://countersign.test/v1/stripe/webhook', status: 'enabled' }
  endpoints.push({ ...endpoint, id: 'we_0', url: 'https://elsewhere.test/', enabled_events: ['*'] })
  endpoints.push({ ...endpoint, id: 'we_2', status: 'disabled', enabled_events: ['*'] })
  t.match(
    (await look()).at(-1),
    /^wrong Stripe does not send checkout.session.completed, .* to https:\/\/countersign.test/,
  )
  endpoints.push({ ...endpoint, enabled_events: HANDLED_TYPES.filter((type) => type !== 'charge.refunded') })
  t.match((await look()).at(-1), /^wrong Stripe does not send charge.refunded to/)
  endpoints.push({ ...endpoint, id: 'we_3', enabled_events: ['charge.refunded'] })
  t.same(await look(), [
    'right Stripe with a test key',
    'right the price of the dev tier is 29 usd per month',
    'right the price of the pro tier is 99 usd per month',
    'right Stripe sends its events to https://countersign.test/v1/stripe/webhook',
  ])
  const swapped = await look({ STRIPE_PRICE_DEV: PRICES.pro, STRIPE_PRICE_PRO: PRICES.dev })
  t.match(swapped[1], /^wrong the price of the dev tier is 99 usd/)
  t.match((await look({ STRIPE_PRICE_PRO: 'price_none' }))[2], /^wrong Stripe refuses: No such price/)
  t.match((await look({ STRIPE_SECRET_KEY: 'sk_test_other' }))[1], /^wrong Stripe does not know STRIPE_SECRET_KEY/)
  t.match((await look({ STRIPE_SECRET_KEY: 'sk_live_x' }))[0], /^wrong .* in offline mode: cards are charged/)
  t.match((await look({ STRIPE_API_BASE: 'http://127.0.0.1:1' }))[1], /^away does not answer/)
})
