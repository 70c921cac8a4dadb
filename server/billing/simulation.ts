// The simulated provider of offline mode: pages of this service replace Stripe's checkout and portal, two tables its records. A
// click is written there and then handled as an event in Stripe's form, so the tier changes by the same path as with Stripe.
// Nothing is paid and nothing renews.
import { createHash, createHmac, randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { PaidTier } from '../accounts/tiers.ts'
import { type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { ProviderSubscription, SimulatedAction, SimulatedPage, Simulation } from './provider.ts'

const MANAGE_MS = 3_600_000
const PERIOD_MONTHS = 1

interface Options {
  db: Database
  now: () => number
  /** The secret token in the address of a page is derived from it and stored nowhere. */
  secret: Buffer
}

const page = z.object({
  id: z.string(),
  kind: z.enum(['subscribe', 'change', 'manage']),
  state: z.enum(['open', 'completed', 'expired']),
  tier: z.enum(['dev', 'pro']).nullable(),
  customer_id: z.string(),
  handle: z.string(),
})
const paidTier = z.enum(['dev', 'pro'])

export function openSimulation({ db, now, secret }: Options): Simulation {
  const tokenOf = (id: string) => createHmac('sha256', secret).update(id).digest('base64url')
  const addressOf = (baseUrl: string, id: string) => `${baseUrl}/checkout/${tokenOf(id)}`

  async function open(kind: SimulatedPage['kind'], customerId: string, tier: PaidTier | null, expiresAt: Date) {
    const id = randomUUID()
    await db.query(sql.type(nothing)`
      insert into simulated_checkouts (id, token_hash, customer_id, kind, tier, expires_at)
      values (${id}, ${sql.binary(hash(tokenOf(id)))}, ${customerId}, ${kind}, ${tier}, ${expiresAt.toISOString()})`)
    return id
  }

  return {
    name: 'simulation',

    createCustomer: async ({ accountId }) => `cus_simulated_${accountId}`,
    findAccountId: async () => null,
    findCustomerOfCharge: async () => null,
    listSubscriptions: (customerId) => listSubscriptions(db, customerId, now()),

    async *listOpenSubscriptions() {
      const found = await db.any(sql.type(z.object({ id: z.string(), customer_id: z.string() }))`
        select id, customer_id from simulated_subscriptions where status = 'active' order by id`)
      for (const { id, customer_id } of found) yield { subscriptionId: id, customerId: customer_id }
    },

    async openCheckout({ customerId, tier, expiresAt, baseUrl }) {
      const id = await open('subscribe', customerId, tier, expiresAt)
      return { id, url: addressOf(baseUrl, id), expiresAt }
    },

    async findOpenCheckout(id, baseUrl) {
      const found = await db.maybeOne(sql.type(z.object({ expires_at: z.date() }))`
        select expires_at from simulated_checkouts
        where id = ${id} and state = 'open' and expires_at > ${new Date(now()).toISOString()}`)
      return found && { id, url: addressOf(baseUrl, id), expiresAt: found.expires_at }
    },

    async closeCheckout(id) {
      // Null when the checkout expired and was pruned.
      const state = await db.maybeOneFirst(sql.type(z.object({ state: page.shape.state }))`
        update simulated_checkouts set state = case state when 'open' then 'expired' else state end
        where id = ${id} returning state`)
      return state === 'completed' ? 'completed' : 'closed'
    },

    async openPortal({ customerId, baseUrl, change }) {
      const expiresAt = new Date(now() + MANAGE_MS)
      const id = await open(change ? 'change' : 'manage', customerId, change?.tier ?? null, expiresAt)
      return { url: addressOf(baseUrl, id), expiresAt }
    },

    findPage: (token) =>
      transact(
        db,
        async (tx) => {
          const found = await findPage(tx, token, now())
          if (!found) return null
          const { kind, state, handle, tier, customer_id } = found
          return { kind, state, handle, tier, current: await findCurrent(tx, customer_id) }
        },
        { readOnly: true },
      ),

    act: (token, action) =>
      transact(db, async (tx) => {
        const found = await findPage(tx, token, now(), sql.fragment`for update of c`)
        if (!found) throw new AppError('not_found', 'There is no such page, or it has expired.')
        if (found.state !== 'open') return null
        const type = await apply(tx, found, action, now())
        await tx.query(sql.type(nothing)`
          update simulated_checkouts set state = ${action === 'cancel' ? 'expired' : 'completed'} where id = ${found.id}`)
        return type === null ? null : eventOf(type, found.customer_id, now())
      }),
  }
}

function hash(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function findPage(tx: Tx, token: string, nowMs: number, lock = sql.fragment``) {
  return tx.maybeOne(sql.type(page)`
    select c.id::text, c.kind, c.state, c.tier, c.customer_id, a.handle
    from simulated_checkouts c
    join billing_customers b on b.customer_id = c.customer_id join accounts a on a.id = b.account_id
    where c.token_hash = ${sql.binary(hash(token))} and c.expires_at > ${new Date(nowMs).toISOString()} ${lock}`)
}

function findCurrent(tx: Tx, customerId: string): Promise<PaidTier | null> {
  return tx.maybeOneFirst(sql.type(z.object({ tier: paidTier }))`
    select tier from simulated_subscriptions where customer_id = ${customerId} and status = 'active'`)
}

/** Does what Stripe would do. Returns the type of the event that Stripe would send; null when nothing changed. */
async function apply(
  tx: Tx,
  { kind, customer_id, tier }: z.output<typeof page>,
  action: SimulatedAction,
  nowMs: number,
): Promise<string | null> {
  if (action === 'pay' && kind === 'subscribe') {
    // A customer has at most one active subscription, because a second one would also bill.
    const made = await tx.query(sql.type(nothing)`
      insert into simulated_subscriptions (id, customer_id, tier, started_at)
      values (${`sub_simulated_${randomUUID()}`}, ${customer_id}, ${tier}, ${new Date(nowMs).toISOString()})
      on conflict (customer_id) where status = 'active' do nothing`)
    return made.rowCount === 1 ? 'checkout.session.completed' : null
  }
  if (action === 'pay' && kind === 'change') {
    const changed = await tx.query(sql.type(nothing)`
      update simulated_subscriptions set tier = ${tier} where customer_id = ${customer_id} and status = 'active'`)
    return changed.rowCount === 1 ? 'customer.subscription.updated' : null
  }
  if (action === 'end' && kind === 'manage') {
    const ended = await tx.query(sql.type(nothing)`
      update simulated_subscriptions set status = 'canceled' where customer_id = ${customer_id} and status = 'active'`)
    return ended.rowCount === 1 ? 'customer.subscription.deleted' : null
  }
  if (action === 'cancel') return null
  throw new AppError('invalid_request', 'This page does not offer that action.')
}

function eventOf(type: string, customer: string, nowMs: number) {
  return {
    id: `evt_simulated_${randomUUID()}`,
    object: 'event',
    type,
    created: Math.floor(nowMs / 1000),
    data: { object: { customer } },
  }
}

async function listSubscriptions(db: Database, customerId: string, nowMs: number): Promise<ProviderSubscription[]> {
  const row = z.object({ id: z.string(), tier: paidTier, status: z.string(), started_at: z.date() })
  const found = await db.any(sql.type(row)`
    select id, tier, status, started_at from simulated_subscriptions where customer_id = ${customerId} order by id`)
  return found.map(({ id, tier, status, started_at }) => ({
    subscriptionId: id,
    status,
    tier,
    payment: 'kept',
    currentPeriodEnd: periodEnd(started_at, nowMs),
    cancelAtPeriodEnd: false,
  }))
}

/** The end of the present month of the subscription: the first one after now. */
function periodEnd(start: Date, nowMs: number): Date {
  const end = new Date(start)
  for (let months = PERIOD_MONTHS; end.getTime() <= nowMs; months += PERIOD_MONTHS) {
    end.setTime(start.getTime())
    end.setUTCMonth(start.getUTCMonth() + months)
  }
  return end
}
