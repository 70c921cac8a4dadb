// Verifies a receipt as the service returns it: the attestation, the proof that it is in the tree, and a signed tree
// head.

import { examine, Note, type Rule, type Verification } from '../checks.ts'
import { closed, integer, list, text } from '../shape.ts'
import { type Attestation, type AttestationOptions, attestationRules, attestationShape, hex256 } from './attestation.ts'
import { noteFault, readCheckpoint, readVerifierKeys, type VerifierKey } from './checkpoint.ts'
import { buildKeyRing } from './keys.ts'
import { type Inclusion, rootOfInclusion, type TreeHead } from './merkle.ts'
import type { SignatureCheck } from './signature.ts'

export interface ReceiptOptions extends AttestationOptions {
  /** Verifier key of the log's checkpoints, pinned. Keys of use `checkpoint` among `keys` count beside it. */
  vkey?: string
  /** A pinned tree head: the receipt must be in its tree. */
  tree?: TreeHead
}

interface Proved {
  attestation: Attestation
  inclusion: Inclusion
  checkpoint: string
}

const MAX_PATH = 64
export const inclusionShape = closed({ leaf_index: integer(0), tree_size: integer(1), hashes: list(hex256, MAX_PATH) })
/** Closed: no proof covers any other member. */
const provedShape = closed({ attestation: attestationShape, inclusion: inclusionShape, checkpoint: text(/./) })

/** Verifies the answer of `POST /v1/receipt` or `GET /v1/receipt/{serial}`. Throws a TypeError for a malformed pin. */
export function verifyReceipt(receipt: unknown, options: ReceiptOptions): Verification {
  const { keys, vkey, tree, signatureCheck } = options
  const verifierKeys = vkey === undefined ? undefined : readVerifierKeys(vkey, keys)
  const attested = attestationRules(buildKeyRing(keys), signatureCheck).map(
    ([name, judge]): Rule<Proved> => [name, ({ attestation }) => judge(attestation)],
  )
  return examine(receipt, provedShape, [
    ...attested,
    ['inclusion', (proved) => inclusionFault(proved, tree)],
    ['checkpoint', ({ checkpoint }) => signedFault(checkpoint, verifierKeys, signatureCheck)],
    ['pinned_tree', (proved) => pinnedFault(proved, tree)],
  ] satisfies Rule<Proved>[])
}

function inclusionFault({ attestation, inclusion, checkpoint }: Proved, tree?: TreeHead): string | Note | null {
  if (inclusion.leaf_index !== attestation.serial - 1) return 'the proof is for another serial'
  const root = rootOfInclusion(attestation.receipt_hash, inclusion)
  if (!root) return 'the proof has a wrong number of hashes'
  const head = readCheckpoint(checkpoint)
  if (!head) return 'the checkpoint it leads to is none'
  if (head.tree_size === inclusion.tree_size)
    return root === head.root_hash ? null : 'the proof does not lead to the root of the checkpoint'
  const astray = `leads to the tree of ${inclusion.tree_size}, not to the checkpoint's of ${head.tree_size}`
  // Any hashes lead to a root that no key has signed.
  return tree?.tree_size === inclusion.tree_size ? new Note(`${astray}, but to the given one`) : `the proof ${astray}`
}

function signedFault(
  checkpoint: string,
  keys: readonly VerifierKey[] | undefined,
  check?: SignatureCheck,
): string | Note | null {
  if (keys === undefined) return new Note('its signature was not checked: no verifier key was given')
  const fault = noteFault(checkpoint, keys, check)
  return fault && `it ${fault}`
}

function pinnedFault({ attestation, inclusion }: Proved, tree: TreeHead | undefined): string | Note | null {
  if (!tree) return new Note('no tree was given to compare with')
  if (inclusion.tree_size !== tree.tree_size) return `the proof is for the tree of ${inclusion.tree_size}`
  return rootOfInclusion(attestation.receipt_hash, inclusion) === tree.root_hash
    ? null
    : 'the receipt is not in the given tree'
}
