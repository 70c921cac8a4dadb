// Changes of a watched quote, each alerted once: the change of state, its receipt, the alert and the job that sends it are
// one transaction. Of two checks that find the same change, the second is refused: the number of the event is taken.
import { z } from 'zod'
import { countAlerts } from '../alerts/daily-allowance.ts'
import { type Alert, type AlertType, makeAlertId, sealAlert, subjectOf } from '../alerts/format.ts'
import { hasRoom, insertAlerts } from '../alerts/outbox.ts'
import { column, type Database, sql, type Tx } from '../db/pool.ts'
import { type Participant, Refused } from '../receipts/chain.ts'
import { sha256 } from '../receipts/format.ts'
import { type Check, type CitationState, type CitationWatch, seenIn } from './watch.ts'

interface Flip {
  watch: CitationWatch
  state: CitationState
  /** Null for a test alert. */
  check: { check: Check; failures: number; nextInSeconds: number } | null
  alertId: string
  alert: Alert
}

/** `overtaken`: another flip took the number, or the watch was changed or deleted. `daily_limit`: see countAlerts. */
export type FlipRefusal = 'overtaken' | 'daily_limit'

/**
 * Changes of state of one watch that are alerted: so many at once, and one more an hour. A watch is checked hourly at most,
 * unless its account asks for checks in between.
 */
export const FLIP_BURST = 12
const FLIP_SPACING_SECONDS = 3600

/**
 * Whether a change of state may be alerted now. When not, the check is noted without it: the state stays what was alerted
 * last, and the next check compares with that.
 */
export async function mayFlip(db: Database, watch: Pick<CitationWatch, 'id'>): Promise<boolean> {
  const may = await db.maybeOneFirst(sql.prepared('may_citation_flip', z.object({ may: z.boolean() }))`
    select coalesce(c.flips_full_at - ${(FLIP_BURST - 1) * FLIP_SPACING_SECONDS} * interval '1 second' <= now(), true)
           and ${hasRoom(sql.fragment`c.webhook_id`)} may
    from citation_watches c where c.id = ${watch.id}`)
  return may ?? false
}

export const citationFlips: Participant<Flip, FlipRefusal> = {
  async check(tx, flips) {
    const numbers = await lockNumbers(tx, flips)
    const current = flips.map(({ watch, alert }) => {
      if (numbers.get(keyOf(watch)) !== alert.data.event_seq - 1) return false
      // A second one of this batch has its number taken.
      numbers.set(keyOf(watch), alert.data.event_seq)
      return true
    })
    const counted = await countAlerts(
      tx,
      flips.map(({ watch, check }, index) =>
        current[index] ? { accountId: watch.account_id, cause: check ? 'found' : 'asked' } : null,
      ),
    )
    return flips.map((_, index) =>
      current[index] ? (counted[index] ? null : new Refused('daily_limit')) : new Refused('overtaken'),
    )
  },

  async apply(tx, entries) {
    for (const { item } of entries) await writeFlip(tx, item)
    await insertAlerts(
      tx,
      entries.map(({ item: { alertId, alert, watch }, attestation }) => ({
        id: alertId,
        webhookId: watch.webhook_id,
        eventSeq: alert.data.event_seq,
        type: alert.type,
        body: sealAlert(alert, attestation),
        serial: attestation.serial,
      })),
    )
  },
}

/** A watch that was given another quote meanwhile is not the one that was checked. */
const keyOf = (watch: Pick<CitationWatch, 'id' | 'request_id' | 'evidence_id'>) =>
  `${watch.id} ${watch.request_id} ${watch.evidence_id}`

const numberRow = z.object({ id: z.string(), request_id: z.string(), evidence_id: z.string(), event_seq: z.number() })

async function lockNumbers(tx: Tx, flips: Flip[]): Promise<Map<string, number>> {
  const rows = await tx.any(sql.type(numberRow)`
    select id::text, request_id::text, evidence_id, event_seq from citation_watches
    where id = any(${column(flips, 'uuid', ({ watch }) => watch.id)}) order by id for no key update`)
  return new Map(rows.map((row) => [keyOf(row), row.event_seq]))
}

async function writeFlip(tx: Tx, { watch, state, check, alert }: Flip) {
  const found = check && {
    state,
    last_check: check.check,
    last_seen: seenIn(check.check),
    failures: check.failures,
    next_in: check.nextInSeconds,
  }
  await tx.query(sql.type(z.strictObject({}))`
    update citation_watches c
    set event_seq = ${alert.data.event_seq},
        state = coalesce(f.state, c.state), last_check = coalesce(f.last_check, c.last_check),
        last_seen = coalesce(f.last_seen, c.last_seen), failures = coalesce(f.failures, c.failures),
        check_at = coalesce(now() + f.next_in * interval '1 second', c.check_at),
        flips_full_at = case when f.state is null then c.flips_full_at
                             else greatest(c.flips_full_at, now()) + ${FLIP_SPACING_SECONDS} * interval '1 second' end
    from json_to_record(${sql.json(found ?? {})}) as
      f (state text, last_check jsonb, last_seen jsonb, failures int4, next_in float8)
    where c.id = ${watch.id}`)
}

const TYPES: Record<CitationState, AlertType> = {
  present: 'citation.restored',
  changed: 'citation.changed',
  vanished: 'citation.vanished',
}

/** The receipt and the rows of a change of state. */
export function tellFlip(
  watch: CitationWatch,
  state: CitationState,
  check: { check: Check; failures: number; nextInSeconds: number },
) {
  return entryOf(watch, state, check, {
    type: TYPES[state],
    timestamp: check.check.checked_at,
    data: {
      ...describe(watch),
      state,
      previous: watch.state,
      before: watch.last_seen,
      after: check.check,
    },
  })
}

/** The receipt and the rows of a test alert. @param now milliseconds since the epoch */
export function tellTest(watch: CitationWatch, now: number) {
  return entryOf(watch, watch.state, null, {
    type: 'citation.test',
    timestamp: new Date(now).toISOString(),
    data: { ...describe(watch), state: watch.state },
  })
}

function describe(watch: CitationWatch) {
  return {
    event_seq: watch.event_seq + 1,
    citation: watch.name,
    source_url: watch.source_url,
    request_id: watch.request_id,
    evidence_id: watch.evidence_id,
    quote: watch.quote,
    quote_sha256: sha256(watch.quote),
  }
}

function entryOf(watch: CitationWatch, state: CitationState, check: Flip['check'], alert: Alert) {
  const item: Flip = { watch, state, check, alertId: makeAlertId(), alert }
  return {
    subjectSha256: subjectOf(alert),
    label: alert.type,
    requestedBy: 'citation-watch',
    participant: { kind: citationFlips, item },
  }
}
