// Reads the stored chain: receipts by serial, ranges as the text that is sent, proofs for old receipts, tiles.
import { z } from 'zod'
import { column, type Database, sql, type Tx } from '../db/pool.ts'
import type { Attestation } from '../interface/attestation.ts'
import type { Head } from './head.ts'
import {
  consistencyRanges,
  frontierOf,
  HASH_BYTES,
  hashesOf,
  type Inclusion,
  inclusionRanges,
  leafHash,
  type NodeSource,
  proveInclusion,
  rootHash,
  rootOfComplete,
  type Subtree,
  subtreesOf,
  TILE_HEIGHT,
  TILE_WIDTH,
} from './tree.ts'

/**
 * An attestation as JSON text, made by the database. A page of a thousand costs this process a third of parsing and
 * serialising rows; joining pieces costs two thirds of json_build_object. A test compares the text with what was signed.
 */
const attestationJson = sql.fragment`
  '{"v":1,"serial":' || r.serial || ',"subject_sha256":"' || encode(r.subject_sha256, 'hex')
  || '","label":' || coalesce(to_json(r.label)::text, 'null') || ',"requested_by":' || to_json(r.requested_by)::text
  || ',"key_id":' || r.key_id || ',"ts_ms":' || r.ts_ms
  || ',"ts_utc":"' || to_char(timestamp 'epoch' + r.ts_ms * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  || '","prev_hash":"' || encode(r.prev_hash, 'hex') || '","pubkey_hex":"' || encode(k.pubkey, 'hex')
  || '","receipt_hash":"' || encode(r.receipt_hash, 'hex')
  || '","sig_ed25519_hex":"' || encode(r.sig_ed25519, 'hex') || '"}'`

const renderedRow = z.object({ text: z.string(), lengths: z.string() })

/** The attestations from `from` to `to` as text, with commas between them, and the length of each in bytes. */
export async function renderRange(
  db: Database,
  from: number,
  to: number,
): Promise<{ text: string; lengths: number[] }> {
  const { text, lengths } = await db.one(sql.prepared('render_range', renderedRow)`
    select coalesce(string_agg(text, ',' order by serial), '') text,
           coalesce(string_agg(octet_length(text)::text, ',' order by serial), '') lengths
    from (select r.serial, ${attestationJson} text
          from receipts r join signing_keys k using (key_id) where r.serial between ${from} and ${to}) made`)
  return { text, lengths: lengths === '' ? [] : lengths.split(',').map(Number) }
}

export async function findAttestation(tx: Tx | Database, serial: number): Promise<Attestation | null> {
  const [found] = await findAttestations(tx, [serial])
  return found ?? null
}

/** One for each serial, in the order given; null where there is no receipt. */
export async function findAttestations(db: Tx | Database, serials: readonly number[]): Promise<(Attestation | null)[]> {
  const rows = await db.any(sql.prepared('find_attestations', z.object({ serial: z.number(), text: z.string() }))`
    select r.serial, ${attestationJson} text
    from receipts r join signing_keys k using (key_id) where r.serial = any(${sql.array(serials, 'int8')})`)
  // No schema: `attestationJson` writes exactly these members, and a check of each would cost more than the query.
  const found = new Map(rows.map(({ serial, text }): [number, Attestation] => [serial, JSON.parse(text)]))
  return serials.map((serial) => found.get(serial) ?? null)
}

/** Receipts of one requester as JSON text, newest first. @param before only serials below this one */
export function listAttestations(
  tx: Tx,
  { requestedBy, before, limit }: { requestedBy: string; before?: number; limit: number },
) {
  return tx.any(sql.prepared('list_attestations', z.object({ serial: z.number(), text: z.string() }))`
    select r.serial, ${attestationJson} text
    from receipts r join signing_keys k using (key_id)
    where r.requested_by = ${requestedBy} and r.serial < ${before ?? Number.MAX_SAFE_INTEGER}
    order by r.serial desc limit ${limit}`)
}

/** Loads complete subtrees of a stored tree. */
export type NodeLoader = (subtrees: readonly Subtree[]) => Promise<NodeSource>

/** Proof that the receipt is in the tree of `size` leaves. @param size at most the head's */
export async function proveReceipt(load: NodeLoader, serial: number, size: number): Promise<Inclusion> {
  return proveInclusion(serial, size, await load(subtreesOf(inclusionRanges(serial - 1, size))))
}

/** Proof that the tree of `to` leaves continues the tree of `from` leaves; hashes in hex. */
export async function proveConsistency(load: NodeLoader, from: number, to: number): Promise<string[]> {
  const ranges = consistencyRanges(from, to)
  return hashesOf(ranges, await load(subtreesOf(ranges))).map((hash) => hash.toString('hex'))
}

