// Signed heads of the tree in the form of C2SP tlog-checkpoint and signed-note, so that the tools and witnesses of
// transparency logs read them as they are.
import { createHash, sign } from 'node:crypto'
import type { SigningKey } from './format.ts'

/** Ed25519, in signed-note's registry. */
const ALGORITHM = Buffer.of(1)

/** First four bytes that tell signatures of one name apart. */
function noteKeyId(name: string, publicKey: Buffer): Buffer {
  return createHash('sha256').update(`${name}\n`).update(ALGORITHM).update(publicKey).digest().subarray(0, 4)
}

/** What a monitor pins: name, key id and key in one line. */
export function verifierKey(name: string, publicKeyHex: string): string {
  const publicKey = Buffer.from(publicKeyHex, 'hex')
  const encoded = Buffer.concat([ALGORITHM, publicKey]).toString('base64')
  return `${name}+${noteKeyId(name, publicKey).toString('hex')}+${encoded}`
}

/** @param origin names the log; it must not change while the log lives, and is also the name of the signing key */
export function signCheckpoint(origin: string, size: number, root: Buffer, key: SigningKey): string {
  const text = `${origin}\n${size}\n${root.toString('base64')}\n`
  const publicKey = Buffer.from(key.publicKeyHex, 'hex')
  const signature = Buffer.concat([noteKeyId(origin, publicKey), sign(null, Buffer.from(text), key.privateKey)])
  return `${text}\n\u2014 ${origin} ${signature.toString('base64')}\n`
}
