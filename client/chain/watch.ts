// Monitors a log: checks whether its current head continues the head that was pinned last.

import type { ChainHead, Countersign } from '../client.ts'
import { CountersignError } from '../error.ts'
import { parseJson } from '../json.ts'
import { closed, integer, text } from '../shape.ts'
import { hex256 } from './attestation.ts'
import { checkpointFault, readCheckpoint, readVerifierKey } from './checkpoint.ts'
import { isContinued, isIncluded } from './merkle.ts'
import type { SignatureCheck } from './signature.ts'
import { findSuccession } from './succession.ts'

/** The state between two checks. */
export interface Pinned {
  /** Verifier key of the checkpoints. */
  vkey: string
  serial: number
  receipt_hash: string
  root_hash: string
  /** The signed head; empty before the first receipt. */
  checkpoint: string
}

export const pinnedShape = closed({
  vkey: text(/./),
  serial: integer(0),
  receipt_hash: hex256,
  root_hash: hex256,
  checkpoint: text(),
})

/**
 * `pinned`: seen for the first time. `rollback`: the chain is shorter than before. `fork`: it does not continue the
 * pinned head. `invalid`: the service's head is inconsistent, or the service does not prove it.
 */
export type Verdict = 'pinned' | 'unchanged' | 'advanced' | 'rollback' | 'fork' | 'invalid'

export interface Sighting {
  verdict: Verdict
  /** In words, why. */
  detail: string
  /** The head found by this check, pinned or not. Together with the pinned one it is the evidence. */
  seen: Pinned
}

export const ALARMS: ReadonlySet<Verdict> = new Set(['rollback', 'fork', 'invalid'])

/**
 * Checks once. Throws CountersignError when the service does not answer, which says nothing about the log, and a TypeError
 * for a malformed verifier key.
 *
 * @param before the pinned state; null at the first check
 * @param options `vkey` from a source independent of the service, for the first check or to replace the pinned one; without
 * it, the first check trusts the service
 */
export async function checkHead(
  service: Countersign,
  before: Pinned | null,
  options: { vkey?: string; signatureCheck?: SignatureCheck } = {},
): Promise<Sighting> {
  const head = await service.chainHead()
  const { serial, receipt_hash, root_hash, checkpoint } = head
  const trusted = options.vkey ?? before?.vkey
  if (trusted !== undefined) readVerifierKey(trusted)
  const vkey = trusted ?? head.vkey
  const seen: Pinned = { vkey, serial, receipt_hash, root_hash, checkpoint }
  const invalid = await headFault(service, head, vkey, options.signatureCheck)
  if (invalid) return { verdict: 'invalid', detail: invalid, seen }
  if (!before) return { verdict: 'pinned', detail: `serial ${serial}`, seen }
  const { verdict, detail } = await compare(service, before, seen)
  const succession = ALARMS.has(verdict) ? null : await findSuccession(service, head, vkey, options.signatureCheck)
  if (!succession) return { verdict, detail, seen }
  const followed = `${detail}; the key has changed, as serial ${succession.serial} says: ${succession.vkey} is pinned`
  return { verdict, detail: followed, seen: { ...seen, vkey: succession.vkey } }
}

/** Where the pin is kept. */
export interface PinStore {
  /** Null before the first check. */
  load(): Promise<string | null>
  /** Writes the whole pin or nothing. */
  save(text: string): Promise<void>
  /** Two signed heads that contradict each other prove to everyone that the log is dishonest. */
  keepEvidence(text: string): Promise<void>
}

/**
 * Checks once and saves the head; an alarm leaves the pin unchanged. Throws as `checkHead`, and a SyntaxError for a bad
 * pin.
 */
export async function checkAndKeep(
  service: Countersign,
  store: PinStore,
  options: Parameters<typeof checkHead>[2] = {},
): Promise<Sighting> {
  const before = readPinned(await store.load())
  if (before && options.vkey !== undefined && nameOf(options.vkey) !== nameOf(before.vkey))
    throw new SyntaxError(`it is of the log ${nameOf(before.vkey)}, and the verifier key of another`)
  const sighting = await checkHead(service, before, options)
  if (ALARMS.has(sighting.verdict)) await store.keepEvidence(pretty({ before, ...sighting }))
  else await store.save(pretty(sighting.seen))
  return sighting
}

const nameOf = (vkey: string) => readVerifierKey(vkey).name

function readPinned(text: string | null): Pinned | null {
  if (text === null) return null
  const pinned = parseJson(text)
  const wrong = pinnedShape(pinned, '')
  if (wrong) throw new SyntaxError(`it does not hold what was pinned: ${wrong}`)
  return pinned as Pinned
}

const pretty = (value: object) => `${JSON.stringify(value, null, 2)}\n`

/** The inconsistency of one head by itself, or null. */
async function headFault(
  service: Countersign,
  head: ChainHead,
  vkey: string,
  check?: SignatureCheck,
): Promise<string | null> {
  const { serial, tree_size, root_hash, receipt_hash, checkpoint } = head
  if (tree_size !== serial) return `the tree covers ${tree_size} receipts of ${serial}`
  if (serial === 0) return checkpoint === '' ? null : 'there is a checkpoint and no receipt'
  const fault = isVerifierKey(vkey) ? checkpointFault(checkpoint, vkey, check) : 'comes without a verifier key'
  if (fault) return `the checkpoint ${fault}`
  const signed = readCheckpoint(checkpoint)
  if (signed?.tree_size !== serial || signed.root_hash !== root_hash) return 'the checkpoint is of another head'
  const inclusion = await provable(() => service.inclusion(serial, serial))
  if (typeof inclusion === 'string') return inclusion
  const last = inclusion.leaf_index === serial - 1 && isIncluded(receipt_hash, inclusion, { tree_size, root_hash })
  return last ? null : 'the last receipt of the tree is another'
}

function isVerifierKey(vkey: string): boolean {
  try {
    return readVerifierKey(vkey).name !== ''
  } catch {
    return false
  }
}

async function compare(service: Countersign, before: Pinned, now: Pinned): Promise<Omit<Sighting, 'seen'>> {
  if (now.serial < before.serial)
    return { verdict: 'rollback', detail: `serial ${now.serial}, and ${before.serial} was pinned` }
  if (now.serial === before.serial) {
    const same = now.receipt_hash === before.receipt_hash && now.root_hash === before.root_hash
    return same
      ? { verdict: 'unchanged', detail: `serial ${now.serial}` }
      : { verdict: 'fork', detail: `another receipt ${now.serial} than the one that was pinned` }
  }
  const from = { tree_size: before.serial, root_hash: before.root_hash }
  const to = { tree_size: now.serial, root_hash: now.root_hash }
  const hashes = before.serial === 0 ? [] : await provable(() => service.consistency(before.serial, now.serial))
  if (typeof hashes === 'string') return { verdict: 'invalid', detail: hashes }
  return isContinued(from, to, hashes)
    ? { verdict: 'advanced', detail: `serial ${before.serial} to ${now.serial}` }
    : { verdict: 'fork', detail: `serial ${now.serial} does not continue the pinned ${before.serial}` }
}

/** A service that answers without the proof counts as unable to prove its head. */
async function provable<T>(ask: () => Promise<T>): Promise<T | string> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof CountersignError) || error.retryable) throw error
    return `the service does not prove its head: ${error.message}`
  }
}
