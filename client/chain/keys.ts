// The keys that a caller trusts, and which of them may sign a receipt.
import { Point } from '@noble/ed25519'
import { hexToBytes } from '@noble/hashes/utils.js'
import { either, integer, literal, object, type Shape, text } from '../shape.ts'

/**
 * A signing key pinned through a trusted channel. Entries of `GET /v1/keys` have this form, but a key from the same
 * channel as the receipt proves only that both came from one place.
 */
export interface PinnedKey {
  key_id: number
  /** 64 hex characters. */
  pubkey_hex: string
  /** If set, only a `receipt` key counts for receipts, and only a `lease` key for leases. */
  use?: string
  /** Default `active`. A `retired` key is valid up to `last_serial`; a key with any other status is not valid. */
  status?: string
  first_serial?: number | null
  /** Counts only for a retired key. */
  last_serial?: number | null
}

/** Finds the public key that an attestation must be signed with, or says why there is none. */
export type KeyRing = (attestation: {
  key_id: number
  pubkey_hex: string
  serial: number
}) => { publicKey: Uint8Array } | { distrust: string }

/** Ends the reason why a key is not trusted of which the pins say nothing. */
export const NOT_PINNED = 'is not pinned as a receipt key'

/** Throws a TypeError for a pin that is no Ed25519 key: the caller's mistake, not the receipt's. */
export function buildKeyRing(pinned: readonly PinnedKey[]): KeyRing {
  const keys = receiptKeys(pinned).map((key) => ({ ...key, publicKey: readPublicKey(key) }))
  return ({ key_id, pubkey_hex, serial }) => {
    const named = keys.filter((key) => key.key_id === key_id)
    if (named.length === 0) return { distrust: `key_id ${key_id} ${NOT_PINNED}` }
    const key = named.find((one) => one.pubkey_hex.toLowerCase() === pubkey_hex)
    if (!key) return { distrust: `pubkey_hex is not the key pinned as key_id ${key_id}` }
    if (key.status === 'compromised') return { distrust: `key_id ${key_id} is compromised: anyone may have signed` }
    if (!inForce(key, serial)) return { distrust: `key_id ${key_id} was not in force for serial ${serial}` }
    return { publicKey: key.publicKey }
  }
}

/** The pins that count for receipts. Throws a TypeError for one that is malformed. */
export function receiptKeys(pinned: readonly PinnedKey[]): PinnedKey[] {
  const wrong = pinned.map((key, index) => pinFault(key, `/${index}`)).find(Boolean)
  if (wrong) throw new TypeError(`The pinned keys: ${wrong}`)
  return pinned.filter(({ use }) => use === undefined || use === 'receipt')
}

const required = object({ key_id: integer(0), pubkey_hex: text() })
const serial = either(integer(0), literal(null))
const optional: Readonly<Record<string, Shape>> = {
  use: text(),
  status: text(),
  first_serial: serial,
  last_serial: serial,
}

function pinFault(key: PinnedKey, path: string): string | null {
  const fault = required(key, path)
  if (fault) return fault
  const given = Object.entries(optional).filter(([name]) => key[name as keyof PinnedKey] !== undefined)
  return object(Object.fromEntries(given))(key, path)
}

/** Keys that passed before: the check takes a millisecond, and gateways repeat the same pins. */
const known = new Map<string, Uint8Array>()

/** Throws a TypeError for a pin that is no Ed25519 key. */
export function readPublicKey({ key_id, pubkey_hex }: PinnedKey): Uint8Array {
  const before = known.get(pubkey_hex)
  if (before && Number.isSafeInteger(key_id)) return before
  try {
    if (!Number.isSafeInteger(key_id)) throw new TypeError('key_id is not an integer')
    const bytes = hexToBytes(pubkey_hex.toLowerCase())
    const point = Point.fromBytes(bytes)
    // No honest key is outside the prime-order group. With such a key, one signature may fit many messages.
    if (point.isSmallOrder() || !point.isTorsionFree()) throw new TypeError('not in the prime-order group')
    known.set(pubkey_hex, bytes)
    return bytes
  } catch (cause) {
    throw new TypeError(`The pinned key ${key_id}:${pubkey_hex} is not an Ed25519 public key`, { cause })
  }
}

/** A retired key without its last serial, or with an unknown status, is valid for no receipt. */
function inForce({ status = 'active', first_serial, last_serial }: PinnedKey, serial: number): boolean {
  if (serial < (first_serial ?? 0)) return false
  return status === 'active' || (status === 'retired' && serial <= (last_serial ?? -1))
}
