// Reads the chain for many callers at once. Receipts and tree nodes never change and are cached. The head does: callers that
// ask at the same time share one query, and it starts after the last of them asked, so none gets a head older than its call.
import { LRUCache } from 'lru-cache'
import { openBatcher, READ_GATHER_MS } from '../db/batch.ts'
import type { Database } from '../db/pool.ts'
import type { Attestation } from '../interface/attestation.ts'
import { findAttestations, findFullTiles, type NodeLoader, storedNodes, TILE_WIDTH, type TilePlace } from './archive.ts'
import { findHead, type Head } from './head.ts'
import { listKeys } from './keys.ts'
import { openPages, type Pages } from './pages.ts'
import { frontierOf, nodeHash, nodeKey, type Subtree, TILE_HEIGHT } from './tree.ts'

export interface Reader extends AsyncDisposable {
  head(): Promise<Head>
  /** Public keys of checkpoints in hex, newest first: those of this head, and perhaps newer ones. */
  checkpointKeys(head: Head): Promise<readonly string[]>
  /** Null when there is none. */
  attestation(serial: number): Promise<Attestation | null>
  pages: Pages
  /** A loader of nodes of the tree of this head, or of an older one. */
  nodes(head: Head): NodeLoader
}

/** Most serials of one query. */
const MAX_GROUP = 256
/** Most tiles of one query: 256 hashes each. */
const MAX_TILE_GROUP = 32

export function openReader(db: Database): Reader {
  const heads = openBatcher<null, Head>(
    async (asking) => {
      const head = await findHead(db)
      return asking.map(() => head)
    },
    { batch: Number.POSITIVE_INFINITY, queue: Number.POSITIVE_INFINITY, gatherMs: READ_GATHER_MS },
  )
  const attestations = openBatcher<number, Attestation | null>((serials) => findAttestations(db, serials), {
    batch: MAX_GROUP,
    queue: Number.POSITIVE_INFINITY,
    gatherMs: READ_GATHER_MS,
  })
  const known = new LRUCache<number, Attestation>({ max: MAX_ATTESTATIONS })
  const tiles = openBatcher<TilePlace, Buffer>((places) => findFullTiles(db, places), {
    batch: MAX_TILE_GROUP,
    queue: Number.POSITIVE_INFINITY,
    gatherMs: READ_GATHER_MS,
  })
  let keys: { changes: number; found: Promise<readonly string[]> } | undefined
  return {
    head: () => heads.add(null),
    checkpointKeys({ key_changes: changes }) {
      if (keys?.changes === changes) return keys.found
      const asked = { changes, found: findCheckpointKeys(db) }
      // A failure is not kept.
      asked.found.catch(() => {
        if (keys === asked) keys = undefined
      })
      keys = asked
      return asked.found
    },
    async attestation(serial) {
      const kept = known.get(serial)
      if (kept) return kept
      const found = await attestations.add(serial)
      // That there is none yet is not kept.
      if (found) known.set(serial, found)
      return found
    },
    pages: openPages(db),
    nodes: openNodes(db, (place) => tiles.add(place)),
    async [Symbol.asyncDispose]() {
      await heads[Symbol.asyncDispose]()
      await attestations[Symbol.asyncDispose]()
      await tiles[Symbol.asyncDispose]()
    },
  }
}

async function findCheckpointKeys(db: Database): Promise<readonly string[]> {
  const listed = await listKeys(db)
  return listed.flatMap(({ use, pubkey_hex }) => (use === 'checkpoint' ? [pubkey_hex] : [])).reverse()
}

/** Of a SHA-256 hash. */
const BYTES = 32
/** Nodes of a tile, which are kept in one buffer: level by level from its 256 hashes to its root. */
const NODES = 2 * TILE_WIDTH - 1
/** 16 kB each. */
const MAX_TILES = 2048
const MAX_NODES = 4096
/** A kilobyte each. */
const MAX_ATTESTATIONS = 16_384

