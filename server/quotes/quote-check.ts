// The record of a quote check: its body, its answer, its states and its SQL.
//
//   pending ──► completed
//     │  ▲
//     ▼  │ (same body again, if retryable, or after the expiry)
//    failed
//
// A pending check has a job. A crash at any time leaves it pending, and its job, or the sweep, begins it again: it has no effect
// outside its own row.
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { z } from 'zod'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import type { AppError } from '../errors.ts'
import type { Held } from '../free-work/jobs.ts'
import { MAX_QUOTE_CHARS } from '../interface/limits.ts'
import { verificationInput } from '../interface/result.ts'
import { sha256Hex, text, timestamp } from '../interface/scalars.ts'
import { type Waiting, waiting } from '../verification/request.ts'

export const MAX_QUOTES = 20
/** Seconds for which an answer or a failure is kept. */
export const KEEP_SECONDS = 86_400
/** Seconds after a retryable failure in which the same body gets the same failure, so that a caller who polls sees it. */
export const PAUSE_SECONDS = 60

export const quoteCheckInput = z.strictObject({
  source_url: verificationInput.shape.source_url,
  quotes: z
    .array(text(1, MAX_QUOTE_CHARS))
    .min(1)
    .max(MAX_QUOTES)
    .describe('Searched in the text that the page shows.'),
})
export type QuoteCheckInput = z.output<typeof quoteCheckInput>

const offsets = (what: string) => ({
  start: z.int().min(0).nullable().describe(`Code point at which ${what} begins in the text of the page.`),
  end: z.int().min(1).nullable().describe('Code point after its last one.'),
})

const nearest = z.strictObject({
  text: z.string(),
  start: z.int().min(0),
  end: z.int().min(1),
  similarity: z.number().min(0).max(1).describe('Similarity of the words and their order to the quote; 1 if equal.'),
})

export const quoteCheckResult = z.strictObject({
  source: z.strictObject({
    requested_url: z.string(),
    final_url: z.string(),
    content_sha256: sha256Hex,
    text_sha256: sha256Hex.describe('Of the text in UTF-8 to which the offsets refer.'),
    checked_at: timestamp.describe('When the page was read.'),
  }),
  quotes: z
    .array(
      z.strictObject({
        quote: z.string(),
        match: z
          .enum(['exact', 'typographic', 'near', 'absent'])
          .describe(
            'exact: the text has the quote. typographic: it has the quote, except for white space, quotation marks, dashes, case and ' +
              'the composition of characters. near: it has a similar passage, in nearest. absent: none of these.',
          ),
        ...offsets('an exact or typographic match'),
        quote_sha256: sha256Hex.describe('Of the quote as it was submitted.'),
        fragment_url: z.string().nullable().describe('Link to the match or to nearest, by a text fragment.'),
        nearest: nearest.nullable(),
      }),
    )
    .describe('In the order of the request.'),
})
export type QuoteCheckResult = z.output<typeof quoteCheckResult>

export const pendingQuoteCheck = z.strictObject({
  check_id: z.uuid(),
  status: z.literal('pending'),
  message: z.string().describe('What the check waits for.'),
})

const checkError = z.object({ code: z.string(), message: z.string(), retryable: z.boolean() })

const checkView = z.object({
  id: z.uuid(),
  state: z.enum(['pending', 'completed', 'failed']),
  result: z.instanceof(Buffer).nullable(),
  error: checkError.nullable(),
  waiting: waiting.nullable(),
  /** Seconds until the same body is checked anew after a retryable failure. */
  pause: z.number(),
})
export type CheckView = z.output<typeof checkView>

/** Null also for a check of another account. */
export function findCheck(db: Database, accountId: string, id: string): Promise<CheckView | null> {
  return db.maybeOne(sql.prepared('find_quote_check', checkView)`
    select id, state, result, error, waiting,
           extract(epoch from changed_at - now() + ${PAUSE_SECONDS} * interval '1 second')::float8 pause
    from quote_checks where id = ${id} and account_id = ${accountId} and coalesce(expires_at > now(), true)`)
}

/** A check as its worker holds it. `attempt` is the token with which this worker may commit. */
const workingCheck = z.object({
  id: z.uuid(),
  attempt: z.uuid(),
  account_id: z.uuid(),
  body: quoteCheckInput,
  priority: z.number(),
  created_at: z.date(),
  begun: z.boolean(),
  keeps_text: z.boolean(),
})
export type WorkingCheck = z.output<typeof workingCheck>

