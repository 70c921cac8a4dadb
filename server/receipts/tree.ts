// The Merkle tree over the chain, as in RFC 6962: leaf n−1 is receipt_hash of serial n. O(log n) hashes prove that a head holds
// a receipt, and that one head continues another. Pure: callers provide the nodes.
import { hash } from 'node:crypto'

/** Of a SHA-256 hash. */
export const HASH_BYTES = 32

/** Buffers for the hashed bytes, used again: a hash object for each node would cost more than the hashing. */
const leaf = Buffer.alloc(33, 0)
const pair = Buffer.alloc(65, 1)

/** @param receiptHash 32 bytes. Leaves are hashes of hashes, so tiles and heads reveal no receipt. */
export function leafHash(receiptHash: Uint8Array): Buffer {
  leaf.set(receiptHash, 1)
  return hash('sha256', leaf, 'buffer')
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  pair.set(left, 1)
  pair.set(right, 33)
  return hash('sha256', pair, 'buffer')
}

/** Of the two hashes that begin at an offset. */
export function parentHash(hashes: Buffer, offset: number): Buffer {
  pair.set(hashes.subarray(offset, offset + 2 * HASH_BYTES), 1)
  return hash('sha256', pair, 'buffer')
}

const EMPTY_ROOT = hash('sha256', '', 'buffer')

/** Every eighth level is stored: a tile is 256 hashes wide. */
export const TILE_HEIGHT = 8
export const TILE_WIDTH = 2 ** TILE_HEIGHT

/** A complete subtree: the leaves from index·2^level to (index+1)·2^level. */
export interface Subtree {
  level: number
  index: number
}

export type NodeSource = (node: Subtree) => Buffer

/** The complete subtrees that make up a tree of `size` leaves, largest first. */
export function frontierOf(size: number): Subtree[] {
  return completeSubtrees(0, size)
}

/** The complete subtrees that make up the leaves [from, to), left to right; `from` must be aligned as RFC 6962 splits are. */
function completeSubtrees(from: number, to: number): Subtree[] {
  const found: Subtree[] = []
  for (let at = from; at < to; ) {
    const level = Math.floor(Math.log2(to - at))
    found.push({ level, index: at / 2 ** level })
    at += 2 ** level
  }
  return found
}

/** Root of the leaves [from, to). */
function rangeHash(from: number, to: number, nodeAt: NodeSource): Buffer {
  const parts = completeSubtrees(from, to).map(nodeAt)
  return parts.reduceRight((right, left) => nodeHash(left, right))
}

export function rootHash(size: number, nodeAt: NodeSource): Buffer {
  return size === 0 ? EMPTY_ROOT : rangeHash(0, size, nodeAt)
}

/** Root of a complete subtree. @param hashes its descendants at one level, a power of two of them */
export function rootOfComplete(hashes: readonly Buffer[]): Buffer {
  const [first, second] = hashes
  if (!first) throw new Error('a subtree has at least one hash')
  if (!second) return first
  const middle = hashes.length / 2
  return nodeHash(rootOfComplete(hashes.slice(0, middle)), rootOfComplete(hashes.slice(middle)))
}

/** Largest power of two below `width`, where RFC 6962 splits. */
function split(width: number): number {
  return 2 ** Math.floor(Math.log2(width - 1))
}

/** Root of a tree from its right edge. @param frontier as `Growth.frontier` gives it */
export function rootOfFrontier(frontier: Buffer): Buffer {
  if (frontier.length === 0) return EMPTY_ROOT
  const parts = Array.from({ length: frontier.length / 32 }, (_, n) => frontier.subarray(n * 32, n * 32 + 32))
  return Buffer.from(parts.reduceRight((right, left) => nodeHash(left, right)))
}

type Range = readonly [from: number, to: number]

