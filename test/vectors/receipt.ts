// Receipts of the log with their proofs, and the ways in which a proof proves nothing.
import type { PinnedKey } from '../../client/verification.ts'
import { sha256 } from '../client/issuer.ts'
import { issueCheckpoint, issueReceipt, VKEY } from '../client/log-issuer.ts'
import { chain, checkpoint, early, FIRST, logVectors, NEXT_CHECKPOINT } from './log.ts'
import { hex, pinOf, treeOf } from './parts.ts'

function receiptOf(serial: number, size = chain.length) {
  const inclusion = { leaf_index: serial - 1, tree_size: size, hashes: hex(treeOf(chain).path(serial - 1, size)) }
  return { attestation: chain[serial - 1]!, inclusion, checkpoint: size === 10 ? early : checkpoint }
}

interface ReceiptCase {
  name: string
  receipt: unknown
  pins?: PinnedKey[]
  /** Pinned head of the tree. */
  tree?: { tree_size: number; root_hash: string }
  fails: string[]
}

const inForce = logVectors.in_force.map(({ last_serial, ...key }, index) =>
  index < 2 ? { ...key, status: 'retired', last_serial } : key,
)
const tenth = { tree_size: 10, root_hash: treeOf(chain).root(10).toString('hex') }
const sample = receiptOf(4)

export const receiptVectors = {
  pins: inForce,
  vkey: VKEY,
  cases: [
    ...[1, 4, 6, 7, 11, 14, 15, 20].map((serial) => ({
      name: `serial ${serial}`,
      receipt: receiptOf(serial),
      fails: [],
    })),
    { name: 'in an older tree', receipt: receiptOf(4, 10), fails: [] },
    {
      name: 'in a tree that was pinned, older than the checkpoint beside it',
      receipt: { ...receiptOf(4, 10), checkpoint },
      tree: tenth,
      fails: [],
    },
    {
      name: 'in an older tree that nobody pinned: any hashes lead to some root',
      receipt: { ...receiptOf(4, 10), checkpoint },
      fails: ['inclusion'],
    },
    { name: 'in another tree than the pinned one', receipt: sample, tree: tenth, fails: ['pinned_tree'] },
    { name: 'the proof of another', receipt: { ...sample, inclusion: receiptOf(5).inclusion }, fails: ['inclusion'] },
    {
      name: 'a proof with a hash changed',
      receipt: {
        ...sample,
        inclusion: { ...sample.inclusion, hashes: sample.inclusion.hashes.with(1, sha256('x')) },
      },
      fails: ['inclusion'],
    },
    {
      name: 'a proof with a hash missing',
      receipt: { ...sample, inclusion: { ...sample.inclusion, hashes: sample.inclusion.hashes.slice(1) } },
      fails: ['inclusion'],
    },
    {
      name: 'a checkpoint of another history',
      receipt: { ...sample, checkpoint: issueCheckpoint(chain.toReversed()) },
      fails: ['inclusion'],
    },
    {
      name: 'a checkpoint that the pinned key did not sign',
      receipt: { ...sample, checkpoint: issueCheckpoint(chain, [NEXT_CHECKPOINT]) },
      fails: ['checkpoint'],
    },
    {
      name: 'the same, where the next key is trusted as well',
      receipt: { ...sample, checkpoint: issueCheckpoint(chain, [NEXT_CHECKPOINT]) },
      pins: [...inForce, { ...pinOf(NEXT_CHECKPOINT), use: 'checkpoint' }],
      fails: [],
    },
    {
      name: 'a key after its time',
      receipt: {
        ...sample,
        attestation: issueReceipt({ ...chain[6]!, serial: 7, key_id: 1, pubkey_hex: FIRST.pubkey_hex }, FIRST),
      },
      fails: ['trusted_key', 'signature', 'inclusion'],
    },
    {
      name: 'another label',
      receipt: { ...sample, attestation: { ...sample.attestation, label: 'x' } },
      fails: ['signature', 'receipt_hash'],
    },
    {
      name: 'something beside it that nothing proves',
      receipt: { ...sample, claim: 'anything' },
      fails: [
        'shape',
        'trusted_key',
        'signature',
        'receipt_hash',
        'attested_time',
        'inclusion',
        'checkpoint',
        'pinned_tree',
      ],
    },
  ] satisfies ReceiptCase[],
}
