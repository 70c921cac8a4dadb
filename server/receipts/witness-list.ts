// The witnesses of the log, read from the configuration: pairs of a verifier key (C2SP signed-note) and the base URL at which
// the witness takes checkpoints.
import { COSIGNATURE_ED25519, noteKeyId } from './checkpoint.ts'

export interface Witness {
  name: string
  keyId: Buffer
  /** 32 bytes. */
  publicKey: Buffer
  /** Without a slash at the end. */
  url: string
}

/** Reads `VKEY URL, VKEY URL, ...`. Throws an Error that says which entry is wrong, and why. */
export function readWitnesses(text: string): Witness[] {
  return text.split(',').map((entry) => {
    const [vkey = '', url = '', ...rest] = entry.trim().split(/\s+/)
    if (rest.length > 0 || !URL.canParse(url) || !/^https?:/.test(url))
      throw new Error('must be pairs of a verifier key and a URL, with commas between them')
    return { ...readCosignerKey(vkey), url: url.replace(/\/+$/, '') }
  })
}

/** Reads `name+hash+base64` of a key of type 4, Ed25519 cosignatures. */
function readCosignerKey(vkey: string): Pick<Witness, 'name' | 'keyId' | 'publicKey'> {
  const [, name = '', hash, base64 = ''] = vkey.match(/^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/) ?? []
  const [type, ...raw] = Buffer.from(base64, 'base64')
  if (type !== COSIGNATURE_ED25519 || raw.length !== 32)
    throw new Error(`${name || 'a verifier key'}: is not the verifier key of Ed25519 cosignatures (type 4)`)
  const publicKey = Buffer.from(raw)
  const keyId = noteKeyId(name, COSIGNATURE_ED25519, publicKey)
  if (keyId.toString('hex') !== hash)
    throw new Error(`${name}: the key id of the verifier key does not fit its name and key`)
  return { name, keyId, publicKey }
}
