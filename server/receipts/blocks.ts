// Blocks of the stored tree: complete subtrees four levels high, two of them above each other in a tile. The lower ones come from the
// rows of receipts or of tree_nodes. The upper one comes from its row of tile_middles, and without that from all of the tile.
import { z } from 'zod'
import { column, type Database, nothing, relaxed, sql } from '../db/pool.ts'
import { findFullTiles } from './archive.ts'
import { findHead } from './head.ts'
import { HASH_BYTES, leafHash, parentHash, rootOfComplete, type Subtree, TILE_HEIGHT, TILE_WIDTH } from './tree.ts'

const BLOCK_HEIGHT = TILE_HEIGHT / 2
const WIDTH = 2 ** BLOCK_HEIGHT
/** Nodes of a block, which are kept in one buffer: level by level from its 16 hashes to its root. */
const NODES = 2 * WIDTH - 1

/** `level` counts blocks from the leaves up: the hashes of a block are the nodes from level * 4 on. */
export type Block = Subtree

/** The block that holds a subtree's root, and the root's offset among the block's nodes, in bytes. */
export function placeOf({ level, index }: Subtree): { block: Block; offset: number } {
  const width = WIDTH / 2 ** (level % BLOCK_HEIGHT)
  const before = 2 * WIDTH - 2 * width
  const block = { level: Math.floor(level / BLOCK_HEIGHT), index: Math.floor(index / width) }
  return { block, offset: (before + (index % width)) * HASH_BYTES }
}

/** The hash at such an offset. */
export function nodeIn(nodes: Buffer, offset: number): Buffer {
  return nodes.subarray(offset, offset + HASH_BYTES)
}

/** Whether all leaves below a block are in the tree of `size` leaves. */
export function isFull({ level, index }: Block, size: number): boolean {
  return (index + 1) * WIDTH ** (level + 1) <= size
}

/** The upper block of a tile. */
const isUpper = ({ level }: Block) => level % 2 === 1

const blockRow = z.object({ hashes: z.instanceof(Buffer).nullable(), root: z.instanceof(Buffer).nullable() })

/** The nodes of blocks that are full, in one query, as far as their tiles have a row in tile_middles. Throws when one is not full. */
export async function loadBlocks(db: Database, blocks: readonly Block[]): Promise<Buffer[]> {
  const rows = await db.any(sql.prepared('load_blocks', blockRow)`
    select case
             when t.level % 2 = 1 then (select m.hashes from tile_middles m where m.level = t.level / 2 and m.index = t.index)
             when t.level = 0 then (select string_agg(r.receipt_hash, ''::bytea order by r.serial) from receipts r
                                    where r.serial > t.index * 16 and r.serial <= t.index * 16 + 16)
             else (select string_agg(n.hash, ''::bytea order by n.index) from tree_nodes n
                   where n.level = t.level * 4 and n.index >= t.index * 16 and n.index < t.index * 16 + 16) end hashes,
           case when t.level % 2 = 1
             then (select n.hash from tree_nodes n where n.level = t.level * 4 + 4 and n.index = t.index) end root
    from unnest(${column(blocks, 'int2', (block) => block.level)}, ${column(blocks, 'int8', (block) => block.index)})
      with ordinality as t (level, index, n)
    order by t.n`)
  const loaded = blocks.map((block, n) => nodesOf(block, rows[n]))
  const unread = blocks.filter((_, n) => loaded[n] === null)
  if (unread.length === 0) return loaded.filter((nodes) => nodes !== null)
  const made: Buffer[] = []
  for (let n = 0; n < unread.length; n += STEP)
    made.push(...(await loadMiddles(db, unread.slice(n, n + STEP).map(tileOf))))
  const grown = made.map(growNodes).values()
  // One for each null in `loaded`, in their order.
  return loaded.map((nodes) => nodes ?? grown.next().value!)
}

/**
 * Null for an upper block without a row, or with a row that does not hash to the stored root: it is then computed from
 * the receipts.
 */
