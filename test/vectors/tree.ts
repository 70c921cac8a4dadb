// The tree over the chain: roots, proofs and signed heads, by RFC 6962's definitions.
import { sha256 } from '../client/issuer.ts'
import { CHECKPOINT_KEY, issuerKey, LOG_NAME, VKEY, verifierKey } from '../client/log-issuer.ts'
import { referenceTree } from '../receipts/rfc6962.ts'
import { signNote } from './note.ts'

const LEAVES = Array.from({ length: 33 }, (_, index) => sha256(`receipt ${index + 1}`))
const tree = referenceTree(LEAVES.map((leaf) => Buffer.from(leaf, 'hex')))
const hex = (hashes: Buffer[]) => hashes.map((hash) => hash.toString('hex'))
const root = (size: number) => tree.root(size).toString('hex')

/** The leaves and roots that implementations of Certificate Transparency have in common; theirs are of any length. */
const TRANSPARENCY = {
  leaves: ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'],
  roots: [
    '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
    'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
    '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
    'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
    '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
  ],
}

interface InclusionCase {
  name: string
  leaf: string
  inclusion: { leaf_index: number; tree_size: number; hashes: string[] }
  root_hash: string
  good: boolean
}

function inclusion(leaf_index: number, tree_size: number, change: Partial<InclusionCase> & { hashes?: string[] } = {}) {
  const { hashes = hex(tree.path(leaf_index, tree_size)), ...members } = change
  const name = `leaf ${leaf_index} of ${tree_size}`
  return {
    name,
    leaf: LEAVES[leaf_index]!,
    inclusion: { leaf_index, tree_size, hashes },
    root_hash: root(tree_size),
    good: true,
    ...members,
  }
}

function inclusionCases(): InclusionCase[] {
  const small = [1, 2, 3, 4, 5, 7, 8].flatMap((size) => LEAVES.slice(0, size).map((_, index) => inclusion(index, size)))
  const large = [20, 32, 33].flatMap((size) => [0, 15, 16, size - 1].map((index) => inclusion(index, size)))
  const path = hex(tree.path(5, 20))
  const bad = (name: string, change: Parameters<typeof inclusion>[2], index = 5, size = 20) =>
    inclusion(index, size, { name, good: false, ...change })
  return [
    ...small,
    ...large,
    bad('another leaf', { leaf: LEAVES[6]! }),
    bad('another root', { root_hash: root(19) }),
    bad('the place of another leaf', { inclusion: { leaf_index: 4, tree_size: 20, hashes: path } }),
    bad('another size', { inclusion: { leaf_index: 5, tree_size: 21, hashes: path }, root_hash: root(21) }),
    bad('a place outside the tree', { inclusion: { leaf_index: 20, tree_size: 20, hashes: path } }),
    bad('a hash changed', { hashes: path.with(2, sha256('x')) }),
    bad('two hashes exchanged', { hashes: path.with(0, path[1]!).with(1, path[0]!) }),
    bad('a hash missing', { hashes: path.slice(0, -1) }),
    bad('a hash too many', { hashes: [...path, sha256('x')] }),
    bad('a hash in a tree of one', { hashes: [sha256('x')] }, 0, 1),
    bad('no hash in a tree of two', { hashes: [] }, 0, 2),
    bad('a node of the tree passed off as a leaf', {
      leaf: path[0]!,
      inclusion: { leaf_index: 2, tree_size: 10, hashes: path.slice(1) },
    }),
  ]
}

interface ConsistencyCase {
  name: string
  from: { tree_size: number; root_hash: string }
  to: { tree_size: number; root_hash: string }
  hashes: string[]
  good: boolean
}

function consistency(from: number, to: number, change: Partial<ConsistencyCase> = {}): ConsistencyCase {
  return {
    name: `${from} to ${to}`,
    from: { tree_size: from, root_hash: root(from) },
    to: { tree_size: to, root_hash: root(to) },
    hashes: from === to ? [] : hex(tree.proof(from, to)),
    good: true,
    ...change,
  }
}

function consistencyCases(): ConsistencyCase[] {
  const sizes = [1, 2, 3, 4, 6, 7, 8, 13, 16, 20, 32, 33]
  const good = sizes.flatMap((from) => sizes.filter((to) => to >= from).map((to) => consistency(from, to)))
  const { hashes, from, to } = consistency(6, 20)
  const bad = (name: string, change: Partial<ConsistencyCase>) => consistency(6, 20, { name, good: false, ...change })
  const fork = referenceTree(LEAVES.with(3, sha256('another history')).map((leaf) => Buffer.from(leaf, 'hex')))
  return [
    ...good,
    bad('a fork: another leaf before the older head', { to: { ...to, root_hash: fork.root(20).toString('hex') } }),
    bad('the proof of the fork', {
      to: { ...to, root_hash: fork.root(20).toString('hex') },
      hashes: hex(fork.proof(6, 20)),
    }),
    bad('another older root', { from: { ...from, root_hash: root(5) } }),
    bad('a rollback', { from: to, to: from }),
    bad('a hash changed', { hashes: hashes.with(1, sha256('x')) }),
    bad('a hash missing', { hashes: hashes.slice(0, -1) }),
    bad('a hash too many', { hashes: [...hashes, sha256('x')] }),
    bad('no proof', { hashes: [] }),
    bad('two roots for one size', { to: { tree_size: 6, root_hash: root(7) }, hashes: [] }),
    bad('a proof where none is needed', { to: from, hashes: [sha256('x')] }),
  ]
}

