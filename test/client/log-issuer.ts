// A whole log made by hand: receipts under several keys, each introduced by the one before, and signed heads of the tree
// over them. Shares no code with client or server; its tree is RFC 6962's definition.
import { createPrivateKey, createPublicKey, sign } from 'node:crypto'
import type { Attestation } from '../../client/verification.ts'
import { referenceTree } from '../receipts/rfc6962.ts'
import { jcs, sha256 } from './issuer.ts'

export interface IssuerKey {
  key_id: number
  pubkey_hex: string
  /** The secret key as RFC 8032 has it: 32 bytes. */
  seed: Buffer
  sign(message: string | Uint8Array): Buffer
}

/** Keys that are the same in every run. */
export function issuerKey(key_id: number): IssuerKey {
  const seed = Buffer.from(sha256(`test key ${key_id}`), 'hex')
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const pubkey_hex = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex')
  return { key_id, pubkey_hex, seed, sign: (message) => sign(null, Buffer.from(message), privateKey) }
}

export const LOG_NAME = 'log.test/receipts'
export const CHECKPOINT_KEY = issuerKey(2)
export const VKEY = verifierKey(CHECKPOINT_KEY)

function noteKeyId({ pubkey_hex }: IssuerKey, name: string): Buffer {
  const bytes = Buffer.concat([Buffer.from(`${name}\n\u0001`), Buffer.from(pubkey_hex, 'hex')])
  return Buffer.from(sha256(bytes), 'hex').subarray(0, 4)
}

export function verifierKey(key: IssuerKey, name = LOG_NAME): string {
  const encoded = Buffer.concat([Buffer.of(1), Buffer.from(key.pubkey_hex, 'hex')]).toString('base64')
  return `${name}+${noteKeyId(key, name).toString('hex')}+${encoded}`
}

/** One receipt after another, signed correctly or as a test needs it. */
export function issueReceipt(fields: Partial<Attestation>, key: IssuerKey): Attestation {
  const { receipt_hash: _hash, sig_ed25519_hex: _signature, ...given } = fields
  const { serial = 1, ts_ms = 1_795_000_000_000 + serial * 1000 } = given
  // In the order in which the service lists them.
  const signed = {
    v: 1 as const,
    serial,
    subject_sha256: sha256(`subject ${serial}`),
    label: null,
    requested_by: 'someone',
    key_id: key.key_id,
    ts_ms,
    ts_utc: new Date(ts_ms).toISOString(),
    prev_hash: '0'.repeat(64),
    pubkey_hex: key.pubkey_hex,
    ...given,
  }
  const text = jcs(signed)
  return { ...signed, receipt_hash: sha256(text), sig_ed25519_hex: key.sign(text).toString('hex') }
}

export function keyRecord(key: IssuerKey, first_serial: number | null, use = 'receipt') {
  const { key_id, pubkey_hex } = key
  return { type: 'service.signing-key', version: 1, key_id, use, alg: 'Ed25519', pubkey_hex, first_serial }
}

export interface IssuedLog {
  chain: Attestation[]
  /** By generation. */
  keys: IssuerKey[]
  /** The receipts that introduce each key but the first. */
  introductions: Attestation[]
}

/** @param lengths how many receipts each key signs, the introduction of the next one not counted */
export function issueLog(lengths: number[], labels: (string | null)[] = [null]): IssuedLog {
  const keys = lengths.map((_, generation) => issuerKey(generation === 0 ? 1 : generation + 2))
  const chain: Attestation[] = []
  const introductions: Attestation[] = []
  const append = (fields: Partial<Attestation>, key: IssuerKey) => {
    const prev_hash = chain.at(-1)?.receipt_hash ?? '0'.repeat(64)
    chain.push(issueReceipt({ serial: chain.length + 1, prev_hash, ...fields }, key))
    return chain.at(-1)!
  }
  for (const [generation, length] of lengths.entries()) {
    const key = keys[generation]!
    for (let n = 0; n < length; n++) append({ label: labels[chain.length % labels.length]! }, key)
    const next = keys[generation + 1]
    if (!next) continue
    const subject_sha256 = sha256(jcs(keyRecord(next, chain.length + 2)))
    introductions.push(append({ subject_sha256, requested_by: 'key-rotation', label: 'receipt-key' }, key))
  }
  return { chain, keys, introductions }
}

/** @param signers one signature line each */
export function issueCheckpoint(
  chain: readonly Attestation[],
  signers = [CHECKPOINT_KEY],
  size = chain.length,
): string {
  const tree = referenceTree(chain.map((one) => Buffer.from(one.receipt_hash, 'hex')))
  const text = `${LOG_NAME}\n${size}\n${tree.root(size).toString('base64')}\n`
  const lines = signers.map((key) => {
    const signature = Buffer.concat([noteKeyId(key, LOG_NAME), key.sign(text)]).toString('base64')
    return `\u2014 ${LOG_NAME} ${signature}\n`
  })
  return `${text}\n${lines.join('')}`
}

/** An export as the command line writes it. */
export function issueExport(chain: readonly Attestation[], checkpoint: string | null = issueCheckpoint(chain)): string {
  const { serial, receipt_hash } = chain.at(-1)!
  const header = { countersign_export: 1, head: { serial, receipt_hash }, checkpoint }
  return [header, ...chain].map((line) => `${JSON.stringify(line)}\n`).join('')
}