/** The ranges whose hashes prove leaf `index` in a tree of `size`, from the leaf up. */
export function inclusionRanges(index: number, size: number): Range[] {
  const ranges: Range[] = []
  let from = 0
  let to = size
  while (to - from > 1) {
    const middle = from + split(to - from)
    if (index < middle) {
      ranges.push([middle, to])
      to = middle
    } else {
      ranges.push([from, middle])
      from = middle
    }
  }
  return ranges.reverse()
}

/** Proof that leaf `leaf_index` is in the tree of `tree_size` leaves: the hashes up to its root, in hex. */
export interface Inclusion {
  leaf_index: number
  tree_size: number
  hashes: string[]
}

/** Proof that the receipt with this serial is in the tree of `size` leaves. */
export function proveInclusion(serial: number, size: number, nodeAt: NodeSource): Inclusion {
  const hashes = hashesOf(inclusionRanges(serial - 1, size), nodeAt)
  return { leaf_index: serial - 1, tree_size: size, hashes: hashes.map((hash) => hash.toString('hex')) }
}

/** The ranges whose hashes prove that the tree of `size` continues the one of `old` leaves (RFC 9162 §2.1.4). */
export function consistencyRanges(old: number, size: number): Range[] {
  if (old === 0 || old === size) return []
  const ranges: Range[] = []
  let from = 0
  let to = size
  let whole = true
  while (old !== to) {
    const middle = from + split(to - from)
    if (old <= middle) {
      ranges.push([middle, to])
      to = middle
    } else {
      ranges.push([from, middle])
      from = middle
      whole = false
    }
  }
  if (!whole) ranges.push([from, to])
  return ranges.reverse()
}

export function hashesOf(ranges: readonly Range[], nodeAt: NodeSource): Buffer[] {
  return ranges.map(([from, to]) => rangeHash(from, to, nodeAt))
}

/** Every complete subtree that `hashesOf` reads. */
export function subtreesOf(ranges: readonly Range[]): Subtree[] {
  return ranges.flatMap(([from, to]) => completeSubtrees(from, to))
}

/** A name for maps of nodes. */
export const nodeKey = ({ level, index }: Subtree) => `${level}/${index}`

export interface Node extends Subtree {
  hash: Buffer
}

/** The tree's right edge in memory: what is needed to append, and to prove what was appended. */
export interface Growth {
  size: number
  append(receiptHash: Uint8Array): void
  /** A complete subtree of the old frontier, or one made since. Throws for others. */
  nodeAt: NodeSource
  frontier(): Buffer
  /** Complete subtrees at stored levels that were made since. */
  made(): Node[]
  /** Those half way up a tile. */
  middles(): Node[]
}

/** @param frontier hashes of `frontierOf(size)`, concatenated */
export function growTree(size: number, frontier: Buffer): Growth {
  const nodes = new Map<string, Buffer>()
  const made: Node[] = []
  const middles: Node[] = []
  for (const [n, node] of frontierOf(size).entries()) nodes.set(nodeKey(node), frontier.subarray(n * 32, n * 32 + 32))
  const nodeAt: NodeSource = (node) => {
    const hash = nodes.get(nodeKey(node))
    if (!hash) throw new Error(`subtree ${nodeKey(node)} is not on the right edge`)
    return hash
  }
  const growth: Growth = {
    size,
    append(receiptHash) {
      let node: Subtree = { level: 0, index: growth.size }
      let hash = leafHash(receiptHash)
      nodes.set(nodeKey(node), hash)
      // A complete right child makes its parent complete.
      while (node.index % 2 === 1) {
        hash = nodeHash(nodeAt({ level: node.level, index: node.index - 1 }), hash)
        node = { level: node.level + 1, index: (node.index - 1) / 2 }
        nodes.set(nodeKey(node), hash)
        if (node.level % TILE_HEIGHT === 0) made.push({ ...node, hash })
        else if (node.level % TILE_HEIGHT === TILE_HEIGHT / 2) middles.push({ ...node, hash })
      }
      growth.size++
    },
    nodeAt,
    frontier: () => Buffer.concat(frontierOf(growth.size).map(nodeAt)),
    made: () => made,
    middles: () => middles,
  }
  return growth
}
