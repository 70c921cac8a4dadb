// A batch of receipts, linked to the head, signed, and covered by a signed checkpoint. Pure: nothing is written here.
import type { Attestation } from '../interface/attestation.ts'
import { originOf, signCheckpoint } from './checkpoint.ts'
import { linkEntry } from './format.ts'
import type { Head } from './head.ts'
import { type Sign, signHere } from './signatures.ts'
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

export interface LinkOptions {
  /** Counts for an empty log only: a log keeps the name it has. */
  origin: string
  /** Milliseconds since the epoch. */
  now: () => number
  sign?: Sign
}

export async function linkReceipts(
  head: Head,
  keys: ChainKeys,
  subjects: readonly Subject[],
  { origin, now, sign = signHere }: LinkOptions,
): Promise<Links> {
  const tsMs = Math.max(now(), head.ts_ms)
  const tree = growTree(head.serial, head.frontier)
  let prevHash = head.receipt_hash
  const linked = subjects.map((subject) => {
    const made = linkEntry({ ...subject, serial: tree.size + 1, prevHash, tsMs }, keys.receipt)
    prevHash = made.unsigned.receipt_hash
    tree.append(Buffer.from(prevHash, 'hex'))
    return made
  })
  const texts = linked.map(({ preimage }) => preimage)
  const signatures = await sign(texts, keys.receipt.privateKey)
  const attestations = linked.map(({ unsigned }, n) => ({ ...unsigned, sig_ed25519_hex: signatures[n]! }))
  const name = originOf(head.checkpoint) ?? origin
  const checkpoint = signCheckpoint(name, tree.size, rootHash(tree.size, tree.nodeAt), keys.checkpoint)
  return { attestations, tree, checkpoint }
}
