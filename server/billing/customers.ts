// Customers at the provider, each standing for one account, and the order of the looks taken at them.
import { z } from 'zod'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import type { ProviderName } from './provider.ts'

const customer = z.object({ customer_id: z.string(), account_id: z.string(), handle: z.string() })
export type Customer = z.output<typeof customer>

export function findCustomer(db: Database, provider: ProviderName, customerId: string): Promise<Customer | null> {
  return db.maybeOne(sql.type(customer)`
    select c.customer_id, c.account_id, a.handle
    from billing_customers c join accounts a on a.id = c.account_id
    where c.customer_id = ${customerId} and c.provider = ${provider}`)
}

/** The customer an account buys as; null when it has none, or none that still exists. */
export function findCustomerOf(db: Database, provider: ProviderName, accountId: string): Promise<Customer | null> {
  return db.maybeOne(sql.type(customer)`
    select c.customer_id, c.account_id, a.handle
    from billing_customers c join accounts a on a.id = c.account_id
    where c.account_id = ${accountId} and c.provider = ${provider} and c.gone_at is null
    order by c.created_at limit 1`)
}

/** Keeps whose customer it is; one that is known stays whose it is. Null when there is no such account. */
export async function keepCustomer(
  db: Database,
  provider: ProviderName,
  customerId: string,
  accountId: string,
): Promise<Customer | null> {
  await db.query(sql.type(nothing)`
    insert into billing_customers (customer_id, account_id, provider)
    select ${customerId}, id, ${provider} from accounts where id = ${accountId}
    on conflict (customer_id) do nothing`)
  return findCustomer(db, provider, customerId)
}

/** Customers in the order of their ids, after one of them; `open`: whether any of their subscriptions may still change. */
export function listCustomers(
  db: Database,
  options: { provider: ProviderName; after: string; limit: number; ended: readonly string[] },
) {
  const { provider, after, limit, ended } = options
  return db.any(sql.type(customer.extend({ open: z.boolean() }))`
    select c.customer_id, c.account_id, a.handle,
           exists (select from billing_subscriptions s
                   where s.customer_id = c.customer_id and s.status <> all (${sql.array([...ended], 'text')})) open
    from billing_customers c join accounts a on a.id = c.account_id
    where c.provider = ${provider} and c.customer_id > ${after}
    order by c.customer_id limit ${limit}`)
}

/** Takes the number of a look that is about to begin. */
export function beginSync(db: Database, customerId: string): Promise<number> {
  return db.oneFirst(sql.type(z.object({ looks: z.number() }))`
    update billing_customers set looks = looks + 1 where customer_id = ${customerId} returning looks`)
}

/**
 * Whether what a look saw is to be written: not if a look that began later has been written. Holds the customer until the
 * transaction ends.
 */
export async function endSync(tx: Tx, customerId: string, look: number, gone: boolean): Promise<boolean> {
  const ended = await tx.query(sql.type(nothing)`
    update billing_customers
    set seen_look = ${look}, gone_at = case when ${gone} then coalesce(gone_at, now()) end
    where customer_id = ${customerId} and seen_look < ${look}`)
  return ended.rowCount === 1
}
