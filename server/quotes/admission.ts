// Admission of a quote check: finds the check that answers the same body already, or makes one with its job, within the limits of
// the account and of the page's domain.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { lockAccount } from '../accounts/account.ts'
import { dailyLimit, LIMITS, PUBLIC_LIMITS, type Tier } from '../accounts/tiers.ts'
import { enqueue } from '../db/jobs.ts'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { canonicalJson, sha256 } from '../receipts/format.ts'
import { checkJob, countPagesToday, PAUSE_SECONDS, type QuoteCheckInput } from './quote-check.ts'

/** The priority of the first check in flight of an account: later than verifications, which are paid. */
const FIRST_PRIORITY = 10

export interface CheckRequest {
  account: { accountId: string; tier: Tier }
  input: QuoteCheckInput
  /** Registrable domain of the page. */
  domain: string
}

/**
 * Answers the id of the check. Throws AppError `daily_limit` and `rate_limited`, both with Retry-After; limits do not apply
 * to a body that has been checked already.
 */
export async function admitCheck(tx: Tx, { account, input, domain }: CheckRequest): Promise<string> {
  const { accountId, tier } = account
  const bodyHash = Buffer.from(sha256(canonicalJson(input)), 'hex')
  // Two calls of one account at the same time could otherwise both be the last that a limit allows.
  await lockAccount(tx, accountId)
  const known = await findSame(tx, accountId, bodyHash)
  if (known !== null) return known
  const inFlight = await measurePending(tx, accountId)
  if (inFlight.n >= LIMITS[tier].quote_checks_in_flight)
    throw tooMany(`quote_checks_in_flight: the ${tier} tier has ${LIMITS[tier].quote_checks_in_flight}.`, inFlight)
  await requireRoomIn(tx, domain)
  if ((await countPagesToday(tx, accountId)) >= LIMITS[tier].quote_check_pages_per_day)
    throw dailyLimit('quote_check_pages_per_day', tier)
  return insertCheck(tx, { accountId, bodyHash, input, domain, priority: FIRST_PRIORITY + inFlight.n })
}

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
type Pending = z.output<typeof pendingRow>

/** How many checks of the account are pending, and their mean age in seconds. */
function measurePending(tx: Tx, accountId: string): Promise<Pending> {
  return tx.one(sql.type(pendingRow)`
    select count(*) n, coalesce(extract(epoch from avg(now() - changed_at)), 0)::float8 seconds
    from quote_checks where account_id = ${accountId} and state = 'pending'`)
}

/**
 * Counts the work on pages of the domain, verifications included, under the lock under which verifications are admitted (see
 * `count_in_flight` in sql/). The limit on verifications does not count checks, so free work never causes the refusal of
 * paid work.
 */
async function requireRoomIn(tx: Tx, domain: string): Promise<void> {
  const most = PUBLIC_LIMITS.in_flight_per_domain
  await tx.query(sql.type(nothing)`select from pg_advisory_xact_lock(hashtextextended(${`domain ${domain}`}, 8402))`)
  const inFlight = await tx.one(sql.type(pendingRow)`
    select count(*) n, coalesce(extract(epoch from avg(now() - since)), 0)::float8 seconds
    from (select accepted_at since from verification_requests
          where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and domain = ${domain}
          union all
          select changed_at from quote_checks where state = 'pending' and domain = ${domain}) work`)
  if (inFlight.n >= most) throw tooMany(`The limit of a domain is ${most} pages in flight.`, inFlight)
}

const MAX_RETRY_AFTER = 60

/**
 * Checks in flight have on average run for as long as they will still run, so the first of n ends after an n-th of
 * their mean age.
 */
function tooMany(message: string, { n, seconds }: Pending): AppError {
  const retryAfter = Math.min(MAX_RETRY_AFTER, Math.max(1, Math.ceil(seconds / n)))
  return new AppError('rate_limited', message, { headers: { 'retry-after': String(retryAfter) } })
}

interface NewCheck {
  accountId: string
  bodyHash: Buffer
  input: QuoteCheckInput
  domain: string
  priority: number
}

/** Stores the check, its job and its count. A row of the same body that failed or expired becomes pending again. */
async function insertCheck(tx: Tx, { accountId, bodyHash, input, domain, priority }: NewCheck): Promise<string> {
  const id = await tx.oneFirst(sql.type(idRow)`
    insert into quote_checks as c (id, account_id, body_hash, body, domain, priority, counted_on)
    values (${randomUUID()}, ${accountId}, ${sql.binary(bodyHash)}, ${JSON.stringify(input)}::json, ${domain}, ${priority},
            (now() at time zone 'utc')::date)
    on conflict (account_id, body_hash) do update
    set state = 'pending', result = null, error = null, waiting = null, attempt = null, expires_at = null, begun = false,
        domain = excluded.domain, priority = excluded.priority, counted_on = excluded.counted_on,
        created_at = now(), changed_at = now()
    returning c.id::text`)
  await tx.query(sql.type(nothing)`
    insert into quote_check_days as d (account_id, day, pages) values (${accountId}, (now() at time zone 'utc')::date, 1)
    on conflict (account_id, day) do update set pages = d.pages + 1`)
  await enqueue(tx, [checkJob({ id, priority })])
  return id
}