export const merkleVectors = {
  leaves: LEAVES,
  roots: Object.fromEntries(Array.from({ length: 34 }, (_, size) => [size, root(size)])),
  certificate_transparency: TRANSPARENCY,
  inclusion: inclusionCases(),
  consistency: consistencyCases(),
}

const next = issuerKey(4)
const base64Root = (size: number) => tree.root(size).toString('base64')
const text = (size: number | string, name = LOG_NAME) => `${name}\n${size}\n${base64Root(20)}\n`
const honest = signNote(text(20), [CHECKPOINT_KEY])
const line = (note: string) => note.slice(note.indexOf('\n\n') + 2)

interface NoteCase {
  name: string
  note: string
  vkey?: string
  good: boolean
}

const good = (name: string, note: string, vkey?: string): NoteCase => ({
  name,
  note,
  ...(vkey && { vkey }),
  good: true,
})
const bad = (name: string, note: string, vkey?: string): NoteCase => ({ ...good(name, note, vkey), good: false })

export const checkpointVectors = {
  vkey: VKEY,
  /** Of a receipt log of another project's documentation, so that key ids are not only compared with themselves. */
  foreign_vkey: 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW',
  malformed_vkeys: [
    '',
    'log.test/receipts',
    VKEY.replace(/\+[0-9a-f]{8}\+/, '+00000000+'),
    VKEY.replace(LOG_NAME, 'another.test'),
    VKEY.replace('+A', '+B'),
    `${VKEY}\n`,
    VKEY.replace(/=*$/, '===='),
  ],
  tree: { tree_size: 20, root_hash: root(20) },
  cases: [
    good('signed by the pinned key', honest),
    good('signed by the next key as well, which is not pinned', signNote(text(20), [next, CHECKPOINT_KEY])),
    good('the same, for who has pinned the next one', signNote(text(20), [next, CHECKPOINT_KEY]), verifierKey(next)),
    good('the line of a witness beside it', `${honest}\u2014 witness.test ${Buffer.alloc(76, 7).toString('base64')}\n`),
    good('an empty tree', signNote(`${LOG_NAME}\n0\n${base64Root(0)}\n`, [CHECKPOINT_KEY])),
    bad('signed by another key alone', signNote(text(20), [next])),
    bad('another key under the id of the pinned one', signNote(text(20), [next], { idOf: CHECKPOINT_KEY })),
    bad('another log, signed by the same key', signNote(text(20, 'elsewhere.test'), [CHECKPOINT_KEY])),
    bad('another log in the text alone', signNote(text(20, 'elsewhere.test'), [CHECKPOINT_KEY], { name: LOG_NAME })),
    bad('another size under the same signature', `${text(21)}\n${line(honest)}`),
    bad('another root under the same signature', honest.replace(base64Root(20), base64Root(19))),
    bad('a good line and a wrong one of the pinned key', `${honest}${line(signNote(text(19), [CHECKPOINT_KEY]))}`),
    bad('no signature', `${text(20)}\n`),
    bad('no newline at the end', honest.slice(0, -1)),
    bad('a size with a leading zero', signNote(text('020'), [CHECKPOINT_KEY])),
    bad('a negative size', signNote(text('-20'), [CHECKPOINT_KEY])),
    bad('a size beyond 2^53', signNote(text('9007199254740993'), [CHECKPOINT_KEY])),
    bad('a root of 31 bytes', signNote(`${LOG_NAME}\n20\n${Buffer.alloc(31).toString('base64')}\n`, [CHECKPOINT_KEY])),
    bad('a root in the URL alphabet', signNote(`${LOG_NAME}\n20\n${'_'.repeat(43)}=\n`, [CHECKPOINT_KEY])),
    bad('an extension line', signNote(`${text(20)}more\n`, [CHECKPOINT_KEY])),
    bad('a line that is no signature', `${honest}witness.test AAAA\n`),
    bad('a hyphen for the dash', honest.replace('\u2014', '-')),
    bad('a signature that is cut short', honest.replace(/.{8}\n$/, '\n')),
    bad('nothing', ''),
  ],
}
