// Events that the provider sends. An event only causes a synchronization of its customer; its content is not trusted.
import { z } from 'zod'
import { sql } from '../db/pool.ts'
import { type Customer, findCustomer, insertCustomer } from './customers.ts'
import type { Provider } from './provider.ts'
import type { TierChange } from './subscriptions.ts'
import { type BillingContext, synchronize } from './synchronization.ts'

/** The event types that may change a tier. All others are acknowledged and ignored. */
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

/** As Stripe writes them. A reference is an id, or the whole object. */
const billingEvent = z.object({
  id: z.string().min(1).max(255),
  type: z.string(),
  created: z.int(),
  data: z.object({ object: z.object({ id: z.string().nullish(), customer: reference, charge: reference }) }),
})

/**
 * `applied`: the customer was synchronized. `repeated`: the event was applied before. `ignored`: its type changes no tier, or
 * its customer is not one of this service.
 */
export interface HandledEvent {
  outcome: 'applied' | 'repeated' | 'ignored'
  change: TierChange | null
}

const IGNORED: HandledEvent = { outcome: 'ignored', change: null }

/** Handles one event whose sender was verified. Throws when it was not applied; the sender then has to send it again. */
export async function handleEvent(billing: BillingContext, provider: Provider, given: unknown): Promise<HandledEvent> {
  const type = z.object({ type: z.string() }).safeParse(given).data?.type
  if (!HANDLED_TYPES.some((handled) => handled === type)) return IGNORED
  const event = billingEvent.parse(given)
  if (await wasApplied(billing, event.id)) return { outcome: 'repeated', change: null }
  const customer = await findOrInsertCustomer(billing, provider, await customerIdOf(provider, event))
  if (!customer) return IGNORED
  const cause = { id: event.id, type: event.type, createdAt: new Date(event.created * 1000) }
  const { change } = await synchronize(billing, provider, customer, cause)
  return { outcome: 'applied', change }
}

function wasApplied({ db }: BillingContext, id: string): Promise<boolean> {
  return db.exists(sql.type(z.object({ event_id: z.string() }))`
    select event_id from billing_events where event_id = ${id}`)
}

/** The object of a dispute or a refund names a charge, that of a deleted customer is the customer, all others name one. */
async function customerIdOf(provider: Provider, { type, data: { object } }: z.output<typeof billingEvent>) {
  if (type === 'customer.deleted') return object.id ?? null
  if (object.customer) return object.customer
  return object.charge ? provider.findCustomerOfCharge(object.charge) : null
}

/** An unknown customer may be one of this service: the provider keeps the account that it was made for. Else null. */
export async function findOrInsertCustomer(
  { db }: BillingContext,
  provider: Provider,
  customerId: string | null,
): Promise<Customer | null> {
  if (customerId === null) return null
  const known = await findCustomer(db, provider.name, customerId)
  if (known) return known
  const accountId = z.uuid().safeParse(await provider.findAccountId(customerId)).data
  return accountId === undefined ? null : insertCustomer(db, provider.name, customerId, accountId)
}
