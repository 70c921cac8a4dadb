// Rows of one page may be bought together, by one payment for up to ten claims. A group is named by its rows and their attempts, so the
// same rows have the same name, and with it the same key at the service, whenever they are grouped.
import { createHash } from 'node:crypto'
import type { Journal } from './journal.ts'
import { type ClaimsQuestion, MOST_CLAIMS, priceOf } from './order.ts'
import type { Row } from './rows.ts'

/** Several rows that one payment buys; `claims` are theirs, in the same order. */
export interface Group extends ClaimsQuestion {
  id: string
  rows: readonly Row[]
}

export type Item = Row | Group

/** The rows that are answered with this item. */
export function rowsOf(item: Item): readonly Row[] {
  return 'rows' in item ? item.rows : [item]
}

/** The rows in groups of one page and one greatest age each, in the order of the input; a row that is alone stays a row. */
export function groupByPage(rows: readonly Row[], attemptOf: (id: string) => number = () => 1): Item[] {
  const groups: Row[][] = []
  const open = new Map<string, Row[]>()
  for (const row of rows) {
    const page = JSON.stringify([row.source_url, row.max_age_seconds ?? null])
    const last = open.get(page)
    if (last && last.length < MOST_CLAIMS) last.push(row)
    else {
      const begun = [row]
      open.set(page, begun)
      groups.push(begun)
    }
  }
  return groups.map((group) => {
    const [first] = group
    if (first && group.length === 1) return first
    const digest = createHash('sha256').update(JSON.stringify(group.map(({ id }) => [id, attemptOf(id)])))
    return groupOf(`claims-${digest.digest('hex')}`, group)
  })
}

/**
 * What is left to buy or to fetch: first what has a payment, as it was paid, since neither the budget nor a refused wallet may
 * prevent fetching it; then the other rows, one by one or in groups.
 */
export function itemsOf(rows: readonly Row[], journal: Journal): { paid: Item[]; unpaid: Item[] } {
  const paid = new Map<string, Item>()
  const rest: Row[] = []
  for (const row of rows) {
    const payment = journal.paymentOf(row.id)
    if (!payment) rest.push(row)
    else if (payment.rows) paid.set(payment.id, groupOf(payment.id, payment.rows))
    else paid.set(row.id, row)
  }
  const unpaid = journal.header.grouped ? groupByPage(rest, (id) => journal.attemptOf(id)) : rest
  return { paid: [...paid.values()], unpaid }
}

/** Atomic units. @param price of one claim */
export function costOf(items: readonly Item[], price: bigint): bigint {
  return items.reduce((sum, item) => sum + priceOf(price, item), 0n)
}

/** How many rows the budget allows, if each purchase that it allows is made in this order. */
export function affordable(items: readonly Item[], price: bigint, budget: bigint): number {
  let [left, rows] = [budget, 0]
  for (const item of items) {
    const cost = priceOf(price, item)
    if (cost > left) continue
    left -= cost
    rows += rowsOf(item).length
  }
  return rows
}

function groupOf(id: string, rows: readonly Row[]): Group {
  const { source_url = '', max_age_seconds } = rows[0] ?? {}
  const claims = rows.map(({ claim }) => claim)
  return { id, rows, source_url, claims, ...(max_age_seconds !== undefined && { max_age_seconds }) }
}
