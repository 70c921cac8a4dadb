// The Merkle tree over the chain (RFC 6962): leaf n−1 is receipt_hash of serial n. Verifies proofs of O(log n) hashes
// that a receipt belongs to a head, and that one head continues another. Pure and offline.
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js'

/** That leaf `leaf_index` is in the tree of `tree_size` leaves; hashes in hex, from the leaf up. */
export interface Inclusion {
  leaf_index: number
  tree_size: number
  hashes: string[]
}

/** A tree by its size and the root over it, 64 hex characters. */
export interface TreeHead {
  tree_size: number
  root_hash: string
}

const LEAF = Uint8Array.of(0)
const NODE = Uint8Array.of(1)

export function leafHash(receiptHash: string): Uint8Array {
  return sha256(concatBytes(LEAF, hexToBytes(receiptHash)))
}

function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  return sha256(concatBytes(NODE, left, right))
}

/** The root that a proof leads to, in hex; null for an invalid proof. RFC 9162, 2.1.3.2. */
export function rootOfInclusion(receiptHash: string, { leaf_index, tree_size, hashes }: Inclusion): string | null {
  if (!(leaf_index < tree_size)) return null
  let at = leaf_index
  let last = tree_size - 1
  let root = leafHash(receiptHash)
  for (const hash of hashes.map(hexToBytes)) {
    if (last === 0) return null
    if (at % 2 === 1 || at === last) {
      root = nodeHash(hash, root)
      ;[at, last] = climb(at, last)
    } else root = nodeHash(root, hash)
    at = Math.floor(at / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 ? bytesToHex(root) : null
}

/** Over the levels on which the right edge has no sibling. */
function climb(at: number, last: number): [at: number, last: number] {
  if (at % 2 === 1 || at === 0) return [at, last]
  return climb(at / 2, Math.floor(last / 2))
}

/** Whether the receipt is in the tree of that head, at `leaf_index`: its serial must be the next number. */
export function isIncluded(receiptHash: string, proof: Inclusion, head: TreeHead): boolean {
  return proof.tree_size === head.tree_size && rootOfInclusion(receiptHash, proof) === head.root_hash
}

/** Whether the tree of `to` begins with the tree of `from`. RFC 9162, 2.1.4.2. */
export function isContinued(from: TreeHead, to: TreeHead, hashes: readonly string[]): boolean {
  if (from.tree_size === to.tree_size) return hashes.length === 0 && from.root_hash === to.root_hash
  if (from.tree_size === 0) return hashes.length === 0
  if (from.tree_size > to.tree_size) return false
  let at = from.tree_size - 1
  let last = to.tree_size - 1
  while (at % 2 === 1) [at, last] = [(at - 1) / 2, Math.floor(last / 2)]
  const path = hashes.map(hexToBytes)
  // A tree of 2^n leaves is a node of every later one: the proof need not repeat its root.
  if (at === 0) path.unshift(hexToBytes(from.root_hash))
  const [first, ...rest] = path
  if (!first) return false
  let before: Uint8Array = first
  let after: Uint8Array = first
  for (const hash of rest) {
    if (last === 0) return false
    if (at % 2 === 1 || at === last) {
      before = nodeHash(hash, before)
      after = nodeHash(hash, after)
      ;[at, last] = climb(at, last)
    } else after = nodeHash(after, hash)
    at = Math.floor(at / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 && bytesToHex(before) === from.root_hash && bytesToHex(after) === to.root_hash
}

/** Grows a tree leaf by leaf and keeps its right edge alone. */
export class TreeGrowth {
  #size = 0
  /** Roots of the complete subtrees, largest first. */
  readonly #edge: Uint8Array[] = []

  append(receiptHash: string): void {
    let hash = leafHash(receiptHash)
    for (let n = this.#size; n % 2 === 1; n = (n - 1) / 2) hash = nodeHash(this.#edge.pop()!, hash)
    this.#edge.push(hash)
    this.#size++
  }

  head(): TreeHead {
    const root = this.#edge.length === 0 ? sha256(new Uint8Array()) : this.#edge.reduceRight((r, l) => nodeHash(l, r))
    return { tree_size: this.#size, root_hash: bytesToHex(root) }
  }
}
