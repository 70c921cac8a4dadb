// A batch of receipts, linked to the head, signed, and covered by a signed checkpoint. Pure: nothing is written here.
import type { Attestation } from '../verification/result.ts'
import { originOf, signCheckpoint } from './checkpoint.ts'
import { attest } from './format.ts'
import type { Head } from './head.ts'
import type { ChainKeys } from './signer.ts'
import { type Growth, growTree, rootHash } from './tree.ts'

export interface Subject {
  subjectSha256: string
  label: string | null
  requestedBy: string
}

export interface Links {
  attestations: Attestation[]
  /** The tree with these receipts in it. */
  tree: Growth
  /** C2SP checkpoint of that tree. */
  checkpoint: string
}

/** @param options `origin` counts for an empty log only: a log keeps the name it has; `now` in milliseconds */
export function linkReceipts(
  head: Head,
  keys: ChainKeys,
  subjects: readonly Subject[],
  options: { origin: string; now: () => number },
): Links {
  const tsMs = Math.max(options.now(), head.ts_ms)
  const tree = growTree(head.serial, head.frontier)
  let prevHash = head.receipt_hash
  const attestations = subjects.map((subject) => {
    const attestation = attest({ ...subject, serial: tree.size + 1, prevHash, tsMs }, keys.receipt)
    prevHash = attestation.receipt_hash
    tree.append(Buffer.from(prevHash, 'hex'))
    return attestation
  })
  const origin = originOf(head.checkpoint) ?? options.origin
  const checkpoint = signCheckpoint(origin, tree.size, rootHash(tree.size, tree.nodeAt), keys.checkpoint)
  return { attestations, tree, checkpoint }
}