/** Root of the tree of `size` leaves. @param size at most the head's */
export async function findRoot(load: NodeLoader, size: number): Promise<Buffer> {
  return rootHash(size, await load(frontierOf(size)))
}

/** Hashes of the complete subtrees of a tree of `size` leaves, as `Growth.frontier` gives them. */
export async function loadFrontier(tx: Tx, size: number): Promise<Buffer> {
  const subtrees = frontierOf(size)
  return Buffer.concat(subtrees.map(await storedNodes(tx)(subtrees)))
}

/** Stored hashes in a row: leaves of receipts at level 0, rows of tree_nodes above. `to` is exclusive. */
interface Stretch {
  level: number
  from: number
  to: number
}

/** The stored hashes a subtree is computed from: its descendants at the next stored level. */
function stretchOf({ level, index }: Subtree): Stretch {
  const kept = Math.floor(level / TILE_HEIGHT) * TILE_HEIGHT
  const width = 2 ** (level - kept)
  return { level: kept, from: index * width, to: (index + 1) * width }
}

const nameOf = ({ level, from, to }: Stretch) => `${level}/${from}-${to}`

/** Loads nodes from the tables. Throws when one is missing. */
export function storedNodes(db: Tx | Database): NodeLoader {
  return async (subtrees) => {
    const stretches = subtrees.map(stretchOf)
    const loaded = await loadStretches(db, stretches)
    const kept = new Map(stretches.map((stretch, n) => [nameOf(stretch), loaded[n]]))
    return (node) => {
      const hashes = kept.get(nameOf(stretchOf(node)))
      if (!hashes) throw new Error(`subtree ${node.level}/${node.index} was not loaded`)
      return rootOfComplete(hashes)
    }
  }
}

const stretchRow = z.object({ hashes: z.instanceof(Buffer).nullable() })

/** One row for each stretch, with its hashes concatenated: a row for each hash costs ten times as much. */
async function loadStretches(db: Tx | Database, stretches: readonly Stretch[]): Promise<Buffer[][]> {
  const rows = await db.any(sql.prepared('load_stretches', stretchRow)`
    select case when level = 0
             then (select string_agg(r.receipt_hash, ''::bytea order by r.serial) from receipts r
                   where r.serial > first and r.serial <= past)
             else (select string_agg(n.hash, ''::bytea order by n.index) from tree_nodes n
                   where n.level = t.level and n.index >= first and n.index < past) end hashes
    from unnest(${column(stretches, 'int2', (s) => s.level)}, ${column(stretches, 'int8', (s) => s.from)},
                ${column(stretches, 'int8', (s) => s.to)}) with ordinality as t (level, first, past, n)
    order by t.n`)
  return stretches.map(({ level, from, to }, n) => {
    const hashes = rows[n]?.hashes
    if (hashes?.length !== (to - from) * HASH_BYTES) throw new Error('the tree over the receipts has a hole')
    return Array.from({ length: to - from }, (_, at) => {
      const hash = hashes.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES)
      return level === 0 ? leafHash(hash) : hash
    })
  })
}

/** Hashes of a tile (C2SP tlog-tiles), or null when the tree ends before it. `width` is 256 for a full tile. */
export async function findTile(
  db: Tx | Database,
  head: Pick<Head, 'serial'>,
  tile: { level: number; index: number; width: number },
): Promise<Buffer | null> {
  const from = tile.index * TILE_WIDTH
  const complete = Math.floor(head.serial / 2 ** (tile.level * TILE_HEIGHT))
  if (from + tile.width > complete) return null
  const stretches = [{ level: tile.level * TILE_HEIGHT, from, to: from + tile.width }]
  return Buffer.concat((await loadStretches(db, stretches)).flat())
}

/** Where a tile is in the tree. */
export interface TilePlace {
  level: number
  index: number
}

/** Hashes of tiles that a head says are full, in one query. Throws when one is not. */
export async function findFullTiles(db: Tx | Database, tiles: readonly TilePlace[]): Promise<Buffer[]> {
  const found = await loadStretches(
    db,
    tiles.map(({ level, index }) => ({
      level: level * TILE_HEIGHT,
      from: index * TILE_WIDTH,
      to: (index + 1) * TILE_WIDTH,
    })),
  )
  return found.map((hashes) => Buffer.concat(hashes))
}

/** Entry bundle of a tile: each receipt_hash after its length in two bytes. Null when the tree ends before it. */
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
