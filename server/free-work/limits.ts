// The limits that quote checks and free looks share: how much work on the pages of one domain may be in flight, and when a caller
// who has too much in flight may come again.
import { z } from 'zod'
import { PUBLIC_LIMITS } from '../accounts/tiers.ts'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { MAX_RETRY_AFTER_SECONDS } from '../verification/admission/in-flight-limits.ts'

/** Work in flight: how much, and its mean age in seconds. */
export interface FreeWork {
  n: number
  seconds: number
}

/**
 * Counts the work on pages of the domain, verifications included, under the lock under which verifications are admitted (see
 * `count_in_flight` in sql/). The limit on verifications does not count free work, so that never causes the refusal of paid
 * work. Throws AppError `rate_limited`.
 */
export async function requireRoomIn(tx: Tx, domain: string): Promise<void> {
  const most = PUBLIC_LIMITS.in_flight_per_domain
  await tx.query(sql.type(nothing)`select from pg_advisory_xact_lock(hashtextextended(${`domain ${domain}`}, 8402))`)
  const inFlight = await tx.one(sql.type(z.object({ n: z.number(), seconds: z.number() }))`
    select count(*) n, coalesce(extract(epoch from avg(now() - since)), 0)::float8 seconds
    from (select accepted_at since from verification_requests
          where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and domain = ${domain}
          union all
          select changed_at from quote_checks where state = 'pending' and domain = ${domain}
          union all
          select changed_at from looks where state = 'pending' and domain = ${domain}) work`)
  if (inFlight.n >= most) throw tooManyAtATime(`The limit of a domain is ${most} pages in flight.`, inFlight)
}

/**
 * The error for a caller with too much in flight. That work has on average run for as long as it will still run, so the first
 * of n ends after an n-th of its mean age.
 */
export function tooManyAtATime(message: string, { n, seconds }: FreeWork): AppError {
  const retryAfter = Math.min(MAX_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(seconds / n)))
  return new AppError('rate_limited', message, { headers: { 'retry-after': String(retryAfter) } })
}
