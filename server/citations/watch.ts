// The record of citation watches: a quote that a verification found on a page, and when the page is checked for it again.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { ownName } from '../accounts/own-names.ts'
import { WEBHOOK_STATES } from '../alerts/webhooks.ts'
import { enqueue } from '../db/jobs.ts'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { utcMilliseconds } from '../db/time.ts'
import { AppError } from '../errors.ts'
import { sha256Hex, timestamp } from '../interface/scalars.ts'

export const MIN_EVERY_HOURS = 1
export const MAX_EVERY_HOURS = 720

export const watchName = ownName.describe('Name of the citation watch.')

export const CITATION_STATES = ['present', 'changed', 'vanished'] as const
export type CitationState = (typeof CITATION_STATES)[number]

/** A page that could be read, as one check saw it. */
const observed = z.strictObject({ checked_at: timestamp, content_sha256: sha256Hex, text_sha256: sha256Hex })

/** Where a passage is in the text, in code points. */
const place = { start: z.int().min(0), end: z.int().min(1) }

/** A check that found the quote. */
export const sighting = observed.extend(place)
export type Sighting = z.output<typeof sighting>

/** The passage that is most similar to a quote that is no longer on the page. */
const nearest = z.strictObject({
  quote: z.string(),
  quote_sha256: sha256Hex,
  ...place,
  similarity: z.number().min(0).max(1).describe('Similarity of the words and their order; 1 if equal.'),
})

/** The outcome of a check. `unreadable`: the page could not be read, so nothing is known of the quote. */
export const check = z.discriminatedUnion('outcome', [
  sighting.extend({ outcome: z.literal('present') }),
  observed.extend({ outcome: z.literal('changed'), nearest }),
  observed.extend({ outcome: z.literal('vanished') }),
  z.strictObject({ outcome: z.literal('unreadable'), checked_at: timestamp, code: z.string(), message: z.string() }),
])
export type Check = z.output<typeof check>

/** A check and its consequences. */
export interface CheckResult {
  check: Check
  /** Checks in a row, this one included, in which the page could not be read. */
  failures: number
  /** Seconds until the next check. */
  nextInSeconds: number
}

const watchRow = z.object({
  id: z.string(),
  account_id: z.string(),
  name: z.string(),
  webhook_id: z.string(),
  webhook_url: z.string(),
  webhook_state: z.enum(WEBHOOK_STATES),
  secret_version: z.number(),
  request_id: z.string(),
  evidence_id: z.string(),
  source_url: z.string(),
  quote: z.string(),
  every_hours: z.number(),
  state: z.enum(CITATION_STATES),
  last_seen: sighting,
  last_check: check.nullable(),
  failures: z.number(),
  next_check_at: z.string(),
  due: z.boolean(),
  event_seq: z.number(),
  created_at: z.string(),
})
export type CitationWatch = z.output<typeof watchRow>

const watches = sql.fragment`
  select c.id::text, c.account_id::text, c.name, c.webhook_id::text, w.url webhook_url, w.state webhook_state,
         w.secret_version, c.request_id::text, c.evidence_id, c.source_url, c.quote, c.every_hours, c.state, c.last_seen,
         c.last_check, c.failures, ${utcMilliseconds(sql.fragment`c.check_at`)} next_check_at, c.check_at <= now() due,
         c.event_seq, ${utcMilliseconds(sql.fragment`c.created_at`)} created_at
  from citation_watches c join webhooks w on w.id = c.webhook_id`

/** Throws AppError `not_found`, also for a watch of another account. */
export async function findWatch(tx: Tx, accountId: string, name: string): Promise<CitationWatch> {
  return (await seekWatch(tx, accountId, name)) ?? missing()
}

export function seekWatch(tx: Tx, accountId: string, name: string): Promise<CitationWatch | null> {
  return tx.maybeOne(sql.type(watchRow)`${watches} where c.account_id = ${accountId} and c.name = ${name}`)
}

function missing(): never {
  throw new AppError('not_found', 'This account has no such citation watch.')
}

export function findWatchById(db: Database, id: string): Promise<CitationWatch | null> {
  return db.maybeOne(sql.prepared('find_citation_watch', watchRow)`${watches} where c.id = ${id}`)
}

/** Of one account, by name. */
export function findWatches(tx: Tx, accountId: string) {
  return tx.any(sql.type(watchRow)`${watches} where c.account_id = ${accountId} order by c.name collate "C"`)
}

export function countWatches(tx: Tx, accountId: string): Promise<number> {
  return tx.oneFirst(sql.type(z.object({ n: z.number() }))`
    select count(*) n from citation_watches where account_id = ${accountId}`)
}

/** The quote that is watched: a piece of evidence of a completed verification. */
export interface Citation {
  requestId: string
  evidenceId: string
  sourceUrl: string
  quote: string
  seen: Sighting
}

