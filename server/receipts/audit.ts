// Audits the stored chain: recomputes every hash, follows every link, grows the tree again and compares it with the stored
// one. `checkTail` audits the end of the chain before a process signs anything, `auditChain` all of it. Rows are read in
// pages and never change, so no long transaction is needed.
import { z } from 'zod'
import { column, type Database, sql, transact } from '../db/pool.ts'
import { loadFrontier } from './archive.ts'
import { publicKeyOf } from './checkpoint.ts'
import {
  isSigned,
  type KnownKey,
  type StoredReceipt,
  verifyEntry,
  verifyHead,
  type Walk,
} from './entry-verification.ts'
import { GENESIS } from './format.ts'
import { findHead, type Head } from './head.ts'
import { KEY_USES } from './keys.ts'
import { type Growth, growTree, type Node, TILE_HEIGHT } from './tree.ts'

/** Signatures to check. `ends`: the last of each key and the last of all, which cover the others through the links. */
export type SignatureMode = 'every' | 'ends'

export interface Audit {
  from: number
  /** Serial of the head. */
  to: number
  signatures: number
  /** The first fault of each kind, by the kind's name; empty for a sound chain. */
  faults: Map<string, string>
}

export interface AuditOptions {
  signatures: SignatureMode
  onProgress?: (serial: number, head: number) => void
}

const TAIL = 1000
const PAGE = 2048

/** Throws when the last receipts and the head contradict each other. Nothing may be appended to such a chain. */
export async function checkTail(db: Database, receipts = TAIL): Promise<void> {
  const head = await findHead(db)
  // At the edge of a tile the tree is a handful of stored nodes.
  const from = Math.floor(Math.max(0, head.serial - receipts) / 256) * 256 + 1
  const { faults } = await auditFrom(db, head, from, { signatures: 'ends' })
  const found = [...faults].map(([name, text]) => `${name}: ${text}`)
  if (found.length > 0)
    throw new Error(`The receipt chain is damaged, and nothing may be added to it. ${found.join('; ')}`)
}

/** Audits the whole chain up to the present head. */
export async function auditChain(db: Database, options: AuditOptions): Promise<Audit> {
  const head = await findHead(db)
  const audit = await auditFrom(db, head, 1, { ...options, tiles: true })
  const extra = (await countNodes(db)) - nodesOf(head.serial)
  // The chain may have grown since the head was read, so more nodes are a fault only if it has not.
  if (extra < 0 || (extra > 0 && (await findHead(db)).serial === head.serial))
    audit.faults.set('tree', 'the number of stored nodes does not fit the receipts')
  const early = await findEarlyTile(db)
  if (early !== null) audit.faults.set('tiles', `tile ${early} has a row of tile_middles and is not full`)
  return audit
}

/** @param options `tiles`: compares tile_middles too. A wrong row costs time and nothing else, so no process stops for it. */
async function auditFrom(
  db: Database,
  head: Head,
  from: number,
  options: AuditOptions & { tiles?: boolean },
): Promise<Audit> {
  const keys = await loadKnownKeys(db)
  const walk = await startAt(db, from - 1)
  const faults: Audit['faults'] = new Map()
  const report = (name: string, text: string) => void (faults.has(name) || faults.set(name, text))
  const reportReceipt = (name: string, serial: number, text: string) => report(name, `serial ${serial} ${text}`)
  let signatures = 0
  for (let first = from; first <= head.serial && !faults.has('serials'); first += PAGE) {
    const last = Math.min(first + PAGE - 1, head.serial)
    for (const receipt of await loadReceipts(db, first, last)) {
      const signed = verifyEntry(receipt, walk, keys, reportReceipt)
      const ends = receipt.serial === head.serial || receipt.serial === signed?.key.last_serial
      if (!signed || (options.signatures === 'ends' && !ends)) continue
      signatures++
      if (!isSigned(signed)) reportReceipt('signatures', receipt.serial, 'is not signed by its key')
    }
    if (!(await areStored(db, walk.tree.made()))) report('tree', `a node over the serials to ${last} is wrong`)
    const tile = options.tiles ? await findWrongTile(db, walk.tree.middles()) : null
    if (tile !== null) report('tiles', `the row of tile_middles of tile ${tile} does not follow from its receipts`)
    // The right edge is enough to continue. All nodes of a long chain do not fit into memory.
    walk.tree = growTree(walk.tree.size, walk.tree.frontier())
    options.onProgress?.(last, head.serial)
  }
  verifyHead(head, walk, keys, report)
  return { from, to: head.serial, signatures, faults }
}

