// What the provider tells us by itself. An event is taken for a reason to look at its customer and for nothing more.
import { z } from 'zod'
import { sql } from '../db/pool.ts'
import { type Customer, findCustomer, keepCustomer } from './customers.ts'
import type { Provider } from './provider.ts'
import type { TierChange } from './subscriptions.ts'
import { type Billing, synchronize } from './synchronization.ts'

/** The types that may move a tier. Everything else is acknowledged and forgotten. */
export const HANDLED_TYPES = [
  'checkout.session.completed',
  'checkout.session.async_payment_succeeded',
  'customer.deleted',
  'customer.subscription.created',
  'customer.subscription.updated',
  'customer.subscription.deleted',
  'customer.subscription.paused',
  'customer.subscription.resumed',
  'invoice.paid',
  'invoice.payment_failed',
  'charge.refunded',
  'charge.dispute.created',
  'charge.dispute.closed',
  'refund.failed',
] as const

const reference = z.union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)]).nullish()

/** As Stripe writes them; an object is named by its id, or stands there itself. */
const billingEvent = z.object({
  id: z.string().min(1).max(255),
  type: z.string(),
  created: z.int(),
  data: z.object({ object: z.object({ id: z.string().nullish(), customer: reference, charge: reference }) }),
})

/**
 * `applied`: its customer was looked at. `repeated`: it was worked on before. `ignored`: of a type, or about a customer,
 * that is no concern of ours.
 */
export interface Received {
  outcome: 'applied' | 'repeated' | 'ignored'
  change: TierChange | null
}

const IGNORED: Received = { outcome: 'ignored', change: null }

/**
 * Works on one event whose origin is certain. Throws when it could not be worked on to the end: whoever sent it has to
 * send it again.
 */
export async function receive(billing: Billing, provider: Provider, given: unknown): Promise<Received> {
  const type = z.object({ type: z.string() }).safeParse(given).data?.type
  if (!HANDLED_TYPES.some((concerning) => concerning === type)) return IGNORED
  const event = billingEvent.parse(given)
  if (await isKnown(billing, event.id)) return { outcome: 'repeated', change: null }
  const customer = await findOrAdopt(billing, provider, await customerIdOf(provider, event))
  if (!customer) return IGNORED
  const cause = { id: event.id, type: event.type, createdAt: new Date(event.created * 1000) }
  const { change } = await synchronize(billing, provider, customer, cause)
  return { outcome: 'applied', change }
}

function isKnown({ db }: Billing, id: string): Promise<boolean> {
  return db.exists(sql.type(z.object({ event_id: z.string() }))`
    select event_id from billing_events where event_id = ${id}`)
}

/** Disputes and refunds name a charge, customers themselves, and everything else its customer. */
async function customerIdOf(provider: Provider, { type, data: { object } }: z.output<typeof billingEvent>) {
  if (type === 'customer.deleted') return object.id ?? null
  if (object.customer) return object.customer
  return object.charge ? provider.findCustomerOfCharge(object.charge) : null
}

/** One that we never heard of may be ours all the same: the provider keeps which account it was made for. */
export async function findOrAdopt(
  { db }: Billing,
  provider: Provider,
  customerId: string | null,
): Promise<Customer | null> {
  if (customerId === null) return null
  const known = await findCustomer(db, provider.name, customerId)
  if (known) return known
  const accountId = z.uuid().safeParse(await provider.findAccountId(customerId)).data
  return accountId === undefined ? null : keepCustomer(db, provider.name, customerId, accountId)
}