/**
 * The tree in memory: full tiles, from which all proofs over the older part of the log come, and single nodes to the right of
 * them. A complete subtree never changes, so nodes that were read are kept. Gives a loader for the tree of a head, or an older one.
 */
function openNodes(db: Database, findTile: (place: TilePlace) => Promise<Buffer>): (head: Head) => NodeLoader {
  const kept = new LRUCache<string, Buffer, TilePlace>({
    max: MAX_TILES,
    fetchMethod: async (_name, _stale, { context: tile }) => growNodes(await findTile(tile)),
  })
  const single = new LRUCache<string, Buffer>({ max: MAX_NODES })
  const nodesOf = (tile: TilePlace) => kept.forceFetch(nodeKey(tile), { context: tile })

  // Calls that share a query for the head have one and the same.
  let last: { head: Head; load: NodeLoader } | undefined
  return (head) => {
    if (last?.head !== head) last = { head, load: loaderOf(head) }
    return last.load
  }

  function loaderOf(head: Head): NodeLoader {
    const edge = new Map(
      frontierOf(head.serial).map((subtree, n) => [
        nodeKey(subtree),
        head.frontier.subarray(n * BYTES, (n + 1) * BYTES),
      ]),
    )
    return async (subtrees) => {
      const found = new Map<string, Buffer>()
      const missing: Subtree[] = []
      const unread: Subtree[] = []
      const take = (subtree: Subtree, { nodes, offset }: { nodes: Buffer; offset: number }) =>
        found.set(nodeKey(subtree), nodes.subarray(offset, offset + BYTES))
      for (const subtree of subtrees) {
        const name = nodeKey(subtree)
        const { tile, offset } = placeOf(subtree)
        const hash = edge.get(name) ?? single.get(name)
        // Most tiles are kept, and a promise for each of their nodes would cost more than the rest.
        const nodes = hash ? undefined : kept.get(nodeKey(tile))
        if (hash) found.set(name, hash)
        else if (nodes) take(subtree, { nodes, offset })
        else if (isFull(tile, head)) unread.push(subtree)
        else missing.push(subtree)
      }
      await Promise.all(
        unread.map(async (subtree) => {
          const { tile, offset } = placeOf(subtree)
          take(subtree, { nodes: await nodesOf(tile), offset })
        }),
      )
      if (missing.length > 0) {
        const stored = await storedNodes(db)(missing)
        for (const subtree of missing) {
          found.set(nodeKey(subtree), stored(subtree))
          single.set(nodeKey(subtree), stored(subtree))
        }
      }
      return (subtree) => {
        const hash = found.get(nodeKey(subtree))
        if (!hash) throw new Error(`subtree ${nodeKey(subtree)} was not loaded`)
        return hash
      }
    }
  }
}

function isFull({ level, index }: TilePlace, { serial }: Head): boolean {
  return (index + 1) * TILE_WIDTH <= Math.floor(serial / 2 ** (level * TILE_HEIGHT))
}

/** The tile that holds a subtree's root, and the root's offset among the tile's nodes, in bytes. */
function placeOf({ level, index }: Subtree): { tile: TilePlace; offset: number } {
  const height = level % TILE_HEIGHT
  const width = TILE_WIDTH / 2 ** height
  const before = 2 * TILE_WIDTH - 2 * width
  const tile = { level: Math.floor(level / TILE_HEIGHT), index: Math.floor(index / width) }
  return { tile, offset: (before + (index % width)) * BYTES }
}

function growNodes(hashes: Buffer): Buffer {
  const nodes = Buffer.alloc(NODES * BYTES)
  hashes.copy(nodes)
  // Each level follows the level of its children, in their order.
  for (let parent = TILE_WIDTH, child = 0; parent < NODES; parent++, child += 2) {
    const [left, right] = [child * BYTES, (child + 1) * BYTES]
    nodeHash(nodes.subarray(left, right), nodes.subarray(right, right + BYTES)).copy(nodes, parent * BYTES)
  }
  return nodes
}
