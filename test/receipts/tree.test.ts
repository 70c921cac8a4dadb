// The service's tree and the client's verifier of its proofs, compared with the definitions of RFC 6962.
import { createHash } from 'node:crypto'
import t from 'tap'
import { isContinued, isIncluded, rootOfInclusion, TreeGrowth } from '../../client/chain/merkle.ts'
import {
  consistencyRanges,
  frontierOf,
  growTree,
  hashesOf,
  inclusionRanges,
  leafHash,
  type NodeSource,
  nodeHash,
  rootHash,
  rootOfFrontier,
} from '../../server/receipts/tree.ts'
import { referenceTree } from './rfc6962.ts'

const SIZES = 130
const leaves = Array.from({ length: SIZES }, (_, n) => createHash('sha256').update(`receipt ${n}`).digest())
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const reference = referenceTree(leaves)
const heads = Array.from({ length: SIZES + 1 }, (_, size) => ({
  tree_size: size,
  root_hash: hex(reference.root(size)),
}))

/** Every complete subtree, level by level from the leaves; in the service the database provides them. */
const levels = [leaves.map(leafHash)]
for (let below = levels[0]!; below.length > 1; below = levels.at(-1)!)
  levels.push(Array.from({ length: below.length >> 1 }, (_, n) => nodeHash(below[2 * n]!, below[2 * n + 1]!)))
const nodeAt: NodeSource = ({ level, index }) => levels[level]![index]!

t.test('roots of trees grown leaf by leaf, in batches, and from stored nodes', async (t) => {
  const client = new TreeGrowth()
  let frontier = Buffer.alloc(0)
  for (let size = 0; size <= SIZES; size++) {
    const expected = heads[size]!.root_hash
    const found = [hex(rootHash(size, nodeAt)), hex(rootOfFrontier(frontier)), client.head().root_hash]
    if (found.some((root) => root !== expected)) t.fail(`size ${size}: ${found}`)
    if (size === SIZES) break
    const grown = growTree(size, frontier)
    grown.append(leaves[size]!)
    frontier = Buffer.from(grown.frontier())
    client.append(hex(leaves[size]!))
  }
  for (const start of [0, 1, 5, 64, 100]) {
    const grown = growTree(start, Buffer.concat(frontierOf(start).map(nodeAt)))
    for (const leaf of leaves.slice(start)) grown.append(leaf)
    t.equal(hex(rootHash(SIZES, grown.nodeAt)), heads[SIZES]!.root_hash, `from ${start}`)
  }
})

t.test('every inclusion proof of every size', async (t) => {
  let checked = 0
  for (let size = 1; size <= SIZES; size++)
    for (let index = 0; index < size; index++) {
      const proof = hashesOf(inclusionRanges(index, size), nodeAt).map(hex)
      const expected = reference.path(index, size).map(hex)
      if (proof.join() !== expected.join()) t.fail(`leaf ${index} of ${size}`)
      const given = { leaf_index: index, tree_size: size, hashes: proof }
      if (!isIncluded(hex(leaves[index]!), given, heads[size]!)) t.fail(`leaf ${index} of ${size} is not believed`)
      checked++
    }
  t.equal(checked, (SIZES * (SIZES + 1)) / 2)
})

t.test('every consistency proof between two sizes', async (t) => {
  let checked = 0
  for (let to = 1; to <= SIZES; to++)
    for (let from = 0; from <= to; from++) {
      const proof = hashesOf(consistencyRanges(from, to), nodeAt).map(hex)
      const expected = from === 0 ? [] : reference.proof(from, to).map(hex)
      if (proof.join() !== expected.join()) t.fail(`${from} to ${to}`)
      if (!isContinued(heads[from]!, heads[to]!, proof)) t.fail(`${from} to ${to} is not believed`)
      checked++
    }
  t.equal(checked, (SIZES * (SIZES + 3)) / 2)
})

t.test('an inclusion proof that is wrong in one place is refused', async (t) => {
  for (let size = 1; size <= 20; size++)
    for (let index = 0; index < size; index++) {
      const hashes = reference.path(index, size).map(hex)
      const good = { leaf_index: index, tree_size: size, hashes }
      const believed = (change: Partial<typeof good>, leaf = index, head = heads[size]!) =>
        isIncluded(hex(leaves[leaf]!), { ...good, ...change }, head)
      const wrong = [
        ...hashes.flatMap((_, at) => [
          believed({ hashes: hashes.with(at, hex(leaves[0]!)) }),
          believed({ hashes: hashes.toSpliced(at, 1) }),
          believed({ hashes: hashes.toSpliced(at, 0, hashes[at]!) }),
        ]),
        believed({ hashes: [...hashes, hex(leaves[0]!)] }),
        believed({ tree_size: size + 1 }),
        believed({ leaf_index: size }),
        believed({}, (index + 1) % SIZES),
        believed({}, index, heads[size + 1]!),
        ...Array.from({ length: size }, (_, other) => other !== index && believed({ leaf_index: other })),
      ]
      if (wrong.includes(true)) t.fail(`leaf ${index} of ${size}: change ${wrong.indexOf(true)}`)
    }
  t.equal(rootOfInclusion(hex(leaves[0]!), { leaf_index: 0, tree_size: 3, hashes: [] }), null)
})

t.test('a consistency proof that is wrong in one place is refused', async (t) => {
  for (let to = 2; to <= 20; to++)
    for (let from = 1; from < to; from++) {
      const hashes = reference.proof(from, to).map(hex)
      const other = { tree_size: from, root_hash: hex(leaves[from]!) }
      const wrong = [
        ...hashes.flatMap((_, at) => [
          isContinued(heads[from]!, heads[to]!, hashes.with(at, hex(leaves[0]!))),
          isContinued(heads[from]!, heads[to]!, hashes.toSpliced(at, 1)),
          isContinued(heads[from]!, heads[to]!, hashes.toSpliced(at, 0, hashes[at]!)),
        ]),
        isContinued(heads[from]!, heads[to]!, [...hashes, hex(leaves[0]!)]),
        isContinued(other, heads[to]!, hashes),
        isContinued(heads[from]!, { tree_size: to, root_hash: hex(leaves[to]!) }, hashes),
        isContinued(heads[to]!, heads[from]!, hashes),
        isContinued(heads[from]!, { ...heads[from]!, root_hash: heads[to]!.root_hash }, []),
      ]
      if (wrong.includes(true)) t.fail(`${from} to ${to}: change ${wrong.indexOf(true)}`)
    }
})
