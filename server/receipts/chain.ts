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
import { type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import type { Attestation } from '../verification/result.ts'
import { attest, type SigningKey } from './format.ts'

/** Rows of one kind that belong to receipts and are written in the same transaction. */
export interface Companion<Item> {
  /** Locks the items' rows and says which may go on. A refused item gets no receipt. */
  admit(tx: Tx, items: Item[]): Promise<boolean[]>
  write(tx: Tx, entries: { item: Item; attestation: Attestation }[]): Promise<void>
}

export interface Append<Item = unknown> {
  subjectSha256: string
  label: string | null
  requestedBy: string
  companion?: { kind: Companion<Item>; item: Item }
}

export interface Chain extends AsyncDisposable {
  /**
   * Resolves once the receipt is durable; null when its companion refused it.
   * Throws BatchOverflow when too many are waiting, and the database's error when the batch did not happen.
   */
  append<Item>(entry: Append<Item>): Promise<Attestation | null>
}

const MAX_BATCH = 256
const MAX_QUEUE = 4096
const MAX_ATTEMPTS = 5

/** @param now milliseconds since the epoch; receipts never go back behind the head's. */
export function openChain(db: Database, key: SigningKey, now: () => number = Date.now): Chain {
  const batcher = openBatcher((entries: Append[]) => appendDurably(db, key, now, entries), {
    batch: MAX_BATCH,
    queue: MAX_QUEUE,
  })
  return {
    append: (entry) => batcher.add(entry as Append),
    [Symbol.asyncDispose]: () => batcher[Symbol.asyncDispose](),
  }
}

type Outcome = (Attestation | null)[]

async function appendDurably(db: Database, key: SigningKey, now: () => number, entries: Append[]): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    let written: Outcome | null = null
    try {
      return await transact(db, async (tx) => {
        written = await appendBatch(tx, key, now, entries)
        return written
      })
    } catch (error) {
      if (!isConnectionLoss(error)) throw error
      const landed = written && (await didLand(db, written))
      if (landed) return written as unknown as Outcome
      if (attempt === MAX_ATTEMPTS) throw error
    }
  }
}

async function appendBatch(tx: Tx, key: SigningKey, now: () => number, entries: Append[]): Promise<Outcome> {
  const head = await lockHead(tx)
  const admitted = await admit(tx, entries)
  const tsMs = Math.max(now(), head.ts_ms)
  let serial = head.serial
  let prevHash = head.receipt_hash
  const outcome = entries.map((entry, index) => {
    if (!admitted[index]) return null
    const attestation = attest({ ...entry, serial: serial + 1, prevHash, tsMs }, key)
    serial = attestation.serial
    prevHash = attestation.receipt_hash
    return attestation
  })
  const attestations = outcome.filter((attestation) => attestation !== null)
  if (attestations.length === 0) return outcome
  await insertReceipts(tx, attestations)
  await tx.query(sql.type(nothing)`
    update chain_head set serial = ${serial}, receipt_hash = decode(${prevHash}, 'hex'), ts_ms = ${tsMs}`)
  await writeCompanions(tx, entries, outcome)
  return outcome
}

const headRow = z.object({ serial: z.number(), receipt_hash: z.string(), ts_ms: z.number() })

function lockHead(tx: Tx) {
  return tx.one(
    sql.prepared('lock_chain_head', headRow)`
      select serial, encode(receipt_hash, 'hex') receipt_hash, ts_ms from chain_head for update`,
  )
}

/** The end of the chain; serial 0 and 64 zeros before the first receipt. */
export function findHead(tx: Tx | Database) {
  return tx.one(sql.type(headRow)`select serial, encode(receipt_hash, 'hex') receipt_hash, ts_ms from chain_head`)
}

/** Entries of one kind are asked together, so that a batch costs one statement per kind. */
function byKind(entries: Append[]) {
  const groups = new Map<Companion<unknown>, number[]>()
  for (const [index, entry] of entries.entries()) {
    if (!entry.companion) continue
    const group = groups.get(entry.companion.kind)
    if (group) group.push(index)
    else groups.set(entry.companion.kind, [index])
  }
  return groups
}

async function admit(tx: Tx, entries: Append[]): Promise<boolean[]> {
  const admitted = entries.map(() => true)
  for (const [kind, indexes] of byKind(entries)) {
    const answers = await kind.admit(
      tx,
      indexes.map((index) => entries[index]?.companion?.item),
    )
    for (const [at, index] of indexes.entries()) admitted[index] = answers[at] === true
  }
  return admitted
}

async function writeCompanions(tx: Tx, entries: Append[], outcome: Outcome) {
  for (const [kind, indexes] of byKind(entries)) {
    const written = indexes.flatMap((index) => {
      const attestation = outcome[index]
      return attestation ? [{ item: entries[index]?.companion?.item, attestation }] : []
    })
    if (written.length > 0) await kind.write(tx, written)
  }
}

async function insertReceipts(tx: Tx, attestations: Attestation[]) {
  const hex = (field: 'subject_sha256' | 'prev_hash' | 'receipt_hash' | 'sig_ed25519_hex') =>
    sql.array(
      attestations.map((a) => a[field]),
      'text',
    )
  await tx.query(sql.prepared('insert_receipts', nothing)`
    insert into receipts (serial, ts_ms, subject_sha256, label, requested_by, key_id, prev_hash, receipt_hash, sig_ed25519)
    select serial, ts_ms, decode(subject, 'hex'), label, requested_by, key_id,
           decode(prev, 'hex'), decode(receipt_hash, 'hex'), decode(sig, 'hex')
    from unnest(
      ${sql.array(
        attestations.map((a) => a.serial),
        'int8',
      )}, ${sql.array(
        attestations.map((a) => a.ts_ms),
        'int8',
      )},
      ${hex('subject_sha256')}, ${sql.array(
        attestations.map((a) => a.label),
        'text',
      )},
      ${sql.array(
        attestations.map((a) => a.requested_by),
        'text',
      )},
      ${sql.array(
        attestations.map((a) => a.key_id),
        'int4',
      )},
      ${hex('prev_hash')}, ${hex('receipt_hash')}, ${hex('sig_ed25519_hex')}
    ) as t (serial, ts_ms, subject, label, requested_by, key_id, prev, receipt_hash, sig)`)
}

/** The commit's answer was lost: whether it happened is read from the chain, which no other batch can have written alike. */
async function didLand(db: Database, written: Outcome): Promise<boolean> {
  const last = written.findLast((attestation) => attestation !== null)
  if (!last) return false
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
