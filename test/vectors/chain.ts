// A short log with a change of keys, made wrong in every way there is.
import type { Attestation, ChainPoint, PinnedKey } from '../../client/verification.ts'
import { jcs, sha256 } from '../client/issuer.ts'
import {
  CHECKPOINT_KEY,
  type IssuerKey,
  issueCheckpoint,
  issueLog,
  issueReceipt,
  issuerKey,
  keyRecord,
  VKEY,
  verifierKey,
} from '../client/log-issuer.ts'
import { pinOf, pointOf } from './parts.ts'

/** Serials 1 and 2, the introduction at 3, and two receipts under the next key. */
export const { chain: short, keys: shortKeys } = issueLog([2, 2])
export const [old, young] = shortKeys as [IssuerKey, IssuerKey]
const mallory = issuerKey(66)

interface ChainCase {
  name: string
  attestations: unknown[]
  pins?: PinnedKey[]
  from?: ChainPoint
  through?: ChainPoint[]
  head?: ChainPoint
  checkpoint?: string
  vkey?: string
  fails: string[]
}

/** With some receipts replaced. */
function altered(changes: Record<number, object>): Attestation[] {
  return short.map((one) => ({ ...one, ...changes[one.serial] }))
}

/** From a serial on made anew and linked, so that nothing but the wanted fault is left. */
function reissued(
  from: number,
  choose: (serial: number) => [fields: Partial<Attestation>, key: IssuerKey],
): Attestation[] {
  const attestations = short.slice(0, from - 1)
  for (let serial = from; serial <= short.length; serial++) {
    const [fields, key] = choose(serial)
    const { ts_utc: _time, key_id: _id, pubkey_hex: _key, ...kept } = short[serial - 1]!
    const prev_hash = attestations.at(-1)?.receipt_hash ?? '0'.repeat(64)
    attestations.push(issueReceipt({ ...kept, prev_hash, ...fields }, key))
  }
  return attestations
}

const bySerial = (serial: number) => (serial <= 3 ? old : young)
const once = (at: number, fields: Partial<Attestation>) =>
  reissued(at, (serial) => [serial === at ? fields : {}, bySerial(serial)])
const introducing = (key: IssuerKey, first_serial: number | null, use?: string) => ({
  subject_sha256: sha256(jcs(keyRecord(key, first_serial, use))),
})
const end = pointOf(short.at(-1)!)
const UNTRUSTED = ['trusted_keys', 'signatures']

