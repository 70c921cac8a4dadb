// The chain's sequencer. Any number of processes append; the head row is the fence between them. Receipts that are asked
// for while one batch is being committed go into the next, so the cost of a durable commit is shared (see db/batch.ts).
//
// A crash before COMMIT leaves nothing. A crash after it leaves the batch whole: receipts, head and the rows the receipts
// are about moved together. A connection lost *during* it leaves the outcome open, and the chain itself answers: either
// our last hash stands at our last serial or the batch never happened.
import { setTimeout as pause } from 'node:timers/promises'
import { BackendTerminatedError, BackendTerminatedUnexpectedlyError, ConnectionError } from 'slonik'
import { z } from 'zod'
import { openBatcher } from '../db/batch.ts'
import { column, type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import type { Attestation } from '../verification/result.ts'
import { signCheckpoint } from './checkpoint.ts'
import { attest, type SigningKey } from './format.ts'
import { type Growth, growTree, hashesOf, inclusionRanges, rootHash } from './tree.ts'

/** Rows of one kind that belong to receipts and are written in the same transaction. */
export interface Companion<Item, Refusal = never> {
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

export interface Append<Item = unknown, Refusal = unknown> {
  subjectSha256: string
  label: string | null
  requestedBy: string
  companion?: { kind: Companion<Item, Refusal>; item: Item }
}

/** A durable receipt, and the head that covers it. */
export interface Appended {
  attestation: Attestation
  /** C2SP checkpoint of the tree that holds it. */
  checkpoint: string
  inclusion(): Inclusion
}

/** That leaf `leaf_index` is in the tree of `tree_size`: the hashes up to its root, in hex. */
export interface Inclusion {
  leaf_index: number
  tree_size: number
  hashes: string[]
}

export interface Chain extends AsyncDisposable {
  /** Name of the log in its checkpoints. */
  readonly origin: string
  /**
   * Resolves once the receipt is durable and covered by a signed head, or when its companion refused it.
   * Throws BatchOverflow when too many are waiting, and the database's error when the batch did not happen.
   */
  append<Item, Refusal>(entry: Append<Item, Refusal>): Promise<Appended | Refused<Refusal>>
}

export interface ChainKeys {
  receipt: SigningKey
  checkpoint: SigningKey
}

const MAX_BATCH = 256
const MAX_QUEUE = 4096
const MAX_ATTEMPTS = 5

/** @param now milliseconds since the epoch; receipts never go back behind the head's. */
export function openChain(
  db: Database,
  keys: ChainKeys,
  { origin, now = Date.now }: { origin: string; now?: () => number },
): Chain {
  const writer = { db, keys, origin, now }
  const batcher = openBatcher((entries: Append[]) => appendDurably(writer, entries), {
    batch: MAX_BATCH,
    queue: MAX_QUEUE,
  })
  return {
    origin,
    append: <Item, Refusal>(entry: Append<Item, Refusal>) =>
      batcher.add(entry as unknown as Append) as Promise<Appended | Refused<Refusal>>,
    [Symbol.asyncDispose]: () => batcher[Symbol.asyncDispose](),
  }
}

interface Writer {
  db: Database
  keys: ChainKeys
  origin: string
  now: () => number
}
type Outcome = (Appended | Refused<unknown>)[]

async function appendDurably(writer: Writer, entries: Append[]): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    const written: { outcome: Outcome | null } = { outcome: null }
    try {
      return await transact(writer.db, async (tx) => {
        written.outcome = await appendBatch(tx, writer, entries)
        return written.outcome
      })
    } catch (error) {
      if (!isConnectionLoss(error)) throw error
      if (written.outcome && (await didLand(writer.db, written.outcome))) return written.outcome
      if (attempt === MAX_ATTEMPTS) throw error
    }
  }
}

async function appendBatch(tx: Tx, writer: Writer, entries: Append[]): Promise<Outcome> {
  const head = await lockHead(tx)
  const refusals = await admit(tx, entries)
  const tsMs = Math.max(writer.now(), head.ts_ms)
  const tree = growTree(head.serial, head.frontier)
  let prevHash = head.receipt_hash
  const attested = entries.map((entry, index) => {
    if (refusals[index]) return refusals[index]
    const attestation = attest({ ...entry, serial: tree.size + 1, prevHash, tsMs }, writer.keys.receipt)
    prevHash = attestation.receipt_hash
    tree.append(Buffer.from(prevHash, 'hex'))
    return attestation
  })
  const attestations = attested.filter((made): made is Attestation => !(made instanceof Refused))
  if (attestations.length === 0) return attested.filter((made): made is Refused<unknown> => made instanceof Refused)
  const root = rootHash(tree.size, tree.nodeAt)
  const checkpoint = signCheckpoint(writer.origin, tree.size, root, writer.keys.checkpoint)
  await insertReceipts(tx, attestations)
  await insertNodes(tx, tree)
  await moveHead(tx, { serial: tree.size, prevHash, tsMs, frontier: tree.frontier(), checkpoint })
  await writeCompanions(tx, entries, attested)
  return attested.map((made) =>
    made instanceof Refused
      ? made
      : { attestation: made, checkpoint, inclusion: () => proveInclusion(made.serial, tree) },
  )
}