/** Takes the check for one attempt; an earlier attempt can commit nothing from here on. Null when no work is left. */
export function claimCheck(db: Database, id: string, attempt: string): Promise<WorkingCheck | null> {
  return db.maybeOne(sql.prepared('claim_quote_check', workingCheck)`
    update quote_checks set attempt = ${attempt}, waiting = null where id = ${id} and state = 'pending'
    returning id, attempt, account_id, body, priority, created_at, begun, keeps_text`)
}

/** Whether this attempt still holds the check. If so, no other attempt can take it before the transaction ends. */
export function holdsCheck(tx: Tx, check: Held): Promise<boolean> {
  return tx.exists(sql.type(z.object({ held: z.number() }))`
    select 1 held from quote_checks where id = ${check.id} and attempt = ${check.attempt} and state = 'pending' for update`)
}

/** Writes nothing, and answers false, if another attempt has taken the check. @param pageText of the page, kept for some checks */
export async function completeCheck(
  db: Database,
  check: WorkingCheck,
  result: QuoteCheckResult,
  pageText: string,
): Promise<boolean> {
  const kept = check.keeps_text ? sql.binary(await deflate(pageText)) : null
  const bytes = Buffer.from(JSON.stringify(quoteCheckResult.parse(result)))
  const { rowCount } = await db.query(sql.prepared('complete_quote_check', nothing)`
    update quote_checks
    set state = 'completed', result = ${sql.binary(bytes)}, page_text = ${kept}, attempt = null, waiting = null, changed_at = now(),
        expires_at = now() + ${KEEP_SECONDS} * interval '1 second'
    where id = ${check.id} and attempt = ${check.attempt} and state = 'pending'`)
  return rowCount === 1
}

const deflate = promisify<string, Buffer>(gzip)
const inflate = promisify<Buffer, Buffer>(gunzip)

/** The text of the page that a check read. Null for a check that is not kept, or keeps no text. */
export async function findPageText(db: Database, id: string): Promise<string | null> {
  const kept = await db.maybeOneFirst(sql.type(z.object({ page_text: z.instanceof(Buffer).nullable() }))`
    select page_text from quote_checks where id = ${id} and state = 'completed' and expires_at > now()`)
  return kept && (await inflate(kept)).toString()
}

/**
 * Writes nothing, and answers false, if another attempt has taken the check. @param counts whether the page counts
 * against the daily limit: false if its reading never began
 */
export async function failCheck(
  tx: Tx,
  check: Held,
  { code, message, retryable }: AppError,
  { counts }: { counts: boolean },
): Promise<boolean> {
  if (!(await holdsCheck(tx, check))) return false
  const error = JSON.stringify({ code, message, retryable })
  if (!counts)
    await tx.query(sql.type(nothing)`
      update quote_check_days d set pages = d.pages - 1
      from quote_checks c where c.id = ${check.id} and d.account_id = c.account_id and d.day = c.counted_on and d.pages > 0`)
  await tx.query(sql.type(nothing)`
    update quote_checks
    set state = 'failed', error = ${error}::json, attempt = null, waiting = null, changed_at = now(),
        counted_on = case when ${counts} then counted_on end,
        expires_at = now() + ${KEEP_SECONDS} * interval '1 second'
    where id = ${check.id}`)
  return true
}

/** Records what a check waits for. `begun`: a request was sent to the host. */
export async function storeWait(tx: Tx, { id }: Held, wait: Waiting, begun: boolean): Promise<void> {
  await tx.query(sql.type(nothing)`
    update quote_checks set waiting = ${JSON.stringify(wait)}::json, begun = begun or ${begun} where id = ${id}`)
}

/** The job of a check. */
export function checkJob({ id, priority }: { id: string; priority: number }) {
  const payload = { check_id: id }
  return { name: 'check_quotes' as const, payload, key: `quotes:${id}`, priority, maxAttempts: MAX_ATTEMPTS }
}

const MAX_ATTEMPTS = 3

/** Checks of the account that are not finished. */
export function countPending(tx: Tx, accountId: string): Promise<number> {
  return tx.oneFirst(sql.type(z.object({ n: z.number() }))`
    select count(*) n from quote_checks where account_id = ${accountId} and state = 'pending'`)
}

/** Pages that the account's checks have begun on this UTC day. */
export async function countPagesToday(tx: Tx, accountId: string): Promise<number> {
  const pages = await tx.maybeOneFirst(sql.type(z.object({ pages: z.number() }))`
    select pages from quote_check_days where account_id = ${accountId} and day = (now() at time zone 'utc')::date`)
  return pages ?? 0
}
