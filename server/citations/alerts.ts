// The alerts of citation watches: their content, the limit on them, and how they are raised. A change of state is written
// in the transaction of its alert (see alerts/raise.ts), so each change is alerted once. Of two checks that find the same
// change, the second is refused, because the `event_seq` is taken.
import { z } from 'zod'
import type { Alert, AlertType } from '../alerts/format.ts'
import { hasRoom } from '../alerts/outbox.ts'
import { type AlertDraft, composeAlert, raiserOf } from '../alerts/raise.ts'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { sha256 } from '../receipts/format.ts'
import { type CheckResult, type CitationState, type CitationWatch, findWatch, sightingIn } from './watch.ts'

interface CitationDraft extends AlertDraft {
  watch: CitationWatch
  /** The change that is alerted; null for a test alert. */
  change: Change | null
}

interface Change {
  state: CitationState
  result: CheckResult
}

/**
 * Changes of state of one watch that are alerted: CHANGE_BURST at once, and one more every CHANGE_SPACING_SECONDS. A watch is
 * checked hourly at most, unless its account asks for checks in between.
 */
export const CHANGE_BURST = 12
const CHANGE_SPACING_SECONDS = 3600

/**
 * Whether a change of state may be alerted now. If not, the check is recorded without a change of state: the state stays
 * the last alerted one, and the next check is compared with it.
 */
export async function mayAlertChange(db: Database, watch: Pick<CitationWatch, 'id'>): Promise<boolean> {
  const may = await db.maybeOneFirst(sql.prepared('may_alert_citation', z.object({ may: z.boolean() }))`
    select coalesce(c.flips_full_at - ${(CHANGE_BURST - 1) * CHANGE_SPACING_SECONDS} * interval '1 second' <= now(), true)
           and ${hasRoom(sql.fragment`c.webhook_id`)} may
    from citation_watches c where c.id = ${watch.id}`)
  return may ?? false
}

const lockedRow = z.object({ id: z.string(), request_id: z.string(), evidence_id: z.string(), event_seq: z.number() })
type LockedRow = z.output<typeof lockedRow>

/** Raises an alert of a citation watch. Refused as `overtaken` when the watch was given another quote, or was deleted. */
export const raiseCitationAlert = raiserOf<CitationDraft, LockedRow>({
  requestedBy: 'citation-watch',

  lock: (tx, ids) =>
    tx.any(sql.type(lockedRow)`
      select id::text, request_id::text, evidence_id, event_seq from citation_watches
      where id = any(${sql.array([...ids], 'uuid')}) order by id for no key update`),

  isCurrent: ({ watch }, row) =>
    row.event_seq === watch.event_seq && row.request_id === watch.request_id && row.evidence_id === watch.evidence_id,

  async apply(tx, drafts) {
    for (const draft of drafts) await applyOne(tx, draft)
  },
})

async function applyOne(tx: Tx, { watch, change, alert }: CitationDraft) {
  const columns = change && {
    state: change.state,
    last_check: change.result.check,
    last_seen: sightingIn(change.result.check),
    failures: change.result.failures,
    next_in: change.result.nextInSeconds,
  }
  await tx.query(sql.type(nothing)`
    update citation_watches c
    set event_seq = ${alert.data.event_seq},
        state = coalesce(f.state, c.state), last_check = coalesce(f.last_check, c.last_check),
        last_seen = coalesce(f.last_seen, c.last_seen), failures = coalesce(f.failures, c.failures),
        check_at = coalesce(now() + f.next_in * interval '1 second', c.check_at),
        flips_full_at = case when f.state is null then c.flips_full_at
                             else greatest(c.flips_full_at, now()) + ${CHANGE_SPACING_SECONDS} * interval '1 second' end
    from json_to_record(${sql.json(columns ?? {})}) as
      f (state text, last_check jsonb, last_seen jsonb, failures int4, next_in float8)
    where c.id = ${watch.id}`)
}

const TYPES: Record<CitationState, AlertType> = {
  present: 'citation.restored',
  changed: 'citation.changed',
  vanished: 'citation.vanished',
}

/** The draft of an alert of a change of state. */
export function draftChange(watch: CitationWatch, change: Change): CitationDraft {
  const { state, result } = change
  const { check } = result
  const data = { state, previous: watch.state, before: watch.last_seen, after: check }
  return draft(TYPES[state], check.checked_at, watch, change, data)
}

/** The draft of a test alert. Throws AppError `not_found`. @param nowMs milliseconds since the epoch */
export async function draftTest(tx: Tx, accountId: string, name: string, nowMs: number): Promise<CitationDraft> {
  const watch = await findWatch(tx, accountId, name)
  return draft('citation.test', new Date(nowMs).toISOString(), watch, null, { state: watch.state })
}

function draft(
  type: Alert['type'],
  timestamp: string,
  watch: CitationWatch,
  change: Change | null,
  data: Record<string, unknown>,
): CitationDraft {
  return {
    ...composeAlert(type, timestamp, watch, { ...fieldsOf(watch), ...data }),
    ownerId: watch.id,
    accountId: watch.account_id,
    webhookId: watch.webhook_id,
    cause: change ? 'found' : 'asked',
    watch,
    change,
  }
}

/** The fields that every alert of a citation watch has. */
function fieldsOf(watch: CitationWatch) {
  return {
    citation: watch.name,
    source_url: watch.source_url,
    request_id: watch.request_id,
    evidence_id: watch.evidence_id,
    quote: watch.quote,
    quote_sha256: sha256(watch.quote),
  }
}