function proveInclusion(serial: number, tree: Growth): Inclusion {
  const ranges = inclusionRanges(serial - 1, tree.size)
  return {
    leaf_index: serial - 1,
    tree_size: tree.size,
    hashes: hashesOf(ranges, tree.nodeAt).map((hash) => hash.toString('hex')),
  }
}

const headRow = z.object({
  serial: z.number(),
  receipt_hash: z.string(),
  ts_ms: z.number(),
  frontier: z.instanceof(Buffer),
  checkpoint: z.string(),
})
export type Head = z.output<typeof headRow>

const headColumns = sql.fragment`serial, encode(receipt_hash, 'hex') receipt_hash, ts_ms, frontier, checkpoint`

function lockHead(tx: Tx): Promise<Head> {
  return tx.one(sql.prepared('lock_chain_head', headRow)`select ${headColumns} from chain_head for update`)
}

/** The end of the chain; serial 0, 64 zeros and no checkpoint before the first receipt. */
export function findHead(tx: Tx | Database): Promise<Head> {
  return tx.one(sql.prepared('find_chain_head', headRow)`select ${headColumns} from chain_head`)
}

async function moveHead(
  tx: Tx,
  head: { serial: number; prevHash: string; tsMs: number; frontier: Buffer; checkpoint: string },
) {
  await tx.query(sql.prepared('move_chain_head', nothing)`
    update chain_head set serial = ${head.serial}, receipt_hash = decode(${head.prevHash}, 'hex'), ts_ms = ${head.tsMs},
      frontier = ${sql.binary(head.frontier)}, checkpoint = ${head.checkpoint}`)
}

async function insertNodes(tx: Tx, tree: Growth) {
  const made = tree.made()
  if (made.length === 0) return
  await tx.query(sql.prepared('insert_tree_nodes', nothing)`
    insert into tree_nodes (level, index, hash)
    select level, index, hash
    from unnest(${column(made, 'int2', (node) => node.level)}, ${column(made, 'int8', (node) => node.index)},
                ${column(made, 'bytea', (node) => node.hash)}) as t (level, index, hash)`)
}

/** Entries of one kind are asked together, so that a batch costs one statement per kind. */
function byKind(entries: Append[]) {
  const groups = new Map<Companion<unknown, unknown>, number[]>()
  for (const [index, entry] of entries.entries()) {
    if (!entry.companion) continue
    const group = groups.get(entry.companion.kind)
    if (group) group.push(index)
    else groups.set(entry.companion.kind, [index])
  }
  return groups
}

async function admit(tx: Tx, entries: Append[]): Promise<(null | Refused<unknown>)[]> {
  const refusals: (null | Refused<unknown>)[] = entries.map(() => null)
  for (const [kind, indexes] of byKind(entries)) {
    const answers = await kind.admit(
      tx,
      indexes.map((index) => entries[index]?.companion?.item),
    )
    for (const [at, index] of indexes.entries()) refusals[index] = answers[at] ?? null
  }
  return refusals
}

async function writeCompanions(tx: Tx, entries: Append[], attested: (Attestation | Refused<unknown>)[]) {
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

async function insertReceipts(tx: Tx, attestations: Attestation[]) {
  const hex = (field: 'subject_sha256' | 'prev_hash' | 'receipt_hash' | 'sig_ed25519_hex') =>
    column(attestations, 'text', (a) => a[field])
  await tx.query(sql.prepared('insert_receipts', nothing)`
    insert into receipts (serial, ts_ms, subject_sha256, label, requested_by, key_id, prev_hash, receipt_hash, sig_ed25519)
    select serial, ts_ms, decode(subject, 'hex'), label, requested_by, key_id,
           decode(prev, 'hex'), decode(receipt_hash, 'hex'), decode(sig, 'hex')
    from unnest(
      ${column(attestations, 'int8', (a) => a.serial)}, ${column(attestations, 'int8', (a) => a.ts_ms)},
      ${hex('subject_sha256')}, ${column(attestations, 'text', (a) => a.label)},
      ${column(attestations, 'text', (a) => a.requested_by)},
      ${column(attestations, 'int4', (a) => a.key_id)},
      ${hex('prev_hash')}, ${hex('receipt_hash')}, ${hex('sig_ed25519_hex')}
    ) as t (serial, ts_ms, subject, label, requested_by, key_id, prev, receipt_hash, sig)`)
}

/** The commit's answer was lost: whether it happened is read from the chain, which no other batch can have written alike. */
async function didLand(db: Database, written: Outcome): Promise<boolean> {
  const made = written.findLast((outcome): outcome is Appended => !(outcome instanceof Refused))
  if (!made) return false
  const last = made.attestation
  for (let attempt = 1; ; attempt++) {
    try {
      return await db.exists(sql.type(z.object({}))`
        select from receipts where serial = ${last.serial} and receipt_hash = decode(${last.receipt_hash}, 'hex')`)
    } catch (error) {
      if (attempt === 20) throw error
      await pause(100 * attempt)
    }
  }
}

function isConnectionLoss(error: unknown): boolean {
  return (
    error instanceof BackendTerminatedError ||
    error instanceof BackendTerminatedUnexpectedlyError ||
    error instanceof ConnectionError
  )
}
