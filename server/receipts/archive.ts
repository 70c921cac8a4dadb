// Reading the chain back: receipts by serial, ranges as the text that is sent, proofs for old receipts, tiles.
import { z } from 'zod'
import { column, sql, type Tx } from '../db/pool.ts'
import type { Attestation } from '../verification/result.ts'
import type { Head, Inclusion } from './chain.ts'
import {
  consistencyRanges,
  frontierOf,
  hashesOf,
  inclusionRanges,
  leafHash,
  type NodeSource,
  nodeHash,
  type Subtree,
  subtreesOf,
  TILE_HEIGHT,
} from './tree.ts'

export const TILE_WIDTH = 2 ** TILE_HEIGHT

/**
 * An attestation as JSON text, made by the database: a page of a thousand costs this process a third of what parsing and
 * serialising rows would. A test holds the text to the attestations that were signed.
 */
const attestationJson = sql.fragment`
  json_build_object('v', 1, 'serial', r.serial, 'subject_sha256', encode(r.subject_sha256, 'hex'), 'label', r.label,
    'requested_by', r.requested_by, 'key_id', r.key_id, 'ts_ms', r.ts_ms,
    'ts_utc', to_char(timestamp 'epoch' + r.ts_ms * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'prev_hash', encode(r.prev_hash, 'hex'), 'pubkey_hex', encode(k.pubkey, 'hex'),
    'receipt_hash', encode(r.receipt_hash, 'hex'), 'sig_ed25519_hex', encode(r.sig_ed25519, 'hex'))::text`

/** JSON array of the attestations with serials from `from` to `to`. */
export async function exportRange(tx: Tx, from: number, to: number): Promise<string> {
  return tx.oneFirst(sql.prepared('export_range', z.object({ text: z.string() }))`
    select '[' || coalesce(string_agg(${attestationJson}, ',' order by r.serial), '') || ']' text
    from receipts r join signing_keys k using (key_id) where r.serial between ${from} and ${to}`)
}

export async function findAttestation(tx: Tx, serial: number): Promise<Attestation | null> {
  const [found] = JSON.parse(await exportRange(tx, serial, serial)) as Attestation[]
  return found ?? null
}

/** `receipt_hash` of a receipt that exists. */
export function findHash(tx: Tx, serial: number): Promise<string> {
  return tx.oneFirst(sql.prepared('find_receipt_hash', z.object({ hash: z.string() }))`
    select encode(receipt_hash, 'hex') hash from receipts where serial = ${serial}`)
}

/** Proof that the receipt is in the tree of `size` leaves; `size` is at most the head's. */
export async function proveReceipt(tx: Tx, serial: number, size: number): Promise<Inclusion> {
  const ranges = inclusionRanges(serial - 1, size)
  const hashes = hashesOf(ranges, await loadNodes(tx, subtreesOf(ranges)))
  return { leaf_index: serial - 1, tree_size: size, hashes: hashes.map((hash) => hash.toString('hex')) }
}

/** Proof that the tree of `to` leaves continues the one of `from`. */
export async function proveConsistency(tx: Tx, from: number, to: number): Promise<string[]> {
  const ranges = consistencyRanges(from, to)
  return hashesOf(ranges, await loadNodes(tx, subtreesOf(ranges))).map((hash) => hash.toString('hex'))
}

/** Hashes of the complete subtrees of a tree of `size` leaves, as `Growth.frontier` gives them. */
export async function loadFrontier(tx: Tx, size: number): Promise<Buffer> {
  const subtrees = frontierOf(size)
  return Buffer.concat(subtrees.map(await loadNodes(tx, subtrees)))
}

/** A stretch of kept hashes: receipts' leaves at level 0, rows of tree_nodes above. */
interface Stretch {
  level: number
  from: number
  to: number
}

/** What of a subtree is kept: its descendants at the next kept level below. */
function stretchOf({ level, index }: Subtree): Stretch {
  const kept = Math.floor(level / TILE_HEIGHT) * TILE_HEIGHT
  const width = 2 ** (level - kept)
  return { level: kept, from: index * width, to: (index + 1) * width }
}

async function loadNodes(tx: Tx, subtrees: Subtree[]): Promise<NodeSource> {
  const kept = await loadStretches(tx, subtrees.map(stretchOf))
  return (node) => {
    const { level, from, to } = stretchOf(node)
    let row = Array.from({ length: to - from }, (_, n) => kept.get(`${level}/${from + n}`))
    while (row.length > 1) row = Array.from({ length: row.length / 2 }, (_, n) => join(row[2 * n], row[2 * n + 1]))
    return join(row[0])
  }
}

function join(left: Buffer | undefined, right?: Buffer): Buffer {
  if (!left) throw new Error('the tree over the receipts has a hole')
  return right ? nodeHash(left, right) : left
}

const hashRow = z.object({ level: z.number(), index: z.number(), hash: z.instanceof(Buffer) })

async function loadStretches(tx: Tx, stretches: Stretch[]): Promise<Map<string, Buffer>> {
  const rows = await tx.any(sql.prepared('load_stretches', hashRow)`
    with wanted as (
      select level, first, past from unnest(${column(stretches, 'int2', (s) => s.level)},
                ${column(stretches, 'int8', (s) => s.from)},
                ${column(stretches, 'int8', (s) => s.to)}) as t (level, first, past))
    select 0::int2 level, r.serial - 1 index, r.receipt_hash hash
    from wanted w join receipts r on w.level = 0 and r.serial > w.first and r.serial <= w.past
    union all
    select n.level, n.index, n.hash
    from wanted w join tree_nodes n on w.level > 0 and n.level = w.level and n.index >= w.first and n.index < w.past`)
  return new Map(rows.map(({ level, index, hash }) => [`${level}/${index}`, level === 0 ? leafHash(hash) : hash]))
}

/** Hashes of a tile (C2SP tlog-tiles), or null when the tree does not reach that far. `width` 256 for a full tile. */
export async function findTile(
  tx: Tx,
  head: Pick<Head, 'serial'>,
  tile: { level: number; index: number; width: number },
): Promise<Buffer | null> {
  const from = tile.index * TILE_WIDTH
  const complete = Math.floor(head.serial / 2 ** (tile.level * TILE_HEIGHT))
  if (from + tile.width > complete) return null
  const level = tile.level * TILE_HEIGHT
  const kept = await loadStretches(tx, [{ level, from, to: from + tile.width }])
  return Buffer.concat(Array.from({ length: tile.width }, (_, n) => join(kept.get(`${level}/${from + n}`))))
}

/** Entry bundle of a tile: each receipt_hash behind its length in two bytes. */
export async function findEntries(
  tx: Tx,
  head: Pick<Head, 'serial'>,
  tile: { index: number; width: number },
): Promise<Buffer | null> {
  const from = tile.index * TILE_WIDTH
  if (from + tile.width > head.serial) return null
  const rows = await tx.anyFirst(sql.type(z.object({ hash: z.instanceof(Buffer) }))`
    select receipt_hash hash from receipts where serial > ${from} and serial <= ${from + tile.width} order by serial`)
  return Buffer.concat(rows.flatMap((hash) => [Buffer.of(0, hash.length), hash]))
}
