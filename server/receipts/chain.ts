// The receipt chain: receipts are appended in batches, each in one transaction.
//
//   lock    the head row; it names the last receipt, the tree's right edge and the keys in force
//   check   the participants lock their own rows and refuse entries; then the companions of those that were not refused
//   link    each receipt to the one before it, by hash
//   sign    the receipts, on a thread when they are many
//   cover   the grown tree with a signed checkpoint
//   write   receipts, tree nodes and head, then the participants' rows
//   commit
//
// Any number of processes append; the lock orders them. Receipts that arrive while one batch commits go into the next, so
// batches share the cost of a durable commit (see db/lock-queue.ts).
//
// A crash before the commit leaves nothing: no receipt, no row of a participant, and the lock is free. A crash after it leaves
// the batch whole; its callers get no answer and find the receipts when they ask again. A connection lost *during* the commit
// leaves the outcome open until the head can be locked again: that transaction is over by then, and the chain holds either the
// whole batch or nothing of it.
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { openLockQueue } from '../db/lock-queue.ts'
import { type Database, isConnectionLoss, sql, type Tx, transact } from '../db/pool.ts'
import type { Attestation } from '../interface/attestation.ts'
import { inSpan } from '../tracing/spans.ts'
import { originOf, signCheckpoint } from './checkpoint.ts'
import { linkEntry } from './format.ts'
import { advanceHead, type Extension, type Head, lockHead } from './head.ts'
import { openSigning, type Sign, signHere } from './signatures.ts'
import type { ChainKeys, Signer } from './signer.ts'
import { growTree, type Inclusion, proveInclusion, rootHash } from './tree.ts'

/** What a receipt attests. */
export interface Subject {
  subjectSha256: string
  label: string | null
  requestedBy: string
}

/** A receipt to be made, and a row that is written in the same transaction. */
export interface Append<Item = unknown, Refusal = unknown> extends Subject {
  participant?: { kind: Participant<Item, Refusal>; item: Item }
  /**
   * A second receipt of the same batch, right after this one. It is made only together with this one, and this one is made also if
   * the participant of the companion refuses it.
   */
  companion?: Companion
}

// biome-ignore lint/suspicious/noExplicitAny: the companions of a batch are of several kinds
export type Companion = Subject & { participant: { kind: Participant<any, unknown>; item: unknown } }

/** Rows of one kind that belong to receipts: they are written in the receipts' own transaction, or not at all. */
export interface Participant<Item, Refusal = never> {
  /** Locks the items' rows. One answer for each item: null, or why it is refused. A refused item gets no receipt. */
  check(tx: Tx, items: Item[]): Promise<(null | Refused<Refusal>)[]>
  /** Writes the rows of the items that have a receipt. */
  apply(tx: Tx, entries: { item: Item; attestation: Attestation }[]): Promise<void>
}

/** Why a participant refused an entry. */
export class Refused<Reason> {
  readonly reason: Reason
  constructor(reason: Reason) {
    this.reason = reason
  }
}

/** A durable receipt, and the head that covers it. */
export interface Appended {
  attestation: Attestation
  /** C2SP checkpoint of the tree that holds it. */
  checkpoint: string
  inclusion(): Inclusion
}

export interface Chain extends AsyncDisposable {
  /** The configured name of the log. A log that has a checkpoint keeps the name in it. */
  readonly origin: string
  /**
   * Resolves once the receipt is durable and covered by a signed head, or when its participant refused it.
   * Throws BatchOverflowError when too many are waiting, and the database's error when the batch did not happen.
   */
  append<Item, Refusal>(entry: Append<Item, Refusal>): Promise<Appended | Refused<Refusal>>
}

const MAX_BATCH = 256
const MAX_QUEUE = 4096
/** With the pauses between them some thirteen seconds, enough for a database to restart. */
const MAX_ATTEMPTS = 9

