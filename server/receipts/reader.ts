// Reads the chain for many callers at once. Receipts and tree nodes never change and are cached. The head does: callers that
// ask at the same time share one query, and it starts after the last of them asked, so none gets a head older than its call.
import { LRUCache } from 'lru-cache'
import { openReads } from '../db/batch.ts'
import { atMost } from '../db/cache-bound.ts'
import type { Database } from '../db/pool.ts'
import type { Attestation } from '../interface/attestation.ts'
import { findAttestations, type NodeLoader, storedNodes } from './archive.ts'
import { type Block, isFull, loadBlocks, nodeIn, placeOf } from './blocks.ts'
import { findHead, type Head } from './head.ts'
import { listKeys } from './keys.ts'
import { openPages, type Pages } from './pages.ts'
import { frontierOf, HASH_BYTES, nodeKey, type Subtree } from './tree.ts'

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

/** Most serials, or blocks of the tree, of one query. */
const MAX_GROUP = 256

export function openReader(db: Database): Reader {
  const heads = openReads<null, Head>(async (asking) => {
    const head = await findHead(db)
    return asking.map(() => head)
  }, Number.POSITIVE_INFINITY)
  const attestations = openReads<number, Attestation | null>((serials) => findAttestations(db, serials), MAX_GROUP)
  const known = new LRUCache<number, Attestation>(atMost(MAX_ATTESTATIONS))
  const blocks = openReads<Block, Buffer>((asked) => loadBlocks(db, asked), MAX_GROUP)
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
    nodes: openNodes(db, (block) => blocks.add(block)),
    async [Symbol.asyncDispose]() {
      await heads[Symbol.asyncDispose]()
      await attestations[Symbol.asyncDispose]()
      await blocks[Symbol.asyncDispose]()
    },
  }
}

async function findCheckpointKeys(db: Database): Promise<readonly string[]> {
  const listed = await listKeys(db)
  return listed.flatMap(({ use, pubkey_hex }) => (use === 'checkpoint' ? [pubkey_hex] : [])).reverse()
}

/** A kilobyte each. */
const MAX_BLOCKS = 32_768
const MAX_NODES = 4096
/** A kilobyte each. */
const MAX_ATTESTATIONS = 16_384

/**
 * The tree in memory: full blocks, and single nodes to the right of them. A complete subtree never changes, so nodes that were read
 * are kept. Gives a loader for the tree of a head, or an older one.
 */
function openNodes(db: Database, loadBlock: (block: Block) => Promise<Buffer>): (head: Head) => NodeLoader {
  const kept = new LRUCache<string, Buffer, Block>({
    ...atMost(MAX_BLOCKS),
    fetchMethod: (_name, _stale, { context: block }) => loadBlock(block),
  })
  const single = new LRUCache<string, Buffer>(atMost(MAX_NODES))

  // Calls that share a query for the head have one and the same.
  let last: { head: Head; load: NodeLoader } | undefined
  return (head) => {
    if (last?.head !== head) last = { head, load: loaderOf(head) }
    return last.load
  }

  function loaderOf(head: Head): NodeLoader {
    const edge = new Map(
      frontierOf(head.serial).map((subtree, n) => [nodeKey(subtree), nodeIn(head.frontier, n * HASH_BYTES)]),
    )
    return async (subtrees) => {
      const found = new Map<string, Buffer>()
      const missing: Subtree[] = []
      const unread: Subtree[] = []
      for (const subtree of subtrees) {
        const name = nodeKey(subtree)
        const { block, offset } = placeOf(subtree)
        const hash = edge.get(name) ?? single.get(name)
        // Most blocks are in the cache already. To create a promise for each of their nodes would cost more than the rest
        // of this work.
        const nodes = hash ? undefined : kept.get(nodeKey(block))
        if (hash) found.set(name, hash)
        else if (nodes) found.set(name, nodeIn(nodes, offset))
        else if (isFull(block, head.serial)) unread.push(subtree)
        else missing.push(subtree)
      }
      await Promise.all(
        unread.map(async (subtree) => {
          const { block, offset } = placeOf(subtree)
          const nodes = await kept.forceFetch(nodeKey(block), { context: block })
          found.set(nodeKey(subtree), nodeIn(nodes, offset))
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
