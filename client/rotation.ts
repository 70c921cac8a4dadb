// Keys change: the receipt key in force signs a receipt that introduces the next key. Whoever pinned one key can follow.
import { type Attestation, type AttestationOptions, attestationShape, verifyAttestation } from './attestation.ts'
import { sha256Hex } from './bytes.ts'
import { canonicalJson } from './json.ts'
import type { PinnedKey } from './keys.ts'

/** A key as `GET /v1/keys` lists it, with the receipt that introduced it. */
export interface IntroducedKey extends PinnedKey {
  use: string
  introduction?: Attestation | null
}

/** Whether the receipt after this one must be signed with another key. Only the service makes receipts of this name. */
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

/**
 * Of published keys those that can be trusted because a trusted key introduced them, beside the pinned ones; all with the
 * serials that the introductions give them. A key that nothing trusted introduces is left out. Throws a TypeError for a
 * malformed pin, never for a bad list.
 */
export function trustIntroduced(
  published: unknown,
  pinned: readonly PinnedKey[],
  options: Omit<AttestationOptions, 'keys'> = {},
) {
  const trusted: PinnedKey[] = pinned.map((key) => ({ ...key }))
  const offered = Array.isArray(published) ? published.filter(isIntroduced) : []
  for (const key of offered.sort((a, b) => a.introduction.serial - b.introduction.serial)) {
    const { introduction, use, key_id, pubkey_hex } = key
    const first_serial = use === 'receipt' ? introduction.serial + 1 : null
    const named = introduction.requested_by === 'key-rotation' && introduction.label === `${use}-key`
    if (!named || introduction.subject_sha256 !== introductionSubject({ key_id, use, pubkey_hex, first_serial }))
      continue
    if (!verifyAttestation(introduction, { ...options, keys: trusted }).ok) continue
    if (use === 'receipt') endKey(trusted, introduction)
    const known = trusted.find((one) => one.key_id === key_id && one.pubkey_hex === pubkey_hex)
    if (known) known.first_serial ??= first_serial
    else trusted.push({ key_id, pubkey_hex, use, status: 'active', first_serial, last_serial: null })
  }
  return trusted
}

/** The introducer signs nothing after the introduction. */
function endKey(trusted: PinnedKey[], { key_id, serial }: Attestation) {
  const key = trusted.find((one) => one.key_id === key_id && (one.use ?? 'receipt') === 'receipt')
  if (key && key.status !== 'compromised') Object.assign(key, { status: 'retired', last_serial: serial })
}

function isIntroduced(value: unknown): value is IntroducedKey & { introduction: Attestation } {
  if (typeof value !== 'object' || value === null) return false
  const { key_id, pubkey_hex, use, introduction } = value as Record<string, unknown>
  const named = Number.isSafeInteger(key_id) && /^[0-9a-f]{64}$/.test(String(pubkey_hex)) && typeof use === 'string'
  return named && attestationShape(introduction, '') === null
}
