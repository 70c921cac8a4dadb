// The tree in memory: full tiles, from which all proofs over the older part of the log come, and single nodes right of them.
// A complete subtree never changes, so whatever was read once need not be read again.
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
const MAX_NODES = 4096

export function buildTiles(db: Database): Tiles {
  const kept = new LRUCache<string, Buffer, Tile>({
    max: MAX_TILES,
    fetchMethod: async (_name, _stale, { context: tile }) => growNodes(await loadTile(db, tile)),
  })
  const single = new LRUCache<string, Buffer>({ max: MAX_NODES })
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
        const found = new Map<string, Buffer>()
        const missing: Subtree[] = []
        const load = async (subtree: Subtree) => {
          const name = nameOf(subtree)
          const { tile, offset } = placeOf(subtree)
          const known = edge.get(name) ?? single.get(name)
          if (known) found.set(name, known)
          else if (isFull(tile, head)) found.set(name, (await nodesOf(tile)).subarray(offset, offset + BYTES))
          else missing.push(subtree)
        }
        await Promise.all(subtrees.map(load))
        const stored = missing.length > 0 ? await storedNodes(db)(missing) : null
        for (const subtree of missing) {
          found.set(nameOf(subtree), stored!(subtree))
          single.set(nameOf(subtree), stored!(subtree))
        }
        return (subtree) => {
          const hash = found.get(nameOf(subtree))
          if (!hash) throw new Error(`subtree ${nameOf(subtree)} was not loaded`)
          return hash
        }
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