interface Options {
  origin: string
  /** Milliseconds since the epoch. A receipt is never earlier than the one before it. */
  now?: () => number
  maxQueue?: number
}

export function openChain(db: Database, signer: Signer, options: Options): Chain {
  const { origin, now = Date.now, maxQueue = MAX_QUEUE } = options
  const signing = openSigning()
  const writer = { db, signer, origin, now, sign: signing.sign }
  const queue = openLockQueue((take: () => Append[]) => appendDurably(writer, take), {
    batch: MAX_BATCH,
    queue: maxQueue,
  })
  return {
    origin,
    append: <Item, Refusal>(entry: Append<Item, Refusal>) =>
      // The queue mixes entries of all kinds; a refusal comes from the participant of the entry itself.
      inSpan('receipt.append', { attributes: { 'countersign.receipt.requested_by': entry.requestedBy } }, () =>
        queue.add(entry),
      ) as Promise<Appended | Refused<Refusal>>,
    async [Symbol.asyncDispose]() {
      await queue[Symbol.asyncDispose]()
      await signing[Symbol.asyncDispose]()
    },
  }
}

interface Writer {
  db: Database
  signer: Signer
  origin: string
  now: () => number
  sign: Sign
}
type Outcome = Appended | Refused<unknown>

/** Appends a batch, and tries again while the connection is lost. @param take gives the batch; the same one at each call */
async function appendDurably(writer: Writer, take: () => Append[]): Promise<Outcome[]> {
  let tried: Outcome[] | null = null
  for (let attempt = 1; ; attempt++) {
    try {
      return await transact(writer.db, async (tx) => {
        const head = await lockHead(tx)
        // Only under the lock: before it, the commit of the attempt before may still be under way.
        if (tried && (await didCommit(tx, tried))) return tried
        tried = await appendBatch(tx, head, writer, take())
        return tried
      })
    } catch (error) {
      if (!isConnectionLoss(error) || attempt === MAX_ATTEMPTS) throw error
      // No pause before the second attempt: one broken connection says nothing about the next.
      if (attempt > 1) await pause(25 * 2 ** attempt)
    }
  }
}

/** Looks for the batch in the chain, where no other batch can have made the same receipt. */
async function didCommit(tx: Tx, tried: Outcome[]): Promise<boolean> {
  const made = tried.findLast((outcome): outcome is Appended => !(outcome instanceof Refused))
  if (!made) return false
  const { serial, receipt_hash } = made.attestation
  return tx.exists(sql.type(z.object({}))`
    select from receipts where serial = ${serial} and receipt_hash = decode(${receipt_hash}, 'hex')`)
}

/** All steps between the lock and the commit. */
async function appendBatch(tx: Tx, head: Head, writer: Writer, entries: Append[]): Promise<Outcome[]> {
  const keys = await writer.signer.keysAt(tx, head.key_changes)
  const alone = await checkEntries(tx, entries)
  const all = await addCompanions(tx, entries, alone)
  const refusals = all.map(({ refusal }) => refusal)
  const accepted = all.flatMap(({ entry, refusal }) => (refusal === null ? [entry] : []))
  const extension = await linkReceipts(head, keys, accepted, writer)
  const { attestations, tree, checkpoint } = extension
  const linked = attestations.values()
  // One attestation for each entry that was not refused, in their order.
  const attested = refusals.map((refusal) => refusal ?? linked.next().value!)
  if (accepted.length > 0) {
    await advanceHead(tx, extension)
    const written = all.map(({ entry }) => entry)
    await applyEntries(tx, written, attested)
  }
  const outcomes = attested.map((made) =>
    made instanceof Refused
      ? made
      : { attestation: made, checkpoint, inclusion: () => proveInclusion(made.serial, tree.size, tree.nodeAt) },
  )
  // A companion has no caller of its own.
  return outcomes.filter((_, index) => !all[index]?.isCompanion)
}

