// The chain's sequencer. Any number of processes append; the head row is the fence between them. Receipts that are asked
// for while one batch is being committed go into the next, so the cost of a durable commit is shared (see db/batch.ts).
//
// A crash before COMMIT leaves nothing. A crash after it leaves the batch whole: receipts, tree, head and the rows the
// receipts are about moved together. A connection lost *during* it leaves the outcome open until the head can be locked
// again: by then that transaction is over, and either our last hash stands at our last serial or the batch never happened.
import { setTimeout as pause } from 'node:timers/promises'
import { BackendTerminatedError, BackendTerminatedUnexpectedlyError, ConnectionError } from 'slonik'
import { z } from 'zod'
import { openLockQueue } from '../db/lock-queue.ts'
import { type Database, sql, type Tx, transact } from '../db/pool.ts'
import type { Attestation } from '../interface/result.ts'
import { type Append, admitEntries, Refused, writeCompanions } from './companions.ts'
import { advanceHead, type Head, lockHead } from './head.ts'
import { linkReceipts } from './links.ts'
import type { Signer } from './signer.ts'
import { openSigning, type Sign } from './signing.ts'
import { type Growth, hashesOf, inclusionRanges } from './tree.ts'

export { type Append, type Participant, Refused } from './companions.ts'
export { findHead, type Head } from './head.ts'

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
  /** Name of the log in its checkpoints; once there is a first one, that one's name counts. */
  readonly origin: string
  /**
   * Resolves once the receipt is durable and covered by a signed head, or when its companion refused it.
   * Throws BatchOverflowError when too many are waiting, and the database's error when the batch did not happen.
   */
  append<Item, Refusal>(entry: Append<Item, Refusal>): Promise<Appended | Refused<Refusal>>
}

const MAX_BATCH = 256
const MAX_QUEUE = 4096
/** With the pauses between them some thirteen seconds: a database that restarts is waited for. */
const MAX_ATTEMPTS = 9

interface Options {
  origin: string
  /** Milliseconds since the epoch; receipts never go back behind the head's. */
  now?: () => number
  maxQueue?: number
}

export function openChain(db: Database, signer: Signer, options: Options): Chain {
  const { origin, now = Date.now, maxQueue = MAX_QUEUE } = options
  const signing = openSigning()
  const writer = { db, signer, origin, now, sign: signing.sign }
  const batcher = openLockQueue((take: () => Append[]) => appendDurably(writer, take), {
    batch: MAX_BATCH,
    queue: maxQueue,
  })
  return {
    origin,
    append: <Item, Refusal>(entry: Append<Item, Refusal>) =>
      batcher.add(entry as unknown as Append) as Promise<Appended | Refused<Refusal>>,
    async [Symbol.asyncDispose]() {
      await batcher[Symbol.asyncDispose]()
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
type Outcome = (Appended | Refused<unknown>)[]

async function appendDurably(writer: Writer, take: () => Append[]): Promise<Outcome> {
  let tried: Outcome | null = null
  for (let attempt = 1; ; attempt++) {
    try {
      return await transact(writer.db, async (tx) => {
        const head = await lockHead(tx)
        // Only under the lock: before it, a commit that nobody waits for any more may still be on its way.
        if (tried && (await didLand(tx, tried))) return tried
        tried = await appendBatch(tx, head, writer, take())
        return tried
      })
    } catch (error) {
      if (!isConnectionLoss(error) || attempt === MAX_ATTEMPTS) throw error
      // At once the first time: one broken connection says nothing about the next.
      if (attempt > 1) await pause(25 * 2 ** attempt)
    }
  }
}

async function appendBatch(tx: Tx, head: Head, writer: Writer, entries: Append[]): Promise<Outcome> {
  const keys = await writer.signer.keysAt(tx, head.key_changes)
  const refusals = await admitEntries(tx, entries)
  const admitted = entries.filter((_, index) => refusals[index] === null)
  const links = await linkReceipts(head, keys, admitted, writer)
  const linked = links.attestations.values()
  const attested = refusals.map((refusal) => refusal ?? linked.next().value!)
  if (admitted.length > 0) {
    await advanceHead(tx, links)
    await writeCompanions(tx, entries, attested)
  }
  return attested.map((made) =>
    made instanceof Refused
      ? made
      : {
          attestation: made,
          checkpoint: links.checkpoint,
          inclusion: () => proveInclusion(made.serial, links.tree),
        },
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

/** Whether a batch stands in the chain is read from the chain, which no other batch can have written alike. */
async function didLand(tx: Tx, tried: Outcome): Promise<boolean> {
  const made = tried.findLast((outcome): outcome is Appended => !(outcome instanceof Refused))
  if (!made) return false
  const { serial, receipt_hash } = made.attestation
  return tx.exists(sql.type(z.object({}))`
    select from receipts where serial = ${serial} and receipt_hash = decode(${receipt_hash}, 'hex')`)
}

function isConnectionLoss(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return (
    error instanceof BackendTerminatedError ||
    error instanceof BackendTerminatedUnexpectedlyError ||
    error instanceof ConnectionError ||
    (typeof code === 'string' && CONNECTION_CODES.has(code))
  )
}

/** Sockets that broke or were refused, and a server that has crashed or is only coming up. */
const CONNECTION_CODES = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', '57P02', '57P03'])