const keyRow = z.object({
  key_id: z.number(),
  use: z.enum(KEY_USES),
  pubkey_hex: z.string(),
  first_serial: z.number().nullable(),
  last_serial: z.number().nullable(),
  introduced_by: z.number().nullable(),
})

export async function loadKnownKeys(db: Database): Promise<KnownKey[]> {
  const rows = await db.any(sql.type(keyRow)`
    select key_id, use, encode(pubkey, 'hex') pubkey_hex, first_serial, last_serial, introduced_by from signing_keys`)
  return rows.map((row) => ({ ...row, publicKey: publicKeyOf(Buffer.from(row.pubkey_hex, 'hex')) }))
}

/** The stored state after `size` receipts. */
async function startAt(db: Database, size: number): Promise<Walk & { tree: Growth }> {
  if (size === 0) return { serial: 0, prevHash: GENESIS, tsMs: 0, tree: growTree(0, Buffer.alloc(0)) }
  const before = await db.one(sql.type(z.object({ prevHash: z.string(), tsMs: z.number() }))`
    select encode(receipt_hash, 'hex') "prevHash", ts_ms "tsMs" from receipts where serial = ${size}`)
  const frontier = await transact(db, (tx) => loadFrontier(tx, size), { readOnly: true })
  return { serial: size, ...before, tree: growTree(size, frontier) }
}

const receiptRow = z.object({
  serial: z.number(),
  subject_sha256: z.string(),
  label: z.string().nullable(),
  requested_by: z.string(),
  key_id: z.number(),
  ts_ms: z.number(),
  prev_hash: z.string(),
  receipt_hash: z.string(),
  signature: z.instanceof(Buffer),
}) satisfies z.ZodType<StoredReceipt>

/** The stored receipts of a range, in order; missing ones are left out. */
export function loadReceipts(db: Database, from: number, to: number) {
  return db.any(sql.prepared('audit_receipts', receiptRow)`
    select serial, encode(subject_sha256, 'hex') subject_sha256, label, requested_by, key_id, ts_ms,
           encode(prev_hash, 'hex') prev_hash, encode(receipt_hash, 'hex') receipt_hash, sig_ed25519 signature
    from receipts where serial between ${from} and ${to} order by serial`)
}

async function areStored(db: Database, nodes: Node[]): Promise<boolean> {
  const found = await db.oneFirst(sql.type(z.object({ n: z.number() }))`
    select count(*) n
    from unnest(${column(nodes, 'int2', (node) => node.level)}, ${column(nodes, 'int8', (node) => node.index)},
                ${column(nodes, 'bytea', (node) => node.hash)}) as t (level, index, hash)
    join tree_nodes n using (level, index, hash)`)
  return found === nodes.length
}

const tileName = z.object({ tile: z.string() })

/** A tile, as level/index, whose row differs from these nodes half way up. A tile without a row does not. */
function findWrongTile(db: Database, nodes: Node[]): Promise<string | null> {
  return db.maybeOneFirst(sql.type(tileName)`
    select m.level || '/' || m.index tile
    from unnest(${column(nodes, 'int2', (node) => node.level)}, ${column(nodes, 'int8', (node) => node.index)},
                ${column(nodes, 'bytea', (node) => node.hash)}) as t (level, index, hash)
    join tile_middles m on m.level = t.level / 8 and m.index = t.index / 16
    where substr(m.hashes, (t.index % 16)::int * 32 + 1, 32) <> t.hash limit 1`)
}

/** A tile, as level/index, that has a row before it is full. */
function findEarlyTile(db: Database): Promise<string | null> {
  return db.maybeOneFirst(sql.type(tileName)`
    select m.level || '/' || m.index tile
    from chain_head h, generate_series(0, 3) l (level)
    cross join lateral (select level, max(index) as index from tile_middles where level = l.level group by level) m
    where (m.index + 1) * (256::numeric ^ (m.level + 1)) > h.serial limit 1`)
}

function countNodes(db: Database): Promise<number> {
  return db.oneFirst(sql.type(z.object({ n: z.number() }))`select count(*) n from tree_nodes`)
}

/** Number of nodes stored for `size` receipts. */
function nodesOf(size: number): number {
  const above = Math.floor(size / 2 ** TILE_HEIGHT)
  return above === 0 ? 0 : above + nodesOf(above)
}
