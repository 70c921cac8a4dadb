// Follows rotations of keys: the receipt key in force signs a receipt that introduces the next key, so one pinned key
// is enough to trust all later ones.

import { sha256Hex } from '../bytes.ts'
import { canonicalJson } from '../json.ts'
import { integer, object, text } from '../shape.ts'
import {
  type Attestation,
  type AttestationOptions,
  attestationShape,
  hex256,
  verifyAttestation,
} from './attestation.ts'
import { type PinnedKey, readPublicKey } from './keys.ts'

/** A key as `GET /v1/keys` lists it; all but the first of each use have the receipt that introduced them. */
export interface ListedKey extends PinnedKey {
  use: string
  introduction?: Attestation | null
}

export type IntroducedKey = ListedKey & { introduction: Attestation }

/** Whether another key must sign the next receipt. Only the service makes receipts of this name. */
export function isHandover({ requested_by, label }: Attestation): boolean {
  return requested_by === 'key-rotation' && label === 'receipt-key'
}

/** `subject_sha256` of the receipt that introduces a key. */
export function introductionSubject(
  key: Pick<PinnedKey, 'key_id' | 'pubkey_hex'> & { use: string; first_serial: number | null },
) {
  const { key_id, use, pubkey_hex, first_serial } = key
  return sha256Hex(
    canonicalJson({ type: 'service.signing-key', version: 1, key_id, use, alg: 'Ed25519', pubkey_hex, first_serial }),
  )
}

/** The published keys that have an introduction, without a check of its signature. */
export function readIntroduced(published: unknown): IntroducedKey[] {
  return readPublished(published).filter(isIntroduced)
}

/**
 * The pinned keys and the published keys that a trusted key introduced, with the serials of their introductions. A key
 * without a trusted introduction is left out. The status `compromised` needs no proof, because it only removes trust.
 * Throws a TypeError for a malformed pin, never for a bad list.
 */
export function trustIntroduced(
  published: unknown,
  pinned: readonly PinnedKey[],
  options: Omit<AttestationOptions, 'keys'> = {},
) {
  const disowned = readPublished(published).filter(({ status }) => status === 'compromised')
  const judged = (key: PinnedKey) => (disowned.some(same(key)) ? { ...key, status: 'compromised' } : { ...key })
  const trusted: PinnedKey[] = pinned.map(judged)
  for (const key of readIntroduced(published).sort((a, b) => a.introduction.serial - b.introduction.serial)) {
    const { introduction, use, key_id, pubkey_hex } = key
    const first_serial = firstSerial(key)
    if (!verifyAttestation(introduction, { ...options, keys: trusted }).ok || !isSound(key)) continue
    if (use === 'receipt') endKey(trusted, introduction)
    const known = trusted.find(same(key))
    if (known) known.first_serial ??= first_serial
    else trusted.push(judged({ key_id, pubkey_hex, use, status: 'active', first_serial, last_serial: null }))
  }
  return trusted
}

function same({ key_id, pubkey_hex }: PinnedKey) {
  const hex = pubkey_hex.toLowerCase()
  return (one: PinnedKey) => one.key_id === key_id && one.pubkey_hex.toLowerCase() === hex
}

/** The introducer signs nothing after the introduction. */
function endKey(trusted: PinnedKey[], introduction: Attestation) {
  for (const key of trusted.filter(same(introduction)))
    if ((key.use ?? 'receipt') === 'receipt' && key.status !== 'compromised')
      Object.assign(key, { status: 'retired', last_serial: introduction.serial })
}

const keyShape = object({ key_id: integer(0), pubkey_hex: hex256, use: text(/^[a-z]{1,32}$/) })

function readPublished(published: unknown): ListedKey[] {
  return Array.isArray(published) ? published.filter(isKey) : []
}

function isKey(value: unknown): value is ListedKey {
  return keyShape(value, '') === null
}

/** Whether any signature can be valid under it. */
function isSound(key: PinnedKey): boolean {
  try {
    return readPublicKey(key).length > 0
  } catch {
    return false
  }
}

function isIntroduced(key: ListedKey): key is IntroducedKey {
  if (attestationShape(key.introduction, '') !== null) return false
  const { introduction, ...record } = key as IntroducedKey
  const { requested_by, label, subject_sha256 } = introduction
  if (requested_by !== 'key-rotation' || label !== `${key.use}-key`) return false
  return subject_sha256 === introductionSubject({ ...record, first_serial: firstSerial(key as IntroducedKey) })
}

/** A receipt key signs from the receipt after its introduction on. */
function firstSerial({ use, introduction }: IntroducedKey): number | null {
  return use === 'receipt' ? introduction.serial + 1 : null
}