function nodesOf(block: Block, row: z.output<typeof blockRow> | undefined): Buffer | null {
  const { hashes = null, root = null } = row ?? {}
  if (isUpper(block)) {
    const nodes = hashes && growNodes(hashes)
    return nodes && root?.equals(nodes.subarray(-HASH_BYTES)) ? nodes : null
  }
  if (hashes?.length !== WIDTH * HASH_BYTES) throw new Error('the tree over the receipts has a hole')
  return growNodes(block.level === 0 ? Buffer.concat(split(hashes).map(leafHash)) : hashes)
}

function split(hashes: Buffer): Buffer[] {
  return Array.from({ length: hashes.length / HASH_BYTES }, (_, n) => nodeIn(hashes, n * HASH_BYTES))
}

/** The nodes of a block from its hashes. */
function growNodes(hashes: Buffer): Buffer {
  const nodes = Buffer.alloc(NODES * HASH_BYTES)
  hashes.copy(nodes)
  // Each level follows the level of its children, in their order.
  for (let parent = WIDTH, child = 0; parent < NODES; parent++, child += 2)
    nodes.set(parentHash(nodes, child * HASH_BYTES), parent * HASH_BYTES)
  return nodes
}

type Tile = Subtree

/**
 * Tiles that one statement reads completely. To hash them takes some milliseconds; between two statements the process
 * does other work.
 */
const STEP = 16

const tileOf = ({ level, index }: Block): Tile => ({ level: (level - 1) / 2, index })

/** The hashes half way up full tiles, computed from all of their hashes. */
async function loadMiddles(db: Database, tiles: readonly Tile[]): Promise<Buffer[]> {
  return (await findFullTiles(db, tiles)).map((tile) => {
    const hashes = split(tile)
    return Buffer.concat(
      Array.from({ length: WIDTH }, (_, n) => rootOfComplete(hashes.slice(n * WIDTH, (n + 1) * WIDTH))),
    )
  })
}

/** Tile levels that a chain can fill. */
const LEVELS = 4
/** Milliseconds of one run, which starts every minute. */
const MAX_RUN_MS = 20_000

/**
 * Makes the rows of tile_middles that are missing after the last one. After a run that was ended early, the next run
 * continues at the same place.
 * @param options `signal` ends it early; `maxRunMs`: no step is begun after this time
 * @returns rows made
 */
export async function fillMiddles(
  db: Database,
  { signal, maxRunMs = MAX_RUN_MS }: { signal?: AbortSignal | undefined; maxRunMs?: number } = {},
): Promise<number> {
  const ends = performance.now() + maxRunMs
  const { serial } = await findHead(db)
  let made = 0
  for (let level = 0; level < LEVELS; level++) {
    const full = Math.floor(serial / TILE_WIDTH ** (level + 1))
    for (let next = await findNext(db, level); next < full; next += STEP) {
      if (performance.now() >= ends || signal?.aborted) return made
      const tiles = Array.from({ length: Math.min(STEP, full - next) }, (_, n) => ({ level, index: next + n }))
      await storeMiddles(db, tiles, await loadMiddles(db, tiles))
      made += tiles.length
    }
  }
  return made
}

function findNext(db: Database, level: number): Promise<number> {
  return db.oneFirst(sql.type(z.object({ next: z.number() }))`
    select coalesce(max(index) + 1, 0) next from tile_middles where level = ${level}`)
}

/** Two processes that make the same row compute the same hashes, and rows that a crash loses are made again. */
async function storeMiddles(db: Database, tiles: readonly Tile[], middles: readonly Buffer[]) {
  await db.query(sql.type(nothing)`
    with ${relaxed}
    insert into tile_middles (level, index, hashes)
    select level, index, hashes
    from relaxed, unnest(${column(tiles, 'int2', ({ level }) => level)}, ${column(tiles, 'int8', ({ index }) => index)},
                ${column(middles, 'bytea', (hashes) => hashes)}) as t (level, index, hashes)
    on conflict do nothing`)
}
