// Admission of a free look: finds the look that answers the same pair of this address already, or makes one with its job, within
// the limits of the address, of its network, of all callers together, and of the page's domain.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { shareOf } from '../accounts/shared-budget.ts'
import { ADDRESS_LIMITS, refuseToday } from '../accounts/tiers.ts'
import type { TrySettings } from '../config/looks.ts'
import { enqueue } from '../db/jobs.ts'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { type FreeWork, requireRoomIn, tooManyAtATime } from '../free-work/limits.ts'
import { canonicalJson, sha256 } from '../receipts/format.ts'
import { KEEP_SECONDS, type LookInput, lookJob, PAUSE_SECONDS } from './look.ts'

/** The priority of the first look in flight of an address: later than verifications, which are paid. */
const FIRST_PRIORITY = 10
/** How often one pair is looked at in a day for one address: more than an answer expires in a day, less than failures could. */
const MAX_RUNS = 60

export interface LookRequest {
  /** Who asks; null for a sample with its own claim, whose answer all callers share. */
  caller: { addressKey: Buffer; networkKey: Buffer } | null
  input: LookInput
  /** Name of the sample; null for a page. */
  sample: string | null
  /** Registrable domain of the page. */
  domain: string
}

/** In place of an address, for what all callers share. */
const SHARED = Buffer.alloc(16)

/** Answers the id of the look. Throws AppError `daily_limit` and `rate_limited`, both with Retry-After. */
export async function admitLook(
  tx: Tx,
  { caller, input, sample, domain }: LookRequest,
  bounds: TrySettings,
): Promise<string> {
  // The limit in all needs one lock for all.
  await tx.query(sql.type(nothing)`select from pg_advisory_xact_lock(8404)`)
  const { addressKey, networkKey } = caller ?? { addressKey: SHARED, networkKey: SHARED }
  const pairHash = Buffer.from(sha256(canonicalJson(input)), 'hex')
  const known = await findSame(tx, addressKey, pairHash)
  if (known?.answers) return known.id
  if (known && known.runs >= MAX_RUNS)
    throw refuseToday(`One page and claim can be tried ${MAX_RUNS} times a day (UTC).`)
  if (caller && !known) await requireCount(tx, caller, bounds)
  const inFlight = await measurePending(tx, addressKey)
  const most = ADDRESS_LIMITS.looks_in_flight
  if (caller && inFlight.n >= most) throw tooManyAtATime(`looks_in_flight: an address has ${most}.`, inFlight)
  if (sample === null) await requireRoomIn(tx, domain)
  const priority = FIRST_PRIORITY + inFlight.n
  const id = await tx.oneFirst(sql.type(z.object({ id: z.string() }))`
    insert into looks as l (id, address_key, network_key, day, pair_hash, body, sample, domain, priority)
    values (${randomUUID()}, ${sql.binary(addressKey)}, ${sql.binary(networkKey)}, (now() at time zone 'utc')::date,
            ${sql.binary(pairHash)}, ${JSON.stringify(input)}::json, ${sample}, ${domain}, ${priority})
    on conflict (address_key, day, pair_hash) do update
    set state = 'pending', stage = 'waiting', body = excluded.body, result = null, error = null, waiting = null,
        attempt = null, runs = l.runs + 1, priority = excluded.priority, changed_at = now()
    returning l.id::text`)
  await enqueue(tx, [lookJob({ id, priority })])
  return id
}

const sameRow = z.object({ id: z.string(), runs: z.number(), answers: z.boolean() })

/** The look at this pair on this day, and whether it still answers: a retryable failure does for a short time only. */
function findSame(tx: Tx, addressKey: Buffer, pairHash: Buffer) {
  return tx.maybeOne(sql.type(sameRow)`
    select id::text, runs,
           state = 'pending'
           or state <> 'expired' and changed_at > now() - interval '1 second'
              * case when (error ->> 'retryable')::boolean then ${PAUSE_SECONDS}::int else ${KEEP_SECONDS}::int end answers
    from looks
    where address_key = ${sql.binary(addressKey)} and day = (now() at time zone 'utc')::date
      and pair_hash = ${sql.binary(pairHash)}`)
}

/** An IPv6 /48 may have as many looks as this many of its /64s. */
const NETWORK_SHARE = 5

const countRow = z.object({ own: z.number(), network: z.number(), all: z.number() })

async function requireCount(
  tx: Tx,
  { addressKey, networkKey }: NonNullable<LookRequest['caller']>,
  bounds: TrySettings,
) {
  const today = await tx.one(sql.type(countRow)`
    select count(*) filter (where address_key = ${sql.binary(addressKey)}) own,
           count(*) filter (where network_key = ${sql.binary(networkKey)}) network, count(*) "all"
    from looks where day = (now() at time zone 'utc')::date and address_key <> ${sql.binary(SHARED)}`)
  const { perAddress, perDay } = bounds
  if (today.own >= perAddress)
    throw refuseToday(`An internet address such as yours can try ${looksInWords(perAddress)} a day (UTC).`)
  if (today.network >= NETWORK_SHARE * perAddress)
    throw refuseToday(`A network can try ${looksInWords(NETWORK_SHARE * perAddress)} a day (UTC).`)
  if (today.all >= shareOf(perDay, today.network + 1))
    throw refuseToday(`All callers together can try ${looksInWords(perDay)} a day (UTC).`)
}

function measurePending(tx: Tx, addressKey: Buffer): Promise<FreeWork> {
  return tx.one(sql.type(z.object({ n: z.number(), seconds: z.number() }))`
    select count(*) n, coalesce(extract(epoch from avg(now() - changed_at)), 0)::float8 seconds
    from looks where address_key = ${sql.binary(addressKey)} and state = 'pending'`)
}

const looksInWords = (count: number) => (count === 1 ? 'one page and claim' : `${count} pages and claims`)
