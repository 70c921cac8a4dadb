// Limits on what is in flight, and the order of the queue. Both are counted inside the transaction that admits, under locks
// on everyone who is counted, so that neither a group of calls nor two processes exceed a limit.
import { createHmac, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { PUBLIC_LIMITS } from '../control/tiers.ts'
import { column, sql, type Tx } from '../db/pool.ts'
import { AppError, sayUncharged } from '../errors.ts'
import { addressKey } from '../rate-limit.ts'
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
const addressOf = (item: Admission) => item.addressKey.toString('hex')
const groupOf = (kind: Counted['kind'], name: string) => `${kind} ${name}`

/** What a paid call belongs to, in the order in which the limits are asked. */
function groupsOf(item: Admission) {
  return [
    { kind: 'payer', group: groupOf('payer', payerIn(item)) },
    { kind: 'address', group: groupOf('address', addressOf(item)) },
    { kind: 'domain', group: groupOf('domain', item.domain) },
  ] as const
}

function placesIn(rows: readonly Counted[], maxInFlightPerPayer: number): Places {
  const counts = new Map(rows.map((row) => [groupOf(row.kind, row.name), { ...row }]))
  /** Requests that took a place in a group. Two calls for one request take one: it ends with one payment. */
  const taken = new Set<string>()
  const placeOf = (group: string, item: Admission) => `${group} ${item.keyHash.toString('hex')}`
  const inFlight = (group: string) => counts.get(group)?.n ?? 0

  function full(limit: Limited['limit'], group: string, most: number, has = inFlight(group)): Limited | null {
    return has < most ? null : { kind: 'limited', limit, most, retryAfterSeconds: retryAfter(counts.get(group)) }
  }

  /** Work is done before it is paid for: what a payer has unsettled, its balance or what it settled before must cover. */
  function refusalOfPayer(group: string, item: Admission): Refusal | null {
    const standing = counts.get(groupOf('standing', payerIn(item)))
    const most = maxInFlightPerPayer === 0 ? Number.POSITIVE_INFINITY : (standing?.most ?? maxInFlightPerPayer)
    const refusal = full('payer', group, most)
    if (refusal) return refusal
    const unsettled = counts.get(group)?.unsettled ?? 0
    const proved = Math.max(1, standing?.n ?? 0)
    if (unsettled < proved) return null
    const cover = item.payment?.cover
    if (cover === undefined) return { kind: 'cover_unknown' }
    return cover === null ? null : full('balance', group, Math.max(proved, cover), unsettled)
  }

  function raise(kind: Counted['kind'], group: string) {
    const now = counts.get(group) ?? { kind, name: group, n: 0, unsettled: 0, seconds: null, most: null }
    counts.set(group, { ...now, n: now.n + 1, unsettled: now.unsettled + 1 })
  }

  return {
    refusalOf(item) {
      if (!item.payment)
        return full('open_quotes', groupOf('open_quotes', addressOf(item)), PUBLIC_LIMITS.open_quotes_per_address)
      for (const { kind, group } of groupsOf(item)) {
        if (taken.has(placeOf(group, item))) continue
        const refusal =
          kind === 'payer' ? refusalOfPayer(group, item) : full(kind, group, PUBLIC_LIMITS[`in_flight_per_${kind}`])
        if (refusal) return refusal
      }
      return null
    },

    takeForWork(item) {
      const [payer, address] = groupsOf(item)
      const priority = Math.max(inFlight(payer.group), Math.floor(inFlight(address.group) / ADDRESS_WEIGHT))
      for (const { kind, group } of groupsOf(item)) {
        if (taken.has(placeOf(group, item))) continue
        taken.add(placeOf(group, item))
        raise(kind, group)
      }
      return Math.min(MAX_PRIORITY, priority)
    },

    takeForQuote: (item) => raise('open_quotes', groupOf('open_quotes', addressOf(item))),
  }
}

/**
 * Seconds. Open quotes: until the first of them expires. Work: what is in flight has on average run for as long as it will
 * go on, so the first of n requests ends in an n-th of their mean age.
 */
function retryAfter(group: Counted | undefined): number {
  const seconds = group?.seconds ?? 0
  if (!group || group.kind === 'open_quotes') return Math.max(1, Math.ceil(seconds))
  return Math.min(MAX_RETRY_AFTER, Math.max(1, Math.ceil(seconds / group.n)))
}
