// Customers at the provider, one for each account, and the order of the synchronizations of a customer.
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

/** The customer of an account; null when it has none, or when all of them were deleted at the provider. */
export function findCustomerOf(db: Database, provider: ProviderName, accountId: string): Promise<Customer | null> {
  return db.maybeOne(sql.type(customer)`
    select c.customer_id, c.account_id, a.handle
    from billing_customers c join accounts a on a.id = c.account_id
    where c.account_id = ${accountId} and c.provider = ${provider} and c.gone_at is null
    order by c.created_at limit 1`)
}

/** Records the account of a customer; a known customer keeps its account. Null when the account does not exist. */
export async function insertCustomer(
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

/**
 * Customers in the order of their ids, after the id `after`. `open`: a subscription of the customer has another status than
 * those of `ended`, so it may still change.
 */
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

/** Takes the number of a synchronization that is about to begin. */
export function beginSync(db: Database, customerId: string): Promise<number> {
  return db.oneFirst(sql.type(z.object({ looks: z.number() }))`
    update billing_customers set looks = looks + 1 where customer_id = ${customerId} returning looks`)
}

/**
 * Whether this synchronization may write what it read: false if a later one has already written. Locks the customer until
 * the transaction ends.
 */
export async function endSync(tx: Tx, customerId: string, sync: number, gone: boolean): Promise<boolean> {
  const ended = await tx.query(sql.type(nothing)`
    update billing_customers
    set seen_look = ${sync}, gone_at = case when ${gone} then coalesce(gone_at, now()) end
    where customer_id = ${customerId} and seen_look < ${sync}`)
  return ended.rowCount === 1
}
