// Stripe's records of subscriptions, and the actions of people and the deadlines that change them. Every change adds
// events, which wait here until a test delivers them: late, twice, in another order or never.
import { randomBytes } from 'node:crypto'

export type Status =
  | 'trialing'
  | 'active'
  | 'past_due'
  | 'unpaid'
  | 'canceled'
  | 'incomplete'
  | 'incomplete_expired'
  | 'paused'

export interface Charge {
  id: string
  object: 'charge'
  customer: string
  amount: number
  amount_refunded: number
  refunded: boolean
  disputed: boolean
}

export interface StripeEvent {
  id: string
  object: 'event'
  type: string
  created: number
  data: { object: Record<string, unknown> }
}

export interface Subscription {
  id: string
  object: 'subscription'
  customer: string
  status: Status
  items: { object: 'list'; data: { id: string; price: { id: string }; current_period_end: number }[]; has_more: false }
  cancel_at_period_end: boolean
  cancel_at: number | null
  latest_invoice: string | null
  metadata: Record<string, string>
  created: number
}

export interface Session {
  id: string
  object: 'checkout.session'
  mode: string
  customer: string
  client_reference_id: string
  status: 'open' | 'complete' | 'expired'
  url: string | null
  expires_at: number
  line_items: { price: string; quantity: string }[]
  success_url: string
  cancel_url: string
  metadata: Record<string, string>
  subscription_data: { metadata: Record<string, string> }
  subscription: string | null
}

export interface Customer {
  id: string
  object: 'customer'
  metadata: Record<string, string>
  deleted?: true
}

const MONTH = 30 * 86_400
/** Cents. */
const AMOUNT = 2900

export type World = ReturnType<typeof buildWorld>

