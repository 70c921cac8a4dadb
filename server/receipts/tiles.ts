// Full tiles, kept in memory: they never change, and all proofs over the older part of the log come from them. What lies
// right of them is in the head's row, or a few receipts that are read each time.
import { LRUCache } from 'lru-cache'
import type { Database } from '../db/pool.ts'
import { findTile, type NodeLoader, storedNodes, TILE_WIDTH } from './archive.ts'
import type { Head } from './head.ts'
import { frontierOf, nodeHash, type Subtree, TILE_HEIGHT } from './tree.ts'

export interface Tiles {
  /** Loads complete subtrees of the tree that this head is of, or of an older one. */
  under(head: Head): NodeLoader
}

interface Tile {
  level: number
  index: number
}

const BYTES = 32
/** All nodes of a tile in one piece, level by level from its 256 hashes to its one root. */
const NODES = 2 * TILE_WIDTH - 1
/** 16 kB each. */
const MAX_TILES = 2048

export function buildTiles(db: Database): Tiles {
  const kept = new LRUCache<string, Buffer, Tile>({
    max: MAX_TILES,
    fetchMethod: async (_name, _stale, { context: tile }) => growNodes(await loadTile(db, tile)),
  })
  const nodesOf = (tile: Tile) => kept.forceFetch(`${tile.level}/${tile.index}`, { context: tile })

  return {
    under(head) {
      const edge = new Map(
        frontierOf(head.serial).map((subtree, n) => [
          nameOf(subtree),
          head.frontier.subarray(n * BYTES, (n + 1) * BYTES),
        ]),
      )
      return async (subtrees) => {
        const found = new Map(edge)
        const open: Subtree[] = []
        const inTiles = subtrees
          .filter((subtree) => !edge.has(nameOf(subtree)))
          .map(async (subtree) => {
            const { tile, offset } = placeOf(subtree)
            if (!isFull(tile, head)) return void open.push(subtree)
            found.set(nameOf(subtree), (await nodesOf(tile)).subarray(offset, offset + BYTES))
          })
        await Promise.all(inTiles)
        const stored = open.length > 0 ? await storedNodes(db)(open) : null
        return (subtree) => found.get(nameOf(subtree)) ?? stored!(subtree)
      }
    },
  }
}

const nameOf = ({ level, index }: Subtree) => `${level}/${index}`

function isFull({ level, index }: Tile, { serial }: Head): boolean {
  return (index + 1) * TILE_WIDTH <= Math.floor(serial / 2 ** (level * TILE_HEIGHT))
}

/** In which tile a subtree's root stands, and where among its nodes. */
function placeOf({ level, index }: Subtree): { tile: Tile; offset: number } {
  const height = level % TILE_HEIGHT
  const width = TILE_WIDTH / 2 ** height
  const before = 2 * TILE_WIDTH - 2 * width
  const tile = { level: Math.floor(level / TILE_HEIGHT), index: Math.floor(index / width) }
  return { tile, offset: (before + (index % width)) * BYTES }
}

/** Of a tile that is full: whoever asks has seen a head that says so. */
async function loadTile(db: Database, tile: Tile): Promise<Buffer> {
  const hashes = await findTile(db, { serial: Number.MAX_SAFE_INTEGER }, { ...tile, width: TILE_WIDTH })
  return hashes!
}

function growNodes(hashes: Buffer): Buffer {
  const nodes = Buffer.alloc(NODES * BYTES)
  hashes.copy(nodes)
  // A parent stands behind all nodes before it, in the order of its children.
  for (let parent = TILE_WIDTH, child = 0; parent < NODES; parent++, child += 2) {
    const [left, right] = [child * BYTES, (child + 1) * BYTES]
    nodeHash(nodes.subarray(left, right), nodes.subarray(right, right + BYTES)).copy(nodes, parent * BYTES)
  }
  return nodes
}
