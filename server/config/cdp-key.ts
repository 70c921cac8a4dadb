// Parser of the variables CDP_API_KEY_*: the key of the Coinbase Developer Platform.
import { createPrivateKey, type KeyObject } from 'node:crypto'

export interface CdpKey {
  id: string
  /** Ed25519 or EC P-256. */
  privateKey: KeyObject
}

/** What PKCS#8 puts before the 32 bytes of an Ed25519 seed. */
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * Reads the base64 of an Ed25519 key (seed and public key, 64 bytes), or a P-256 key in PEM, whose line ends may be written as
 * `\n`, as in environment files. Throws for any other text.
 */
export function readCdpSecret(secret: string): KeyObject {
  if (secret.includes('-----BEGIN')) {
    const key = createPrivateKey(secret.replaceAll('\\n', '\n'))
    if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error('not a P-256 key')
    return key
  }
  const bytes = Buffer.from(secret, 'base64')
  if (bytes.length !== 64) throw new Error('not the base64 of 64 bytes')
  return createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, bytes.subarray(0, 32)]), format: 'der', type: 'pkcs8' })
}

export function isCdpSecret(secret: string): boolean {
  try {
    readCdpSecret(secret)
    return true
  } catch {
    return false
  }
}

interface Values {
  PAYMENT_MODE: string
  FACILITATOR_URL?: string | undefined
  CDP_API_KEY_ID?: string | undefined
  CDP_API_KEY_SECRET?: string | undefined
}

/** Half a key is a mistake in every mode. In mainnet mode Coinbase is the default facilitator, so the key is needed there. */
export function missingCdpKeys(values: Values): string[] {
  const names = ['CDP_API_KEY_ID', 'CDP_API_KEY_SECRET'] as const
  const needed = values.PAYMENT_MODE === 'mainnet' && !values.FACILITATOR_URL
  return needed || names.some((name) => values[name]) ? names.filter((name) => !values[name]) : []
}

/** @param values with a CDP_API_KEY_SECRET that `isCdpSecret` accepts, or none */
export function readCdpKey({ CDP_API_KEY_ID: id, CDP_API_KEY_SECRET: secret }: Values): CdpKey | undefined {
  return id && secret ? { id, privateKey: readCdpSecret(secret) } : undefined
}