/** @param now milliseconds since the epoch */
export function buildWorld(prices: readonly string[], now: () => number) {
  const customers = new Map<string, Customer>()
  const sessions = new Map<string, Session>()
  const subscriptions = new Map<string, Subscription>()
  /** The charges that paid an invoice; none while it is open. */
  const invoices = new Map<string, { id: string; customer: string; paidBy: Charge[] }>()
  const charges = new Map<string, Charge>()
  const disputes = new Map<string, { id: string; object: 'dispute'; charge: string; status: string }>()
  const events: StripeEvent[] = []
  const configurations: { id: string; metadata?: unknown; features?: unknown }[] = []
  /** Portal sessions, as they were requested. */
  const portals = new Map<string, Record<string, unknown>>()
  const endpoints: { id: string; url: string; status: string; enabled_events: string[] }[] = []

  const makeId = (kind: string) => `${kind}_${randomBytes(8).toString('hex')}`
  const seconds = () => Math.floor(now() / 1000)
  const get = <T>(map: Map<string, T>, id: string): T => map.get(id) ?? fail(`no ${id}`)

  function send(type: string, object: object): StripeEvent {
    // A copy of the present state, which may be old when the event arrives.
    const event = {
      id: makeId('evt'),
      object: 'event' as const,
      type,
      created: seconds(),
      data: { object: { ...object } },
    }
    events.push(event)
    return event
  }

  function bill(subscription: Subscription, paid: boolean) {
    const invoice = { id: makeId('in'), customer: subscription.customer, paidBy: [] as Charge[] }
    invoices.set(invoice.id, invoice)
    subscription.latest_invoice = invoice.id
    if (paid) pay(subscription)
  }

  function pay(subscription: Subscription) {
    const invoice = get(invoices, subscription.latest_invoice ?? '')
    const charge: Charge = {
      id: makeId('ch'),
      object: 'charge',
      customer: subscription.customer,
      amount: AMOUNT,
      amount_refunded: 0,
      refunded: false,
      disputed: false,
    }
    charges.set(charge.id, charge)
    invoice.paidBy.push(charge)
  }

  const about = (subscription: Subscription) => ({
    id: subscription.latest_invoice,
    object: 'invoice',
    customer: subscription.customer,
  })
  const updated = (subscription: Subscription) => send('customer.subscription.updated', subscription)
  const latestCharge = (id: string) => get(invoices, get(subscriptions, id).latest_invoice ?? '').paidBy.at(-1)

  const acts = {
    /** A subscription, paid for or waiting for its first payment. */
    subscribe(customer: string, price: string, options: { paid?: boolean; metadata?: Record<string, string> } = {}) {
      const { paid = true, metadata = {} } = options
      const item = { id: makeId('si'), price: { id: price }, current_period_end: seconds() + MONTH }
      const subscription: Subscription = {
        id: makeId('sub'),
        object: 'subscription',
        customer,
        status: paid ? 'active' : 'incomplete',
        items: { object: 'list', data: [item], has_more: false },
        cancel_at_period_end: false,
        cancel_at: null,
        latest_invoice: null,
        metadata,
        created: seconds(),
      }
      subscriptions.set(subscription.id, subscription)
      send('customer.subscription.created', subscription)
      bill(subscription, paid)
      send(paid ? 'invoice.paid' : 'invoice.payment_failed', about(subscription))
      return subscription.id
    },

    /** A person pays on the page of a session. */
    payCheckout(id: string): string {
      const session = get(sessions, id)
      if (session.status !== 'open') return fail(`${id} is ${session.status}`)
      if (customers.get(session.customer)?.deleted) return fail('the customer was deleted')
      const { metadata } = session.subscription_data
      const subscription = acts.subscribe(session.customer, session.line_items[0]?.price ?? '', { metadata })
      Object.assign(session, { status: 'complete', url: null, subscription })
      send('checkout.session.completed', session)
      return subscription
    },

    renew(id: string, paid: boolean) {
      const subscription = get(subscriptions, id)
      for (const item of subscription.items.data) item.current_period_end += MONTH
      bill(subscription, paid)
      subscription.status = paid ? 'active' : 'past_due'
      send(paid ? 'invoice.paid' : 'invoice.payment_failed', about(subscription))
      updated(subscription)
    },

    /** The open invoice is paid late. */
    recover(id: string) {
      const subscription = get(subscriptions, id)
      pay(subscription)
      subscription.status = 'active'
      send('invoice.paid', about(subscription))
      updated(subscription)
    },

    setStatus(id: string, status: Status) {
      const subscription = get(subscriptions, id)
      subscription.status = status
      send(status === 'canceled' ? 'customer.subscription.deleted' : 'customer.subscription.updated', subscription)
    },

    setPrice(id: string, price: string) {
      const subscription = get(subscriptions, id)
      for (const item of subscription.items.data) item.price = { id: price }
      updated(subscription)
    },

    endWithPeriod(id: string) {
      const subscription = get(subscriptions, id)
      subscription.cancel_at_period_end = true
      updated(subscription)
    },

    refund(id: string, amount = AMOUNT) {
      const charge = latestCharge(id) ?? fail('nothing was paid')
      charge.amount_refunded = Math.min(charge.amount, charge.amount_refunded + amount)
      charge.refunded = charge.amount_refunded === charge.amount
      send('charge.refunded', charge)
    },

    dispute(id: string, status = 'needs_response') {
      const charge = latestCharge(id) ?? fail('nothing was paid')
      charge.disputed = true
      const dispute = { id: makeId('dp'), object: 'dispute' as const, charge: charge.id, status }
      disputes.set(dispute.id, dispute)
      send('charge.dispute.created', dispute)
      return dispute.id
    },

    closeDispute(id: string, status: 'won' | 'lost') {
      const dispute = get(disputes, id)
      dispute.status = status
      send('charge.dispute.closed', dispute)
    },

    deleteCustomer(id: string) {
      get(customers, id).deleted = true
      for (const subscription of subscriptions.values())
        if (subscription.customer === id && subscription.status !== 'canceled')
          acts.setStatus(subscription.id, 'canceled')
      send('customer.deleted', { id, object: 'customer' })
    },
  }

  return {
    prices,
    customers,
    sessions,
    subscriptions,
    invoices,
    charges,
    disputes,
    events,
    configurations,
    portals,
    endpoints,
    acts,
    makeId,
    seconds,
    send,
  }
}

function fail(message: string): never {
  throw new Error(`stripe stand-in: ${message}`)
}
