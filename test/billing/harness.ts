// Stripe harness: the service with a stand-in for Stripe, accounts that subscribe, and events that are delivered.
import Stripe from 'stripe'
import {
  type Account,
  type AccountHarness,
  type Answer,
  type ApiProcess,
  openAccountHarness,
} from '../accounts/harness.ts'
import { openStripeServer, type StripeServer, WEBHOOK_SECRET } from './stripe-server.ts'
import type { StripeEvent } from './stripe-world.ts'

export interface Delivery {
  /** Signs the event, in place of the right secret. */
  secret?: string
  /** Age of the signature in seconds. */
  age?: number
  /** Changes the body after it was signed. */
  alter?: (body: string) => string
  /** In place of the right signature; null sends none. */
  signature?: string | null
  at?: ApiProcess
}

export interface StripeHarness extends AsyncDisposable {
  accountHarness: AccountHarness
  stripe: StripeServer
  /** Sends an event as Stripe would. */
  deliver(event: StripeEvent, delivery?: Delivery): Promise<Answer>
  /** Sends all waiting events, in order. */
  deliverAll(): Promise<void>
  tierOf(account: Account): Promise<string>
  usageOf(account: Account): Promise<Answer['body']>
  /** Begins a checkout and returns the id of its session. */
  checkout(account: Account, tier: string): Promise<string>
  /** A new account that has paid for a tier, all events delivered. */
  subscriber(tier: 'dev' | 'pro'): Promise<Account & { subscription: string; customer: string }>
}

const { webhooks } = new Stripe('sk_test_signs_only')

export async function openStripeHarness(env: Record<string, string> = {}): Promise<StripeHarness> {
  await using opened = new AsyncDisposableStack()
  const clock = { now: () => Date.now() }
  const stripe = opened.use(await openStripeServer(() => clock.now()))
  const accountHarness = opened.use(
    await openAccountHarness({ BASE_URL: 'https://countersign.test', ...stripe.env, ...env }),
  )
  clock.now = () => accountHarness.clock.now
  const closing = opened.move()

  const deliver: StripeHarness['deliver'] = (
    event,
    { secret = WEBHOOK_SECRET, age = 0, alter, signature, at = accountHarness } = {},
  ) => {
    const payload = JSON.stringify(event)
    const timestamp = Math.floor(accountHarness.clock.now / 1000) - age
    const signed = signature ?? webhooks.generateTestHeaderString({ payload, secret, timestamp })
    return at.call('POST', '/v1/stripe/webhook', {
      body: Buffer.from(alter ? alter(payload) : payload),
      headers: { 'content-type': 'application/json', ...(signature !== null && { 'stripe-signature': signed }) },
    })
  }
  const usageOf = async (account: Account) => {
    const { body } = await account.call('GET', '/v1/usage')
    return body
  }
  const checkout = async (account: Account, tier: string) => {
    const { status, body } = await account.call('POST', '/v1/checkout', { body: { tier } })
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
    return String(body.checkout_url).split('/').at(-1) ?? ''
  }
  const deliverAll = async () => {
    for (const event of stripe.world.events.splice(0)) {
      const { status, body } = await deliver(event)
      if (status !== 200) throw new Error(`${event.type}: ${status} ${JSON.stringify(body)}`)
    }
  }
  return {
    accountHarness,
    stripe,
    deliver,
    deliverAll,
    usageOf,
    checkout,
    tierOf: async (account) => (await usageOf(account)).tier,
    async subscriber(tier) {
      const account = await accountHarness.register()
      const subscription = stripe.world.acts.payCheckout(await checkout(account, tier))
      await deliverAll()
      const customer = stripe.world.subscriptions.get(subscription)?.customer ?? ''
      return { ...account, subscription, customer }
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}
