// Limits on what is in flight, and the order of the queue. Both are counted inside the transaction that admits, under locks
// on everyone who is counted, so that neither a group of calls nor two processes exceed a limit.
import { createHmac, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { addressKey } from '../accounts/rate-limit.ts'
import { PUBLIC_LIMITS } from '../accounts/tiers.ts'
import { column, sql, type Tx } from '../db/pool.ts'
import { AppError, sayUncharged } from '../errors.ts'
import type { Admission } from './admission.ts'

/** No place is left: which limit, its number, and when a place may be free again. */
export interface Limited {
  kind: 'limited'
  limit: 'payer' | 'balance' | 'address' | 'domain' | 'open_quotes'
  most: number
  retryAfterSeconds: number
}

export type Refusal =
  | Limited
  /** The payer has something unsettled; what the payer's balance covers decides, and the call did not say. */
  | { kind: 'cover_unknown' }

const MESSAGES: Record<Limited['limit'], (most: number) => string> = {
  payer: (most) => `The limit of this payer is ${most} verifications in flight. It grows with each settlement.`,
  balance: (most) => `What this payer has in flight unsettled is what its balance and history cover: ${most}.`,
  address: (most) => `The limit of an address is ${most} verifications in flight.`,
  domain: (most) => `The limit of a domain is ${most} verifications in flight of its pages.`,
  open_quotes: (most) => `The limit of an address is ${most} quotes that are neither paid nor expired.`,
}

/** What the caller is told: which limit, its number, when to come back. The same call may be repeated as it is. */
export function limitError({ limit, most, retryAfterSeconds }: Limited): AppError {
  return new AppError('rate_limited', sayUncharged(MESSAGES[limit](most)), {
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}

/** Under what the calls of an address are counted, 16 bytes: keyed, so that no address is stored. */
export function addressKeyOf(address: string, secret: KeyObject): Buffer {
  return createHmac('sha256', secret).update(addressKey(address)).digest().subarray(0, 16)
}

/** The places that are left, for the calls of one group. */
export interface Places {
  /** Why there is no place for the call; null when there is one. */
  refusalOf(item: Admission): Refusal | null
  /**
   * Takes the place of a call that `refusalOf` does not refuse; its payment is about to be bound. Answers the priority of
   * its job, lower being earlier: the more the payer or the address has in flight, the later.
   */
  takeForWork(item: Admission): number
  /** Takes a place among the open quotes of the call's address. */
  takeForQuote(item: Admission): void
}

/** Seconds; longer advice would say more than is known. */
const MAX_RETRY_AFTER = 60
/** So many requests of one address weigh as much as one request of one payer: an address may stand for many payers. */
const ADDRESS_WEIGHT = 8
const MAX_PRIORITY = 32_767

/**
 * Locks and counts what the calls belong to, until the transaction ends. Must be its first statement: every admission takes
 * these locks before any other (see `count_in_flight` in sql/).
 * @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER; 0: no limit per payer
 */
export async function openPlaces(tx: Tx, items: Admission[], maxInFlightPerPayer: number): Promise<Places> {
  const paid = items.filter((item) => item.payment)
  const asking = items.filter((item) => !item.payment && !item.known)
  if (paid.length + asking.length === 0) return placesIn([], maxInFlightPerPayer)
  const addresses = (from: Admission[]) => column(from, 'bytea', (item) => item.addressKey)
  const rows = await tx.any(sql.prepared('count_in_flight', counted)`
    select kind, name, n, unsettled, seconds, most
    from count_in_flight(${column(paid, 'text', payerIn)}, ${addresses(paid)},
                         ${column(paid, 'text', (item) => item.domain)}, ${addresses(asking)})`)
  return placesIn(rows, maxInFlightPerPayer)
}

const counted = z.object({
  kind: z.enum(['payer', 'address', 'domain', 'open_quotes', 'standing']),
  name: z.string(),
  /** In flight, open, or settled so far. */
  n: z.number(),
  unsettled: z.number(),
  /** Mean age of what is in flight; until the first open quote expires. */
  seconds: z.number().nullable(),
  most: z.number().nullable(),
})
type Counted = z.output<typeof counted>

const payerIn = (item: Admission) => item.payment?.bound.identity.payer ?? ''

/** Those who share a limit. */
interface Group extends Pick<Counted, 'kind' | 'n' | 'unsettled' | 'seconds' | 'most'> {
  /** Keys of requests that took a place. Two calls for one request take one: it ends with one payment. */
  taken: Set<string>
}

/** What a call belongs to. */
interface Belongings {
  key: string
  payer: Group
  address: Group
  domain: Group
  /** Of the address. */
  openQuotes: Group
  /** What is known of the payer: settlements so far, and the limit that followed from them. */
  standing: Group
}

function placesIn(rows: readonly Counted[], maxInFlightPerPayer: number): Places {
  const groups = new Map(rows.map((row): [string, Group] => [`${row.kind} ${row.name}`, { ...row, taken: new Set() }]))
  function groupOf(kind: Counted['kind'], name: string): Group {
    const id = `${kind} ${name}`
    const found = groups.get(id) ?? { kind, n: 0, unsettled: 0, seconds: null, most: null, taken: new Set() }
    groups.set(id, found)
    return found
  }
  const known = new Map<Admission, Belongings>()
  function belongings(item: Admission): Belongings {
    const found = known.get(item)
    if (found) return found
    const address = item.addressKey.toString('hex')
    const made = {
      key: item.keyHash.toString('hex'),
      payer: groupOf('payer', payerIn(item)),
      address: groupOf('address', address),
      domain: groupOf('domain', item.domain),
      openQuotes: groupOf('open_quotes', address),
      standing: groupOf('standing', payerIn(item)),
    }
    known.set(item, made)
    return made
  }

  /** Work is done before it is paid for: what a payer has unsettled, its balance or what it settled before must cover. */
  function refusalOfPayer(payer: Group, standing: Group, cover: number | null | undefined): Refusal | null {
    const most = maxInFlightPerPayer === 0 ? Number.POSITIVE_INFINITY : (standing.most ?? maxInFlightPerPayer)
    if (payer.n >= most) return limited('payer', payer, most)
    const proved = Math.max(1, standing.n)
    if (payer.unsettled < proved || cover === null) return null
    if (cover === undefined) return { kind: 'cover_unknown' }
    const covered = Math.max(proved, cover)
    return payer.unsettled < covered ? null : limited('balance', payer, covered)
  }

  return {
    refusalOf(item) {
      const { key, payer, address, domain, openQuotes, standing } = belongings(item)
      const { open_quotes_per_address, in_flight_per_address, in_flight_per_domain } = PUBLIC_LIMITS
      const full = (limit: Limited['limit'], group: Group, most: number) =>
        group.n < most || group.taken.has(key) ? null : limited(limit, group, most)
      if (!item.payment) return full('open_quotes', openQuotes, open_quotes_per_address)
      return (
        (payer.taken.has(key) ? null : refusalOfPayer(payer, standing, item.payment.cover)) ??
        full('address', address, in_flight_per_address) ??
        full('domain', domain, in_flight_per_domain)
      )
    },

    takeForWork(item) {
      const { key, payer, address, domain } = belongings(item)
      const priority = Math.max(payer.n, Math.floor(address.n / ADDRESS_WEIGHT))
      for (const group of [payer, address, domain]) {
        if (group.taken.has(key)) continue
        group.taken.add(key)
        group.n++
        group.unsettled++
      }
      return Math.min(MAX_PRIORITY, priority)
    },

    takeForQuote(item) {
      belongings(item).openQuotes.n++
    },
  }
}

function limited(limit: Limited['limit'], group: Group, most: number): Limited {
  return { kind: 'limited', limit, most, retryAfterSeconds: retryAfter(group) }
}

/**
 * Seconds. Open quotes: until the first of them expires. Work: what is in flight has on average run for as long as it will
 * go on, so the first of n requests ends in an n-th of their mean age.
 */
function retryAfter({ kind, n, seconds }: Group): number {
  if (kind === 'open_quotes') return Math.max(1, Math.ceil(seconds ?? 0))
  return Math.min(MAX_RETRY_AFTER, Math.max(1, Math.ceil((seconds ?? 0) / n)))
}