/** Makes the watch. Its first check follows after `everyHours`, because the verification itself found the quote. */
export async function insertWatch(
  tx: Tx,
  watch: { accountId: string; name: string; webhookId: string; everyHours: number; citation: Citation },
): Promise<void> {
  const { accountId, name, webhookId, everyHours, citation } = watch
  const id = randomUUID()
  await tx.query(sql.type(nothing)`
    insert into citation_watches
      (id, account_id, name, webhook_id, request_id, evidence_id, source_url, quote, every_hours, last_seen, check_at)
    values (${id}, ${accountId}, ${name}, ${webhookId}, ${citation.requestId}, ${citation.evidenceId},
            ${citation.sourceUrl}, ${citation.quote}, ${everyHours}, ${sql.jsonb(citation.seen)},
            now() + ${everyHours} * interval '1 hour')`)
}

/** Changes the interval and, if given, the quote. Another quote starts without the checks of the old one. */
export async function updateWatch(
  tx: Tx,
  { id, request_id, evidence_id }: CitationWatch,
  { everyHours, citation }: { everyHours: number; citation: Citation | null },
): Promise<void> {
  // This can make the next check earlier, never later.
  await tx.query(sql.type(nothing)`
    update citation_watches
    set every_hours = ${everyHours}, check_at = least(check_at, now() + ${everyHours} * interval '1 hour')
    where id = ${id}`)
  const other = citation && (citation.requestId !== request_id || citation.evidenceId !== evidence_id)
  if (other)
    await tx.query(sql.type(nothing)`
      update citation_watches
      set request_id = ${citation.requestId}, evidence_id = ${citation.evidenceId}, source_url = ${citation.sourceUrl},
          quote = ${citation.quote}, last_seen = ${sql.jsonb(citation.seen)}, state = 'present', last_check = null,
          failures = 0, check_at = now() + ${everyHours} * interval '1 hour'
      where id = ${id}`)
}

export async function deleteWatch(tx: Tx, id: string): Promise<void> {
  await tx.query(sql.type(nothing)`delete from citation_watches where id = ${id}`)
}

/** Makes the check due `spacingSeconds` after the last one, if that is earlier than planned, and adds its job. */
export async function hastenCheck(tx: Tx, id: string, spacingSeconds: number): Promise<void> {
  await tx.query(sql.type(nothing)`
    update citation_watches
    set check_at = least(check_at, greatest(now(), coalesce((last_check->>'checked_at')::timestamptz, created_at)
                                                   + ${spacingSeconds} * interval '1 second'))
    where id = ${id}`)
  await wakeWatches(tx, [id])
}

/** Records a check without an alert. Writes nothing when an alert or another quote came in between. */
export async function noteCheck(
  tx: Tx,
  watch: Pick<CitationWatch, 'id' | 'event_seq' | 'request_id' | 'evidence_id'>,
  result: CheckResult,
): Promise<void> {
  const seen = sightingIn(result.check)
  await tx.query(sql.type(nothing)`
    update citation_watches
    set last_check = ${sql.jsonb(result.check)}, failures = ${result.failures},
        ${seen ? sql.fragment`last_seen = ${sql.jsonb(seen)},` : sql.fragment``}
        check_at = now() + ${result.nextInSeconds} * interval '1 second'
    where id = ${watch.id} and event_seq = ${watch.event_seq} and request_id = ${watch.request_id}
      and evidence_id = ${watch.evidence_id}`)
}

/** Puts off a check that could not be made. */
export async function postponeCheck(tx: Tx, id: string, seconds: number): Promise<void> {
  await tx.query(sql.type(nothing)`
    update citation_watches set check_at = now() + ${seconds} * interval '1 second' where id = ${id}`)
}

/** The sighting in a check that found the quote; null for other checks. */
export function sightingIn(found: Check): Sighting | null {
  if (found.outcome !== 'present') return null
  const { outcome: _, ...seen } = found
  return seen
}

const MAX_DUE = 1000

/**
 * Adds a job for every watch that is due. The row says when a check is due and the job only wakes it, so a lost or exhausted
 * job is replaced a minute later.
 */
export async function wakeDueWatches(tx: Tx): Promise<void> {
  const due = await tx.anyFirst(sql.type(z.object({ id: z.string() }))`
    select id::text from citation_watches where check_at <= now() order by check_at limit ${MAX_DUE}`)
  await wakeWatches(tx, due)
}

/** Lower than that of verifications, which are paid. */
const PRIORITY = 10

/** The job that checks one watch. */
export function watchJob(id: string) {
  const payload = { watch_id: id }
  return { name: 'check_citation' as const, payload, key: `citation:${id}`, priority: PRIORITY, maxAttempts: 3 }
}

async function wakeWatches(tx: Tx, ids: readonly string[]): Promise<void> {
  await enqueue(tx, ids.map(watchJob))
}
