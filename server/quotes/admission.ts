// Admission of a quote check: finds the check that answers the same body already, or makes one with its job, within the limits of
// the account and of the page's domain.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { lockAccount } from '../accounts/account.ts'
import { shareOf } from '../accounts/shared-budget.ts'
import { ADDRESS_LIMITS, dailyLimit, LIMITS, refuseToday, type Tier } from '../accounts/tiers.ts'
import { enqueue } from '../db/jobs.ts'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { type FreeWork, requireRoomIn, tooManyAtATime } from '../free-work/limits.ts'
import { canonicalJson, sha256 } from '../receipts/format.ts'
import { checkJob, countPagesToday, PAUSE_SECONDS, type QuoteCheckInput } from './quote-check.ts'

/** The priority of the first check in flight of an account: later than verifications, which are paid. */
const FIRST_PRIORITY = 10

export interface CheckRequest {
  /** An account; or an address, with the id under which its network is counted. */
  owner: { id: string; tier: Tier } | { id: string; tier: null; networkId: string }
  input: QuoteCheckInput
  /** Registrable domain of the page. */
  domain: string
}

/**
 * Answers the id of the check. Throws AppError `daily_limit` and `rate_limited`, both with Retry-After; limits do not apply
 * to a body that has been checked already.
 */
export async function admitCheck(tx: Tx, { owner, input, domain }: CheckRequest): Promise<string> {
  const { id: accountId, tier } = owner
  const limits = tier ? LIMITS[tier] : ADDRESS_LIMITS
  const whose = tier ? `the ${tier} tier` : 'an address'
  const bodyHash = Buffer.from(sha256(canonicalJson(input)), 'hex')
  // Two calls of one owner at the same time could otherwise both be the last that a limit allows.
  if (tier) await lockAccount(tx, accountId)
  else await tx.query(sql.type(nothing)`select from pg_advisory_xact_lock(hashtextextended(${accountId}, 8403))`)
  const known = await findSame(tx, accountId, bodyHash)
  if (known !== null) return known
  const inFlight = await measurePending(tx, accountId)
  if (inFlight.n >= limits.quote_checks_in_flight)
    throw tooManyAtATime(`quote_checks_in_flight: ${whose} has ${limits.quote_checks_in_flight}.`, inFlight)
  await requireRoomIn(tx, domain)
  if ((await countPagesToday(tx, accountId)) >= limits.quote_check_pages_per_day) {
    if (tier) throw dailyLimit('quote_check_pages_per_day', tier)
    throw refuseToday(`${whose} can have ${limits.quote_check_pages_per_day} pages read a day (UTC).`)
  }
  if (owner.tier === null) await countForAddresses(tx, owner.networkId)
  const keepsText = tier === null
  return insertCheck(tx, { accountId, bodyHash, input, domain, priority: FIRST_PRIORITY + inFlight.n, keepsText })
}

/** The id under which the pages of all addresses are counted together. */
const ALL_ADDRESSES = '00000000-0000-8000-8000-000000000000'

/** Bounds what callers without an account can have read and stored, from however many addresses of a network or of all they call. */
async function countForAddresses(tx: Tx, networkId: string): Promise<void> {
  const { quote_check_pages_per_network_per_day: ofOne, all_quote_check_pages_per_day: most } = ADDRESS_LIMITS
  const ofNetwork = await countToday(tx, networkId)
  if (ofNetwork > ofOne) throw refuseToday(`A network can have ${ofOne} pages read a day (UTC).`)
  // Last, because everyone's row is locked until the transaction ends.
  if ((await countToday(tx, ALL_ADDRESSES)) > shareOf(most, ofNetwork))
    throw refuseToday(`${most} pages a day (UTC) are read for callers without an account; register one for more.`)
}

/** Counts a page, or whatever else the id stands for, and answers the count of today with it. */
export const countToday = (tx: Tx, id: string): Promise<number> =>
  tx.oneFirst(sql.type(z.object({ pages: z.number() }))`
    insert into quote_check_days as d (account_id, day, pages) values (${id}, (now() at time zone 'utc')::date, 1)
    on conflict (account_id, day) do update set pages = d.pages + 1
    returning pages`)

const idRow = z.object({ id: z.string() })

/** The check that answers this body. A retryable failure answers it for a short time only. */
function findSame(tx: Tx, accountId: string, bodyHash: Buffer): Promise<string | null> {
  return tx.maybeOneFirst(sql.type(idRow)`
    select id::text from quote_checks
    where account_id = ${accountId} and body_hash = ${sql.binary(bodyHash)} and coalesce(expires_at > now(), true)
      and (state <> 'failed' or not (error ->> 'retryable')::boolean
           or changed_at > now() - ${PAUSE_SECONDS} * interval '1 second')`)
}

const pendingRow = z.object({ n: z.number(), seconds: z.number() })

/** How many checks of the account are pending, and their mean age in seconds. */
function measurePending(tx: Tx, accountId: string): Promise<FreeWork> {
  return tx.one(sql.type(pendingRow)`
    select count(*) n, coalesce(extract(epoch from avg(now() - changed_at)), 0)::float8 seconds
    from quote_checks where account_id = ${accountId} and state = 'pending'`)
}

interface NewCheck {
  accountId: string
  bodyHash: Buffer
  input: QuoteCheckInput
  domain: string
  priority: number
  /** Keeps the text of the page with the answer. */
  keepsText: boolean
}

/** Stores the check, its job and its count. A row of the same body that failed or expired becomes pending again. */
async function insertCheck(tx: Tx, check: NewCheck): Promise<string> {
  const { accountId, bodyHash, input, domain, priority, keepsText } = check
  const id = await tx.oneFirst(sql.type(idRow)`
    insert into quote_checks as c (id, account_id, body_hash, body, domain, priority, keeps_text, counted_on)
    values (${randomUUID()}, ${accountId}, ${sql.binary(bodyHash)}, ${JSON.stringify(input)}::json, ${domain}, ${priority},
            ${keepsText}, (now() at time zone 'utc')::date)
    on conflict (account_id, body_hash) do update
    set state = 'pending', result = null, error = null, waiting = null, attempt = null, expires_at = null, begun = false, page_text = null,
        domain = excluded.domain, priority = excluded.priority, counted_on = excluded.counted_on,
        created_at = now(), changed_at = now()
    returning c.id::text`)
  await countToday(tx, accountId)
  await enqueue(tx, [checkJob({ id, priority })])
  return id
}
