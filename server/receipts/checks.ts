// Checks on request: whether a receipt is one of the service's, and whether a range of the chain is sound. Nothing that a
// caller sends is trusted; keys and chain are those of the database.
import type { Database } from '../db/pool.ts'
import { type Attestation, attestation } from '../interface/attestation.ts'
import { findAttestation, findRoot, proveReceipt } from './archive.ts'
import { loadKnownKeys, loadReceipts } from './audit.ts'
import { readNote } from './checkpoint.ts'
import {
  checkpointFault,
  isInForce,
  isSigned,
  type KnownKey,
  type Report,
  type Signed,
  verifyEntry,
  type Walk,
} from './entry-verification.ts'
import { attestationPreimage, canonicalJson, GENESIS, sha256 } from './format.ts'
import type { Head } from './head.ts'
import type { Range } from './pages.ts'
import type { Reader } from './reader.ts'
import type { Verifier } from './signatures.ts'

/** An attestation alone, or with what the service returns beside one. */
export interface GivenReceipt {
  attestation: object
  inclusion?: object
  checkpoint?: string
  envelope?: object
  canonical_envelope_base64?: string
}

export interface Check {
  name: string
  ok: boolean
  /** Why it failed. */
  detail?: string
}

/** Makes every check of a given receipt, in a fixed order. A check that could not be made counts as failed. */
export async function checkReceipt(
  { db, reader }: { db: Database; reader: Reader },
  given: GivenReceipt,
): Promise<Check[]> {
  const parsed = attestation.safeParse(given.attestation)
  const form = parsed.success ? null : describe(parsed.error.issues[0])
  const verdicts = parsed.success ? await judge({ db, reader }, parsed.data, given) : unchecked(given)
  return [['form', form] as const, ...verdicts].map(([name, fault]) =>
    fault === null ? { name, ok: true } : { name, ok: false, detail: fault },
  )
}

/** `fault` is null when the check passed. */
type Verdict = readonly [name: string, fault: string | null]

const NAMES = ['receipt_hash', 'key', 'signature', 'chain'] as const
/** Checks of optional members: name of the check, member. */
const OPTIONAL = [
  ['envelope', 'canonical_envelope_base64'],
  ['envelope_digest', 'canonical_envelope_base64'],
  ['inclusion', 'inclusion'],
  ['checkpoint', 'checkpoint'],
] as const

function unchecked(given: GivenReceipt): Verdict[] {
  const optional = OPTIONAL.filter(([, member]) => given[member] !== undefined).map(([name]) => name)
  return [...NAMES, ...optional].map((name) => [name, 'not checked: the form is wrong'])
}

function describe(issue: { path: PropertyKey[]; message: string } | undefined): string {
  return `attestation${issue?.path.map((step) => `.${String(step)}`).join('') ?? ''}: ${issue?.message}`
    .slice(0, 300)
    .toWellFormed()
}

async function judge(
  { db, reader }: { db: Database; reader: Reader },
  a: Attestation,
  given: GivenReceipt,
): Promise<Verdict[]> {
  const keys = await loadKnownKeys(db)
  const head = await reader.head()
  const nodes = reader.nodes(head)
  const ours = a.serial <= head.serial ? await reader.attestation(a.serial) : null
  const key = keys.find(({ key_id, use }) => use === 'receipt' && key_id === a.key_id)
  const text = attestationPreimage(a)
  const verdicts: Verdict[] = [
    ['receipt_hash', sha256(text) === a.receipt_hash ? null : 'is not the SHA-256 of the other fields'],
    ['key', keyFault(a, key)],
    ['signature', signatureFault(a, text, key)],
    ['chain', chainFault(a, ours, head.serial)],
  ]
  if (given.canonical_envelope_base64 !== undefined) verdicts.push(...judgeEnvelope(a, given))
  if (given.inclusion !== undefined) verdicts.push(['inclusion', await inclusionFault(given.inclusion)])
  if (given.checkpoint !== undefined) verdicts.push(['checkpoint', await headFault(given.checkpoint)])
  return verdicts

  /** A leaf has one proof in a tree, so the given one must equal ours. */
  async function inclusionFault(inclusion: object): Promise<string | null> {
    const size = 'tree_size' in inclusion ? inclusion.tree_size : undefined
    if (!isSize(size) || size < a.serial || size > head.serial) return 'tree_size is not that of a tree that holds it'
    const proof = await proveReceipt(nodes, a.serial, size)
    return isSame(inclusion, proof) ? null : `is not the proof for serial ${a.serial} in the tree of ${size}`
  }

  async function headFault(checkpoint: string): Promise<string | null> {
    const size = Number(readNote(checkpoint)?.text.split('\n')[1])
    if (!isSize(size) || size > head.serial) return 'is not a checkpoint of this log'
    return checkpointFault(checkpoint, size, await findRoot(nodes, size), keys)
  }
}

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1
}

