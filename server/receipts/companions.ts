// Rows of other features that belong to receipts: they are written in the receipts' own transaction, or not at all.
import type { Tx } from '../db/pool.ts'
import type { Attestation } from '../interface/attestation.ts'
import type { Subject } from './links.ts'

/** Rows of one kind that belong to receipts and are written in the same transaction. */
export interface Participant<Item, Refusal = never> {
  /** Locks the items' rows and says which may go on: null, or why not. A refused item gets no receipt. */
  admit(tx: Tx, items: Item[]): Promise<(null | Refused<Refusal>)[]>
  write(tx: Tx, entries: { item: Item; attestation: Attestation }[]): Promise<void>
}

/** Why a companion did not let its receipt be made. */
export class Refused<Reason> {
  readonly reason: Reason
  constructor(reason: Reason) {
    this.reason = reason
  }
}

export interface Append<Item = unknown, Refusal = unknown> extends Subject {
  companion?: { kind: Participant<Item, Refusal>; item: Item }
}

/** For each entry null, or why its companion refused it. */
export async function admitEntries(tx: Tx, entries: Append[]): Promise<(null | Refused<unknown>)[]> {
  const refusals: (null | Refused<unknown>)[] = entries.map(() => null)
  for (const [kind, indexes] of byKind(entries)) {
    const items = indexes.map((index) => entries[index]?.companion?.item)
    const answers = await kind.admit(tx, items)
    for (const [at, index] of indexes.entries()) refusals[index] = answers[at] ?? null
  }
  return refusals
}

/** @param attested one for each entry, refused ones included */
export async function writeCompanions(tx: Tx, entries: Append[], attested: (Attestation | Refused<unknown>)[]) {
  for (const [kind, indexes] of byKind(entries)) {
    const written = indexes.flatMap((index) => {
      const attestation = attested[index]
      return attestation && !(attestation instanceof Refused)
        ? [{ item: entries[index]?.companion?.item, attestation }]
        : []
    })
    if (written.length > 0) await kind.write(tx, written)
  }
}

/** Entries of one kind are asked together, so that a batch costs one statement per kind. */
function byKind(entries: Append[]) {
  const groups = new Map<Participant<unknown, unknown>, number[]>()
  for (const [index, entry] of entries.entries()) {
    if (!entry.companion) continue
    const group = groups.get(entry.companion.kind)
    if (group) group.push(index)
    else groups.set(entry.companion.kind, [index])
  }
  return groups
}
