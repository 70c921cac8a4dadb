// Raises alerts, for owners of every kind: watchdogs and citation watches. The change of the owner's row, the receipt of the
// alert, its count against the limits of the day, its row in the outbox and the job that delivers it are one transaction under
// the lock of the chain's head. A crash before COMMIT leaves none of them, a crash after it all of them.
//
// A draft is composed from a row that was read without a lock. It is written only if the locked row still fits it.
import type { Tx } from '../db/pool.ts'
import { type Appended, type Chain, type Participant, Refused } from '../receipts/chain.ts'
import { inSpan, presentSpan } from '../tracing/spans.ts'
import { type AlertCause, countAlerts } from './daily-allowance.ts'
import { type Alert, makeAlertId, sealAlert, subjectOf } from './format.ts'
import { insertAlerts } from './outbox.ts'

/** An alert as composed, before it has a receipt. */
export interface AlertDraft {
  /** The `webhook-id`. */
  id: string
  alert: Alert
  ownerId: string
  accountId: string
  webhookId: string
  /** The limit of the day that the alert counts against; null for none. */
  cause: AlertCause | null
  /** The `traceparent` of the span that raises the alert, which also contains its delivery. */
  traceparent?: string | null
  tracestate?: string | null
}

/** A kind of owner: how the rows of its alerts are locked, compared and written. */
export interface AlertOwner<Draft extends AlertDraft, Row extends { id: string }> {
  /** `requested_by` of the receipts. */
  requestedBy: string
  /** Locks the rows with these ids, in the order of the ids. Deleted rows are left out. */
  lock(tx: Tx, ownerIds: readonly string[]): Promise<readonly Row[]>
  /** Whether the locked row still fits the draft. False when another alert has taken the draft's `event_seq`. */
  isCurrent(draft: Draft, row: Row): boolean
  /** Writes the change that each draft reports, `event_seq` included. There is at most one draft of each owner. */
  apply(tx: Tx, drafts: readonly Draft[]): Promise<void>
}

/** `overtaken`: the owner's row has changed after it was read. `daily_limit`: see `countAlerts`. */
export type RaiseRefusal = 'overtaken' | 'daily_limit'

/**
 * Resolves once the alert is in the outbox, or with why it was refused. Throws BatchOverflowError when too many entries wait
 * for the chain.
 */
export type Raise<Draft extends AlertDraft> = (
  chain: Pick<Chain, 'append'>,
  draft: Draft,
) => Promise<Appended | Refused<RaiseRefusal>>

/**
 * The function that raises alerts of one kind of owner. Make it once for each kind, because a batch is grouped by this
 * function.
 */
export function raiserOf<Draft extends AlertDraft, Row extends { id: string }>(
  owner: AlertOwner<Draft, Row>,
): Raise<Draft> {
  const kind: Participant<Draft, RaiseRefusal> = {
    async check(tx, drafts) {
      const current = await findCurrent(tx, owner, drafts)
      const counted = await countAlerts(
        tx,
        drafts.map(({ accountId, cause }, index) => (current[index] && cause ? { accountId, cause } : null)),
      )
      return drafts.map((_, index) => {
        if (!current[index]) return new Refused('overtaken')
        return counted[index] ? null : new Refused('daily_limit')
      })
    },

    async apply(tx, entries) {
      await owner.apply(
        tx,
        entries.map(({ item }) => item),
      )
      await insertAlerts(
        tx,
        entries.map(({ item: { id, webhookId, alert, traceparent = null, tracestate = null }, attestation }) => ({
          id,
          webhookId,
          eventSeq: alert.data.event_seq,
          type: alert.type,
          body: sealAlert(alert, attestation),
          serial: attestation.serial,
          traceparent,
          tracestate,
        })),
      )
    },
  }
  return (chain, draft) =>
    inSpan('alert.raise', { attributes: { 'countersign.alert.type': draft.alert.type } }, () =>
      chain.append({
        subjectSha256: subjectOf(draft.alert),
        label: draft.alert.type,
        requestedBy: owner.requestedBy,
        participant: { kind, item: { ...draft, ...presentSpan() } },
      }),
    )
}

/** For each draft whether its owner's row still fits. Of several drafts of one owner, only the first that fits is current. */
async function findCurrent<Draft extends AlertDraft, Row extends { id: string }>(
  tx: Tx,
  owner: AlertOwner<Draft, Row>,
  drafts: readonly Draft[],
): Promise<boolean[]> {
  const locked = await owner.lock(
    tx,
    drafts.map(({ ownerId }) => ownerId),
  )
  const rows = new Map(locked.map((row) => [row.id, row]))
  return drafts.map((draft) => {
    const row = rows.get(draft.ownerId)
    const current = row !== undefined && owner.isCurrent(draft, row)
    if (current) rows.delete(draft.ownerId)
    return current
  })
}

/**
 * A new alert of an owner whose last alert has the number `event_seq`. @param timestamp when the reported change
 * happened
 */
export function composeAlert(
  type: Alert['type'],
  timestamp: string,
  { event_seq }: { event_seq: number },
  data: Record<string, unknown>,
): Pick<AlertDraft, 'id' | 'alert'> {
  return { id: makeAlertId(), alert: { type, timestamp, data: { event_seq: event_seq + 1, ...data } } }
}
