// Names that the vectors use for parts of what an issuer makes.
import type { Attestation, ChainPoint, PinnedKey } from '../../client/verification.ts'
import type { IssuerKey } from '../client/log-issuer.ts'
import { referenceTree } from '../receipts/rfc6962.ts'

export const pinOf = ({ key_id, pubkey_hex }: IssuerKey): PinnedKey => ({ key_id, pubkey_hex })
export const pointOf = ({ serial, receipt_hash }: Attestation): ChainPoint => ({ serial, receipt_hash })
export const hex = (hashes: Buffer[]) => hashes.map((hash) => hash.toString('hex'))
export const treeOf = (chain: readonly Attestation[]) =>
  referenceTree(chain.map((one) => Buffer.from(one.receipt_hash, 'hex')))