function keyFault(a: Attestation, key: KnownKey | undefined): string | null {
  if (!key) return `key ${a.key_id} is no receipt key of this service`
  if (key.pubkey_hex !== a.pubkey_hex) return `pubkey_hex is not that of key ${a.key_id}`
  return isInForce(key, a.serial) ? null : `key ${a.key_id} was not in force for serial ${a.serial}`
}

function signatureFault(a: Attestation, text: string, key: KnownKey | undefined): string | null {
  if (!key) return 'not checked: the key is not known'
  return isSigned({ text, key, signature: Buffer.from(a.sig_ed25519_hex, 'hex') }) ? null : 'is not made with that key'
}

function chainFault(a: Attestation, ours: Attestation | null, head: number): string | null {
  if (!ours) return `there is no receipt ${a.serial}; the head is ${head}`
  return isSame(a, ours) ? null : `is not receipt ${a.serial} of the chain`
}

function judgeEnvelope(a: Attestation, { envelope, canonical_envelope_base64: given = '' }: GivenReceipt): Verdict[] {
  const bytes = Buffer.from(given, 'base64')
  const digest =
    bytes.toString('base64') !== given
      ? 'canonical_envelope_base64 is not standard base64'
      : sha256(bytes) === a.subject_sha256
        ? null
        : 'the SHA-256 of canonical_envelope_base64 is not subject_sha256'
  const verdict: Verdict = ['envelope_digest', digest]
  if (envelope === undefined) return [verdict]
  const same = canonical(envelope) === bytes.toString('utf8')
  return [['envelope', same ? null : 'is not what canonical_envelope_base64 holds'], verdict]
}

function isSame(one: unknown, other: unknown): boolean {
  return canonical(one) === canonicalJson(other)
}

/** Canonical JSON, or null when the value has none. */
function canonical(value: unknown): string | null {
  try {
    return canonicalJson(value)
  } catch {
    return null
  }
}

export interface RangeFault {
  serial: number
  check: string
  detail: string
}

export interface RangeCheck {
  receipts: number
  signatures: number
  /** The fault with the lowest serial. */
  fault: RangeFault | null
}

/** Receipts between two awaits: one or two milliseconds of the event loop. */
const SLICE = 125

/**
 * Checks a range in slices, so that the event loop serves others meanwhile; threads check the signatures.
 * @param range not beyond the head; an empty range is sound
 */
export async function checkRange(
  { db, verifier }: { db: Database; verifier: Verifier },
  { from, to }: Range,
  head: Head,
): Promise<RangeCheck> {
  const keys = await loadKnownKeys(db)
  const faults: RangeFault[] = []
  const report: Report = (check, serial, detail) => void faults.push({ serial, check, detail })
  const walk = await startBefore(db, from)
  const checks: Promise<void>[] = []
  let receipts = 0
  let signatures = 0

  for (let first = from; first <= to; first += SLICE) {
    const slice = await loadReceipts(db, first, Math.min(first + SLICE - 1, to))
    const signed = slice.flatMap((receipt) => verifyEntry(receipt, walk, keys, report) ?? [])
    receipts += slice.length
    signatures += signed.length
    const checked = checkSignatures(verifier, signed, report)
    // A failure is thrown below; until then it must not count as an unhandled rejection.
    checked.catch(() => {})
    checks.push(checked)
  }
  await Promise.all(checks)
  if (walk.serial < to) report('serials', to, 'is missing')
  if (from <= to && to === head.serial && walk.prevHash !== head.receipt_hash)
    report('head', to, 'is not what the head says')
  return { receipts, signatures, fault: faults.toSorted((a, b) => a.serial - b.serial)[0] ?? null }
}

/** The state after the receipt before the range. That receipt is not checked. */
async function startBefore(db: Database, from: number): Promise<Walk> {
  const before = from === 1 ? null : await findAttestation(db, from - 1)
  const prevHash = from === 1 ? GENESIS : (before?.receipt_hash ?? 'none')
  return { serial: from - 1, prevHash, tsMs: before?.ts_ms ?? 0, tree: null }
}

async function checkSignatures(verifier: Verifier, signed: Signed[], report: Report) {
  const answers = await verifier.areSigned(
    signed.map(({ text, key, signature }) => ({
      text,
      pubkey_hex: key.pubkey_hex,
      signature_hex: signature.toString('hex'),
    })),
  )
  for (const [index, { serial }] of signed.entries())
    if (!answers[index]) report('signatures', serial, 'is not signed by its key')
}