const chainCases: ChainCase[] = [
  {
    name: 'the whole of it',
    attestations: short,
    head: end,
    checkpoint: issueCheckpoint(short),
    vkey: VKEY,
    fails: [],
  },
  {
    name: 'from a receipt that was verified before',
    attestations: short.slice(1),
    from: pointOf(short[0]!),
    fails: [],
  },
  { name: 'through receipts that were pinned before', attestations: short, through: short.map(pointOf), fails: [] },
  {
    name: 'after the change of keys, with the next key pinned',
    attestations: short.slice(3),
    pins: [pinOf(young)],
    fails: [],
  },
  { name: 'after the change of keys, with the old key alone', attestations: short.slice(3), fails: UNTRUSTED },
  { name: 'a receipt left out', attestations: short.toSpliced(1, 1), fails: ['serials', 'links'] },
  { name: 'a receipt twice', attestations: short.toSpliced(1, 0, short[1]!), fails: ['serials', 'links'] },
  {
    name: 'backwards',
    attestations: short.slice(0, 3).toReversed(),
    fails: ['serials', 'links', 'times', 'key_changes'],
  },
  { name: 'cut short of the pinned head', attestations: short.slice(0, 4), head: end, fails: ['head'] },
  { name: 'another head at the same serial', attestations: once(5, { label: 'x' }), head: end, fails: ['head'] },
  {
    name: 'not the receipt that was pinned on the way',
    attestations: once(2, { label: 'x' }),
    through: [pointOf(short[1]!)],
    fails: ['through'],
  },
  {
    name: 'not as far as the receipt that was pinned',
    attestations: short.slice(0, 4),
    through: [end],
    fails: ['through'],
  },
  {
    name: 'from another receipt than the one before',
    attestations: short.slice(2),
    from: pointOf(short[0]!),
    fails: ['start'],
  },
  {
    name: 'a first receipt that links to something',
    attestations: once(1, { prev_hash: sha256('x') }),
    fails: ['start'],
  },
  { name: 'a label changed', attestations: altered({ 2: { label: 'x' } }), fails: ['receipt_hashes', 'signatures'] },
  { name: 'a label changed, and the hash', attestations: rehashed(2, { label: 'x' }), fails: ['links', 'signatures'] },
  {
    name: 'a signature of another receipt',
    attestations: altered({ 2: { sig_ed25519_hex: short[0]!.sig_ed25519_hex } }),
    fails: ['signatures'],
  },
  { name: 'a link to elsewhere', attestations: once(2, { prev_hash: sha256('x') }), fails: ['links'] },
  { name: 'a serial passed over', attestations: once(2, { serial: 3 }), fails: ['serials'] },
  { name: 'a step back in time', attestations: once(2, { ts_ms: short[0]!.ts_ms - 1 }), fails: ['times'] },
  {
    name: 'two times in one receipt',
    attestations: once(2, { ts_utc: '2026-01-01T00:00:00Z' }),
    fails: ['attested_times'],
  },
  {
    name: 'a key that nothing introduced',
    attestations: reissued(2, (serial) => [{}, serial === 2 ? mallory : bySerial(serial)]),
    fails: ['key_changes', ...UNTRUSTED],
  },
  { name: 'the old key after the change', attestations: reissued(4, () => [{}, old]), fails: ['key_changes'] },
  {
    name: 'another key than the one that was introduced',
    attestations: reissued(4, () => [{}, mallory]),
    fails: ['key_changes', ...UNTRUSTED],
  },
  {
    name: 'the introduction of a key for a later serial',
    attestations: once(3, introducing(young, 5)),
    fails: ['key_changes', ...UNTRUSTED],
  },
  {
    name: 'the introduction of a key for another use',
    attestations: once(3, introducing(young, null, 'checkpoint')),
    fails: ['key_changes', ...UNTRUSTED],
  },
  {
    name: 'an introduction that an account had attested',
    attestations: once(3, { requested_by: 'mallory' }),
    fails: ['key_changes', ...UNTRUSTED],
  },
  {
    name: 'an introduction whose signature is wrong',
    attestations: altered({ 3: { sig_ed25519_hex: '0'.repeat(128) } }),
    fails: ['trusted_keys', 'signatures'],
  },
  {
    name: 'a log by somebody else',
    attestations: reissued(1, () => [{}, mallory]),
    fails: ['key_changes', ...UNTRUSTED],
  },
  {
    name: 'a pinned key outside its serials',
    attestations: short.slice(0, 3),
    pins: [{ ...pinOf(old), status: 'retired', last_serial: 2 }],
    fails: UNTRUSTED,
  },
  {
    name: 'a checkpoint of fewer receipts: a tail that no tree covers',
    attestations: short,
    checkpoint: issueCheckpoint(short, undefined, 4),
    vkey: VKEY,
    fails: ['checkpoint'],
  },
  {
    name: 'a checkpoint of another history',
    attestations: once(2, { label: 'x' }),
    checkpoint: issueCheckpoint(short),
    vkey: VKEY,
    fails: ['checkpoint'],
  },
  {
    name: 'a checkpoint by another key',
    attestations: short,
    checkpoint: issueCheckpoint(short, [mallory]),
    vkey: VKEY,
    fails: ['checkpoint'],
  },
  {
    name: 'a checkpoint of another log',
    attestations: short,
    checkpoint: issueCheckpoint(short),
    vkey: verifierKey(CHECKPOINT_KEY, 'elsewhere.test'),
    fails: ['checkpoint'],
  },
  { name: 'a verifier key and no checkpoint', attestations: short, vkey: VKEY, fails: ['checkpoint'] },
  { name: 'nothing', attestations: [], fails: afterShape() },
  { name: 'something that is no receipt', attestations: [short[0], {}], fails: afterShape() },
]

/** Hashed anew, but neither signed nor linked to. */
function rehashed(serial: number, fields: Partial<Attestation>): Attestation[] {
  const { receipt_hash } = issueReceipt({ ...short[serial - 1]!, ...fields }, mallory)
  return altered({ [serial]: { ...fields, receipt_hash } })
}

function afterShape(): string[] {
  const links = ['start', 'serials', 'links', 'times', 'key_changes']
  return [
    'shape',
    ...links,
    'trusted_keys',
    'receipt_hashes',
    'attested_times',
    'signatures',
    'through',
    'head',
    'checkpoint',
  ]
}

export const chainVectors = { pins: [pinOf(old)], cases: chainCases }
