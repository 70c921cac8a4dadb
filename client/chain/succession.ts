// Follows a rotation of the log's checkpoint key: a receipt introduces the next key, and the old key has signed a tree
// with that receipt. A pinned verifier key is enough to follow, as long as both keys sign.
import { bytesToHex } from '@noble/hashes/utils.js'
import type { ChainHead, Countersign } from '../client.ts'
import { CountersignError } from '../error.ts'
import { jsonFaults } from '../json.ts'
import { receiptHashFault } from './attestation.ts'
import { noteFault, readVerifierKey, type VerifierKey } from './checkpoint.ts'
import { isIncluded } from './merkle.ts'
import { readIntroduced } from './rotation.ts'
import type { SignatureCheck } from './signature.ts'

export interface Succession {
  /** The key to pin from now on. */
  vkey: string
  /** Of the receipt that introduces it. */
  serial: number
}

/**
 * The successor of a pinned verifier key, if the service names one and proves it; null otherwise, which is no fault
 * while the pinned key signs.
 *
 * @param head a head that the pinned key has signed, with the signed root
 */
export async function findSuccession(
  service: Countersign,
  head: ChainHead,
  pinned: string,
  check?: SignatureCheck,
): Promise<Succession | null> {
  const next = head.vkey === pinned ? null : readNext(head.vkey, pinned)
  if (!next || noteFault(head.checkpoint, [next], check) !== null) return null
  try {
    const serial = await findIntroduction(service, head, next)
    return serial === null ? null : { vkey: head.vkey, serial }
  } catch (error) {
    if (error instanceof CountersignError) return null
    throw error
  }
}

/** Of the same log, or none. */
function readNext(vkey: string, pinned: string): VerifierKey | null {
  try {
    const next = readVerifierKey(vkey)
    return next.name === readVerifierKey(pinned).name ? next : null
  } catch {
    return null
  }
}

async function findIntroduction(service: Countersign, head: ChainHead, next: VerifierKey): Promise<number | null> {
  const pubkey_hex = bytesToHex(next.publicKey)
  const keys = readIntroduced(await service.keys())
  const key = keys.find((one) => one.use === 'checkpoint' && one.pubkey_hex === pubkey_hex)
  // Only the service makes receipts that introduce keys, so a place in the tree is proof enough.
  if (!key || jsonFaults(key.introduction).length > 0 || receiptHashFault(key.introduction) !== null) return null
  const { serial, receipt_hash } = key.introduction
  const proof = await service.inclusion(serial, head.tree_size)
  return proof.leaf_index === serial - 1 && isIncluded(receipt_hash, proof, head) ? serial : null
}
