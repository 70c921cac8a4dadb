// The keys a caller trusts, and which of them may speak for a receipt.
import { Point } from '@noble/ed25519'
import { hexToBytes } from '@noble/hashes/utils.js'
import type { Attestation } from './attestation.ts'

/**
 * A signing key pinned through a trusted channel. Entries of `GET /v1/keys` have this form, but a key that came over
 * the same channel as the receipt proves only that the two came from the same place.
 */
export interface PinnedKey {
  key_id: number
  /** 64 hex characters. */
  pubkey_hex: string
  /** Where it is given, only a `receipt` key is taken for receipts, and only a `lease` key for leases. */
  use?: string
  status?: string
  first_serial?: number | null
  /** Counts only for a key that is no longer `active`: a retired key signs nothing new. */
  last_serial?: number | null
}

/** Finds the public key that an attestation must be signed with, or says why there is none. */
export type KeyRing = (attestation: Attestation) => { publicKey: Uint8Array } | { distrust: string }

/** Throws a TypeError for a pin that is no Ed25519 key: that is a mistake of the caller, not of the receipt. */
export function buildKeyRing(pinned: readonly PinnedKey[]): KeyRing {
  const ours = pinned.filter(({ use }) => use === undefined || use === 'receipt')
  const keys = ours.map((key) => ({ ...key, publicKey: readPublicKey(key) }))
  return ({ key_id, pubkey_hex, serial }) => {
    const named = keys.filter((key) => key.key_id === key_id)
    if (named.length === 0) return { distrust: `key_id ${key_id} is not pinned as a receipt key` }
    const key = named.find((one) => one.pubkey_hex.toLowerCase() === pubkey_hex)
    if (!key) return { distrust: `pubkey_hex is not the key pinned as key_id ${key_id}` }
    if (key.status === 'compromised') return { distrust: `key_id ${key_id} is compromised: anyone may have signed` }
    if (!inForce(key, serial)) return { distrust: `key_id ${key_id} was not in force for serial ${serial}` }
    return { publicKey: key.publicKey }
  }
}

/** Throws a TypeError for a pin that is no Ed25519 key. */
export function readPublicKey({ key_id, pubkey_hex }: PinnedKey): Uint8Array {
  try {
    if (!Number.isSafeInteger(key_id)) throw new TypeError('key_id is not an integer')
    const bytes = hexToBytes(pubkey_hex.toLowerCase())
    const point = Point.fromBytes(bytes)
    // No honest key lies outside the prime-order group, and with one that does a signature may fit many messages.
    if (point.isSmallOrder() || !point.isTorsionFree()) throw new TypeError('not in the prime-order group')
    return bytes
  } catch (cause) {
    throw new TypeError(`The pinned key ${key_id}:${pubkey_hex} is not an Ed25519 public key`, { cause })
  }
}

function inForce({ status, first_serial, last_serial }: PinnedKey, serial: number): boolean {
  const ended = status !== undefined && status !== 'active'
  return serial >= (first_serial ?? 0) && !(ended && serial > (last_serial ?? Number.POSITIVE_INFINITY))
}
