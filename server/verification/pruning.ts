// Forgets what has run out: quotes nobody paid, results past their retention, payments that charged nothing and their requests,
// payers who never settled anything. Keeps on until nothing is left, so that a flood is worked off; how far behind it is can be
// measured.
import { z } from 'zod'
import { type Database, nothing, sql } from '../db/pool.ts'
import { pruneLedger, UNCHARGED_DAYS } from '../payments/ledger.ts'

/** How long a quote that was not paid answers 410, from its expiry on. Then its key is free. */
const EXPIRED_QUOTE_SECONDS = 3600
/** How long the standing of a payer without any settlement is kept after its last change. */
const UNSETTLED_PAYER_SECONDS = 86_400
/** Rows of one statement: short enough that nobody waits long for a row. */
const CHUNK = 1000
/** It is started once a minute, and this long is left to it. */
const MAX_RUN_MS = 45_000

/**
 * Prunes until nothing is left or its time is over. A crash in between loses nothing: each statement stands for itself.
 * @param retentionSeconds of results and failures, from their completion
 * @param options `signal` ends it early; `maxRunMs` is the longest time after which it begins no further statement
 * @returns rows changed or deleted
 */
export async function pruneRequests(
  db: Database,
  retentionSeconds: number,
  { signal, maxRunMs = MAX_RUN_MS }: { signal?: AbortSignal | undefined; maxRunMs?: number } = {},
): Promise<number> {
  const ends = performance.now() + maxRunMs
  const steps = [
    expireQuotes,
    deleteQuotes,
    (db: Database) => forgetResults(db, retentionSeconds),
    (db: Database) => pruneLedger(db, CHUNK),
    deleteUncharged,
    forgetPayers,
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

/** What is left answers 410. A payment that did not settle bought nothing: what ran out is the quote. */
async function expireQuotes(db: Database): Promise<number> {
  const expired = await db.query(sql.type(nothing)`
    update verification_requests
    set state = 'expired', payment = null, payer = null, body = null, observation = null, assessment = null, address_key = null
    where id in (
      select id from verification_requests
      where state in ('quoted', 'unpaid') and body is not null and quote_expires_at < now()
      order by quote_expires_at limit ${CHUNK} for update skip locked)`)
  return expired.rowCount
}

/** Those that a payment was ever bound to stay for as long as the ledger names them. */
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

/** What is left answers 410, or the same 422 again. */
async function forgetResults(db: Database, retentionSeconds: number): Promise<number> {
  const forgotten = await db.query(sql.type(nothing)`
    update verification_requests
    set state = case when state = 'failed' then state else 'expired' end,
        body = null, result = null, settlement_header = null, settlement = null, address_key = null
    where id in (
      select id from verification_requests
      where state in ('completed', 'failed') and body is not null
        and changed_at < now() - ${retentionSeconds} * interval '1 second'
      order by changed_at limit ${CHUNK} for update skip locked)`)
  return forgotten.rowCount
}

/**
 * Of a row `r` that failed, or was proved unpaid: its columns say that nothing was charged, its contents are gone, and no entry
 * of the ledger names it.
 */
const goesUncharged = sql.fragment`r.body is null
  and (r.state = 'failed' or r.state = 'expired' and r.payment is null and r.settlement_intent is not null)
  and r.changed_at < now() - ${UNCHARGED_DAYS} * interval '1 day'
  and not exists (select 1 from payment_ledger where request_id = r.id)
  and not exists (select 1 from payment_claims where request_id = r.id)`

/** Afterwards their keys are free. What was charged is never deleted. */
async function deleteUncharged(db: Database): Promise<number> {
  const deleted = await db.query(sql.type(nothing)`
    delete from verification_requests
    where id in (
      select id from verification_requests r where ${goesUncharged}
      order by changed_at limit ${CHUNK} for update of r skip locked)`)
  return deleted.rowCount
}

async function forgetPayers(db: Database): Promise<number> {
  const forgotten = await db.query(sql.type(nothing)`
    delete from payers
    where payer in (
      select payer from payers
      where settled = 0 and changed_at < now() - ${UNSETTLED_PAYER_SECONDS} * interval '1 second'
      order by changed_at limit ${CHUNK} for update skip locked)`)
  return forgotten.rowCount
}

/** Seconds by which the row that is longest due for pruning is overdue; 0 when none is due. */
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
