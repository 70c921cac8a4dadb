// Pruning: deletes unpaid quotes after their expiry, results past their retention with their captures, payments that charged
// nothing with their requests, and payers without a settlement. A run ends only when nothing is due, so that it catches up after a burst; its
// lag can be measured.
import { z } from 'zod'
import { type Database, nothing, sql } from '../db/pool.ts'
import { dropCaptures, dropWithResults } from '../evidence/pruning.ts'
import { pruneLedger, UNCHARGED_DAYS } from '../payments/ledger.ts'

/**
 * Seconds from the expiry of an unpaid quote in which it answers 410. Then its key is free. The messages of `quote_expired` in
 * errors.ts and answer.ts state it in words.
 */
const EXPIRED_QUOTE_SECONDS = 3600
/** Seconds for which the limit of a payer without a settlement is kept after its last change. */
const UNSETTLED_PAYER_SECONDS = 86_400
/** Rows of one statement: few enough that other statements do not wait long for a row. */
const CHUNK = 1000
/** Milliseconds of one run, which starts every minute. */
const MAX_RUN_MS = 45_000

/**
 * Prunes until nothing is due or the time is over. A crash loses nothing: each statement is complete by itself.
 * @param retentionSeconds of results and failures, from their completion
 * @param options `signal` ends it early; `maxRunMs`: no statement is begun after this time; `captureSeconds`: captures are deleted at this
 * age; null: with their results
 * @returns rows changed or deleted
 */
export async function pruneRequests(
  db: Database,
  retentionSeconds: number,
  {
    signal,
    maxRunMs = MAX_RUN_MS,
    captureSeconds = null,
  }: { signal?: AbortSignal | undefined; maxRunMs?: number; captureSeconds?: number | null } = {},
): Promise<number> {
  const ends = performance.now() + maxRunMs
  const steps = [
    expireQuotes,
    deleteQuotes,
    (db: Database) => expireResults(db, retentionSeconds),
    (db: Database) => dropCaptures(db, captureSeconds, CHUNK),
    (db: Database) => pruneLedger(db, CHUNK),
    deleteUncharged,
    deletePayers,
  ]
  let pruned = 0
  for (const step of steps) {
    for (let rows = CHUNK; rows === CHUNK && performance.now() < ends && !signal?.aborted; ) {
      rows = await step(db)
      pruned += rows
    }
  }
  return pruned
}

/** The remaining row answers 410. An unpaid request is an expired quote too: its payment bought nothing. */
async function expireQuotes(db: Database): Promise<number> {
  const expired = await db.query(sql.type(nothing)`
    update verification_requests
    set state = 'expired', payment = null, payer = null, body = null, observation = null, capture_id = null, assessment = null,
        address_key = null, history = null
    where id in (
      select id from verification_requests
      where state in ('quoted', 'unpaid') and body is not null and quote_expires_at < now()
      order by quote_expires_at limit ${CHUNK} for update skip locked)`)
  return expired.rowCount
}

/** Rows that ever had a payment are kept for as long as the ledger refers to them. */
async function deleteQuotes(db: Database): Promise<number> {
  const deleted = await db.query(sql.type(nothing)`
    delete from verification_requests
    where id in (
      select id from verification_requests
      where state = 'expired' and payment is null and settlement_intent is null
        and quote_expires_at < now() - ${EXPIRED_QUOTE_SECONDS} * interval '1 second'
      order by quote_expires_at limit ${CHUNK} for update skip locked)`)
  return deleted.rowCount
}

/** The remaining row answers 410, or the same 422 again. A result and its capture go together, also if the process is killed. */
async function expireResults(db: Database, retentionSeconds: number): Promise<number> {
  const pruned = await db.query(sql.type(nothing)`
    with due as (
      select id, capture_id from verification_requests
      where state in ('completed', 'failed') and body is not null
        and changed_at < now() - ${retentionSeconds} * interval '1 second'
      order by changed_at limit ${CHUNK} for update skip locked
    ), ${dropWithResults}
    update verification_requests r
    set state = case when state = 'failed' then state else 'expired' end,
        body = null, result = null, settlement_header = null, settlement = null, address_key = null, capture_id = null,
        history = case when state = 'failed' then history end
    from due where r.id = due.id`)
  return pruned.rowCount
}

/** A row `r` that failed or was proved unpaid, without contents, and without an entry in the ledger or a claim. */
const goesUncharged = sql.fragment`r.body is null
  and (r.state = 'failed' or r.state = 'expired' and r.payment is null and r.settlement_intent is not null)
  and r.changed_at < now() - ${UNCHARGED_DAYS} * interval '1 day'
  and not exists (select 1 from payment_ledger where request_id = r.id)
  and not exists (select 1 from payment_claims where request_id = r.id)`

/** Deletes such rows, which frees their keys. A charged request is never deleted. */
async function deleteUncharged(db: Database): Promise<number> {
  const deleted = await db.query(sql.type(nothing)`
    delete from verification_requests
    where id in (
      select id from verification_requests r where ${goesUncharged}
      order by changed_at limit ${CHUNK} for update of r skip locked)`)
  return deleted.rowCount
}

async function deletePayers(db: Database): Promise<number> {
  const pruned = await db.query(sql.type(nothing)`
    delete from payers
    where payer in (
      select payer from payers
      where settled = 0 and changed_at < now() - ${UNSETTLED_PAYER_SECONDS} * interval '1 second'
      order by changed_at limit ${CHUNK} for update skip locked)`)
  return pruned.rowCount
}

/** Seconds for which the oldest row has been due for pruning; 0 if none is due. */
export function measurePruneLag(db: Database, retentionSeconds: number): Promise<number> {
  return db.oneFirst(sql.type(z.object({ lag: z.number() }))`
    select greatest(0, extract(epoch from now() - least(
      (select min(quote_expires_at) from verification_requests
       where state in ('quoted', 'unpaid') and body is not null),
      (select min(quote_expires_at) + ${EXPIRED_QUOTE_SECONDS} * interval '1 second' from verification_requests
       where state = 'expired' and payment is null and settlement_intent is null),
      (select min(changed_at) + ${retentionSeconds} * interval '1 second' from verification_requests
       where state in ('completed', 'failed') and body is not null),
      (select changed_at + ${UNCHARGED_DAYS} * interval '1 day' from verification_requests r where ${goesUncharged}
       order by changed_at limit 1),
      (select min(changed_at) + ${UNSETTLED_PAYER_SECONDS} * interval '1 second' from payers where settled = 0)
    )))::float8 lag`)
}
