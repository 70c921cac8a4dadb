// Limits on requests in flight, and the order of the queue. Both are counted inside the admitting transaction, under locks on
// every payer, address and domain that is counted, so that neither a group of calls nor two processes exceed a limit.
import { createHmac, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { addressKey } from '../../accounts/address-key.ts'
import { PUBLIC_LIMITS } from '../../accounts/tiers.ts'
import { column, sql, type Tx } from '../../db/pool.ts'
import { AppError, sayUncharged } from '../../errors.ts'
import { PRICE } from '../../interface/price.ts'
import type { BoundPayment } from '../../payments/x402.ts'

/** The members of an admission that the limits depend on. */
export interface LimitedCall {
  /** The call has found a row with this key. */
  known: boolean
  keyHash: Buffer
  /** Keyed digest of the caller's address, 16 bytes. */
  addressKey: Buffer
  /** Registrable domain of the source. */
  domain: string
  payment?: {
    bound: BoundPayment
    /** How many verifications of one claim the payer's balance pays for; null: not limited by it; undefined: not read. */
    cover?: number | null
  }
}

/** The limit that is reached, its number, and the seconds after which a call may be admitted. */
export interface Limited {
  kind: 'limited'
  limit: 'payer' | 'balance' | 'address' | 'domain' | 'open_quotes'
  most: number
  retryAfterSeconds: number
}

export type Refusal =
  | Limited
  /** The payer has unsettled requests, so the cover of its balance decides, and the call did not give it. */
  | { kind: 'cover_unknown' }

const MESSAGES: Record<Limited['limit'], (most: number) => string> = {
  payer: (most) => `The limit of this payer is ${most} verifications in flight. It grows with each settlement.`,
  balance: (most) =>
    `This payer has as many unsettled verifications in flight as its balance and history cover: ${most}.`,
  address: (most) => `The limit of an address is ${most} verifications in flight.`,
  domain: (most) => `The limit of a domain is ${most} verifications of its pages in flight.`,
  open_quotes: (most) => `The limit of an address is ${most} quotes that are neither paid nor expired.`,
}

/** The error for the caller, who may repeat the same call after `retry-after`. */
export function limitError({ limit, most, retryAfterSeconds }: Limited): AppError {
  return new AppError('rate_limited', sayUncharged(MESSAGES[limit](most)), {
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}

/** The key under which calls of an address are counted, 16 bytes: a keyed digest, so that no address is stored. */
export function addressKeyOf(address: string, secret: KeyObject): Buffer {
  return createHmac('sha256', secret).update(addressKey(address)).digest().subarray(0, 16)
}

/** The places that are left under the limits, for the calls of one group. */
export interface Places {
  /** Why there is no place for the call; null if there is. */
  refusalOf(call: LimitedCall): Refusal | null
  /**
   * Takes a place for a call that `refusalOf` does not refuse and whose payment is about to be bound. Answers the priority
   * of its job, lower being earlier: the more the payer or the address has in flight, the later.
   */
  takeForWork(call: LimitedCall): number
  /** Takes a place among the open quotes of the call's address. */
  takeForQuote(call: LimitedCall): void
}

/** Of a refusal for lack of capacity: the estimates of the queue and of work in flight are not good enough for longer advice. */
export const MAX_RETRY_AFTER_SECONDS = 60
/** This many requests of one address weigh as much as one request of one payer: an address may be shared by many payers. */
const ADDRESS_WEIGHT = 8
const MAX_PRIORITY = 32_767

/**
 * Locks and counts the payers, addresses and domains of the calls until the transaction ends. Must be its first statement:
 * every admission takes these locks before any other (see `count_in_flight` in sql/).
 * @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER; 0: no limit per payer
 */
export async function openPlaces(tx: Tx, calls: readonly LimitedCall[], maxInFlightPerPayer: number): Promise<Places> {
  const paid = calls.filter((call) => call.payment)
  const asking = calls.filter((call) => !call.payment && !call.known)
  if (paid.length + asking.length === 0) return placesOf([], maxInFlightPerPayer)
  const addresses = (from: LimitedCall[]) => column(from, 'bytea', (call) => call.addressKey)
  const rows = await tx.any(sql.prepared('count_in_flight', counted)`
    select kind, name, n, unsettled, seconds, most
    from count_in_flight(${column(paid, 'text', payerOf)}, ${addresses(paid)},
                         ${column(paid, 'text', (call) => call.domain)}, ${addresses(asking)})`)
  return placesOf(rows, maxInFlightPerPayer)
}

const counted = z.object({
  kind: z.enum(['payer', 'address', 'domain', 'open_quotes', 'standing']),
  name: z.string(),
  /** In flight, open, or settled so far. */
  n: z.number(),
  /** Of a payer: what its requests in flight cost, each in prices of one claim, rounded up. */
  unsettled: z.number(),
  /** Mean age of the requests in flight; for open quotes, the time until the first one expires. */
  seconds: z.number().nullable(),
  most: z.number().nullable(),
})
type Counted = z.output<typeof counted>

const payerOf = (call: LimitedCall) => call.payment?.bound.identity.payer ?? ''

/** The calls that share one limit. */
interface Group extends Pick<Counted, 'kind' | 'n' | 'unsettled' | 'seconds' | 'most'> {
  /** Keys of the requests that were counted here. Two calls for one request count once: it ends with one payment. */
  taken: Set<string>
}

/** The groups of one call. */
interface Groups {
  key: string
  payer: Group
  address: Group
  domain: Group
  /** Of the address. */
  openQuotes: Group
  /** The payer's settlements so far, and the limit that follows from them. */
  history: Group
}

function placesOf(rows: readonly Counted[], maxInFlightPerPayer: number): Places {
  const groups = new Map(rows.map((row): [string, Group] => [`${row.kind} ${row.name}`, { ...row, taken: new Set() }]))
  function groupOf(kind: Counted['kind'], name: string): Group {
    const id = `${kind} ${name}`
    const found = groups.get(id) ?? { kind, n: 0, unsettled: 0, seconds: null, most: null, taken: new Set() }
    groups.set(id, found)
    return found
  }
  const known = new Map<LimitedCall, Groups>()
  function groupsOf(call: LimitedCall): Groups {
    const found = known.get(call)
    if (found) return found
    const address = call.addressKey.toString('hex')
    const made = {
      key: call.keyHash.toString('hex'),
      payer: groupOf('payer', payerOf(call)),
      address: groupOf('address', address),
      domain: groupOf('domain', call.domain),
      openQuotes: groupOf('open_quotes', address),
      history: groupOf('standing', payerOf(call)),
    }
    known.set(call, made)
    return made
  }

  /** Work is done before it is charged, so a payer's balance or its earlier settlements must cover its unsettled requests. */
  function refusalOfPayer(payer: Group, history: Group, payment: NonNullable<LimitedCall['payment']>): Refusal | null {
    const { cover } = payment
    const most = maxInFlightPerPayer === 0 ? Number.POSITIVE_INFINITY : (history.most ?? maxInFlightPerPayer)
    if (payer.n >= most) return limited('payer', payer, most)
    const proved = Math.max(1, history.n)
    if (payer.unsettled < proved || cover === null) return null
    if (cover === undefined) return { kind: 'cover_unknown' }
    const covered = Math.max(proved, cover)
    return payer.unsettled + weightOf(payment) <= covered ? null : limited('balance', payer, covered)
  }

  return {
    refusalOf(call) {
      const { key, payer, address, domain, openQuotes, history } = groupsOf(call)
      const { open_quotes_per_address, in_flight_per_address, in_flight_per_domain } = PUBLIC_LIMITS
      const full = (limit: Limited['limit'], group: Group, most: number) =>
        group.n < most || group.taken.has(key) ? null : limited(limit, group, most)
      if (!call.payment) return full('open_quotes', openQuotes, open_quotes_per_address)
      return (
        (payer.taken.has(key) ? null : refusalOfPayer(payer, history, call.payment)) ??
        full('address', address, in_flight_per_address) ??
        full('domain', domain, in_flight_per_domain)
      )
    },

    takeForWork(call) {
      const { key, payer, address, domain } = groupsOf(call)
      const priority = Math.max(payer.n, Math.floor(address.n / ADDRESS_WEIGHT))
      for (const group of [payer, address, domain]) {
        if (group.taken.has(key)) continue
        group.taken.add(key)
        group.n++
        group.unsettled += call.payment ? weightOf(call.payment) : 1
      }
      return Math.min(MAX_PRIORITY, priority)
    },

    takeForQuote(call) {
      groupsOf(call).openQuotes.n++
    },
  }
}

/** What a payment pays, in prices of one claim, rounded up; `count_in_flight` in sql/ computes the same. */
function weightOf({ bound }: NonNullable<LimitedCall['payment']>): number {
  return Math.max(1, Math.ceil(Number(bound.requirements.amount) / Number(PRICE.atomic)))
}

function limited(limit: Limited['limit'], group: Group, most: number): Limited {
  return { kind: 'limited', limit, most, retryAfterSeconds: retryAfter(group) }
}

/**
 * Seconds. Open quotes: until the first of them expires. Work: requests in flight have on average run for as long as they
 * will still run, so the first of n ends after an n-th of their mean age.
 */
function retryAfter({ kind, n, seconds }: Group): number {
  if (kind === 'open_quotes') return Math.max(1, Math.ceil(seconds ?? 0))
  return Math.min(MAX_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil((seconds ?? 0) / n)))
}