interface Checked {
  entry: Append
  isCompanion: boolean
  /** Why the entry gets no receipt; null if it gets one. */
  refusal: null | Refused<unknown>
}

/** The entries in the order of their receipts: each is followed by its companion, which is asked for only if the entry was not refused. */
async function addCompanions(
  tx: Tx,
  entries: readonly Append[],
  refusals: readonly (null | Refused<unknown>)[],
): Promise<Checked[]> {
  const companions = entries.flatMap(({ companion }, index) =>
    companion && refusals[index] === null ? [companion] : [],
  )
  const answers = companions.length > 0 ? await checkEntries(tx, companions) : []
  const answered = new Map<Append, null | Refused<unknown>>(companions.map((entry, n) => [entry, answers[n] ?? null]))
  return entries.flatMap((entry, index): Checked[] => {
    const own = { entry, isCompanion: false, refusal: refusals[index] ?? null }
    const { companion } = entry
    const refusal = companion && answered.get(companion)
    if (!companion || refusal === undefined) return [own]
    return [own, { entry: companion, isCompanion: true, refusal }]
  })
}

/** For each entry null, or why its participant refused it. */
async function checkEntries(tx: Tx, entries: readonly Append[]): Promise<(null | Refused<unknown>)[]> {
  const refusals = entries.map((): null | Refused<unknown> => null)
  for (const [kind, group] of byParticipant(entries)) {
    const items = group.map(({ item }) => item)
    const answers = await kind.check(tx, items)
    for (const [at, { index }] of group.entries()) refusals[index] = answers[at] ?? null
  }
  return refusals
}

/** @param attested one for each entry, refused ones included */
async function applyEntries(tx: Tx, entries: readonly Append[], attested: readonly (Attestation | Refused<unknown>)[]) {
  for (const [kind, group] of byParticipant(entries)) {
    const written = group.flatMap(({ index, item }) => {
      const attestation = attested[index]
      return attestation && !(attestation instanceof Refused) ? [{ item, attestation }] : []
    })
    if (written.length > 0) await kind.apply(tx, written)
  }
}

/** Entries of one participant go to it together, so that a batch costs one statement per participant. */
function byParticipant(entries: readonly Append[]) {
  const items = entries.flatMap(({ participant }, index) => (participant ? [{ ...participant, index }] : []))
  return Map.groupBy(items, ({ kind }) => kind)
}

export interface LinkOptions {
  /** Name of the log. Used in an empty log only: a log keeps the name it has. */
  origin: string
  /** Milliseconds since the epoch. */
  now: () => number
  sign?: Sign
}

/** Links subjects to the head, signs the receipts and covers them with a checkpoint. Writes nothing. */
export async function linkReceipts(
  head: Head,
  keys: ChainKeys,
  subjects: readonly Subject[],
  { origin, now, sign = signHere }: LinkOptions,
): Promise<Extension> {
  const tsMs = Math.max(now(), head.ts_ms)
  const tree = growTree(head.serial, head.frontier)
  let prevHash = head.receipt_hash
  const linked = subjects.map((subject) => {
    const made = linkEntry({ ...subject, serial: tree.size + 1, prevHash, tsMs }, keys.receipt)
    prevHash = made.unsigned.receipt_hash
    tree.append(Buffer.from(prevHash, 'hex'))
    return made
  })
  const texts = linked.map(({ preimage }) => preimage)
  const signatures = await sign(texts, keys.receipt.privateKey)
  const attestations = linked.map(({ unsigned }, n) => {
    const sig_ed25519_hex = signatures[n]
    if (sig_ed25519_hex === undefined) throw new Error(`${signatures.length} signatures for ${linked.length} receipts`)
    return { ...unsigned, sig_ed25519_hex }
  })
  const name = originOf(head.checkpoint) ?? origin
  const checkpoint = signCheckpoint(name, tree.size, rootHash(tree.size, tree.nodeAt), keys.checkpoint)
  return { attestations, tree, checkpoint }
}
