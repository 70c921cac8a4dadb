// Verifies a range of the receipt chain: no gap, no fork, no step back in time, and no key without an introduction. It
// takes one receipt at a time, so it can verify a chain of any length.

import { type Check, Note, type Verification } from '../checks.ts'
import { describe, jsonFaults } from '../json.ts'
import {
  type Attestation,
  attestationShape,
  attestedTimeFault,
  distrust,
  GENESIS_HASH,
  receiptHashFault,
  signatureFault,
} from './attestation.ts'
import { noteFault, readCheckpoint, readVerifierKeys, type VerifierKey } from './checkpoint.ts'
import { buildKeyRing, type KeyRing, type PinnedKey, receiptKeys } from './keys.ts'
import { TreeGrowth, type TreeHead } from './merkle.ts'
import { introductionSubject, isHandover } from './rotation.ts'
import type { SignatureCheck } from './signature.ts'

/** A place in the chain that the caller has verified or pinned before. */
export interface ChainPoint {
  serial: number
  receipt_hash: string
}

export interface ChainOptions {
  /** The trusted keys. One is enough: the chain introduces each later key. */
  keys: readonly PinnedKey[]
  /**
   * The receipt directly before the first given one; without it, no earlier receipt proves a range that starts after serial
   * 1.
   */
  from?: ChainPoint
  /** Receipts that were pinned before: the range must lead through each of them. */
  through?: readonly ChainPoint[]
  /** The pinned head: the range must end there. */
  head?: ChainPoint
  /**
   * The signed head of the tree over the chain, and the pinned verifier key for it. Keys of use `checkpoint` among
   * `keys` count too. A verifier key without a checkpoint is a fault.
   */
  checkpoint?: string
  vkey?: string
  /**
   * `every` (default) checks each signature. `last` checks the last one and those that introduce keys. The links then
   * prove all other receipts, but a bad signature among them goes unnoticed.
   */
  signatures?: 'every' | 'last'
  /** Replaces the included check of Ed25519 signatures, which takes 2 ms. */
  signatureCheck?: SignatureCheck
  /** Is told the root of the tree at each of these sizes, and the time of its last receipt; of a chain from serial 1. */
  trees?: { sizes: ReadonlySet<number>; found: (tree: TreeHead, ts_ms: number) => void } | undefined
}

/** Verifies consecutive attestations, oldest first. Throws a TypeError for a malformed pin, never for a bad chain. */
export function verifyChain(attestations: unknown, options: ChainOptions): Verification {
  const verifier = new ChainVerifier(options)
  if (Array.isArray(attestations)) for (const attestation of attestations) verifier.add(attestation)
  else verifier.refuse('the value is not an array')
  return verifier.end()
}

const CHECKS = [
  'plain_json',
  'well_formed_unicode',
  'shape',
  'start',
  'serials',
  'links',
  'times',
  'key_changes',
  'trusted_keys',
  'receipt_hashes',
  'attested_times',
  'signatures',
  'through',
  'head',
  'checkpoint',
] as const
type CheckName = (typeof CHECKS)[number]

/** `verifyChain` for a chain that arrives in pieces. */
export class ChainVerifier {
  readonly #options: ChainOptions
  /** The first fault or note under each name. */
  readonly #found = new Map<CheckName, string | Note>()
  readonly #tree = new TreeGrowth()
  /** Of the keys that are pinned or were introduced. */
  readonly #keyIds: Set<number>
  readonly #verifierKeys: VerifierKey[] | undefined
  /** The receipts of `through` that have not arrived yet. */
  #awaited: readonly ChainPoint[]
  #keyRing: KeyRing
  #count = 0
  #last: Attestation | undefined
  #lastIsSigned = false

  constructor(options: ChainOptions) {
    this.#options = options
    const ours = receiptKeys(options.keys)
    this.#keyIds = new Set(ours.map((key) => key.key_id))
    this.#keyRing = buildKeyRing(ours)
    this.#verifierKeys = options.vkey === undefined ? undefined : readVerifierKeys(options.vkey, options.keys)
    this.#awaited = options.through ?? []
  }

  add(value: unknown): void {
    const path = `/${this.#count++}`
    const fault = jsonFaults(value)[0]
    const wrong = fault ? `${path}${describe(fault)}` : attestationShape(value, path)
    if (fault) this.#note(fault.kind === 'not_json' ? 'plain_json' : 'well_formed_unicode', wrong)
    if (wrong) this.refuse(fault ? 'not checked: it is not well-formed JSON data' : wrong)
    // After an item that is not a receipt, no later item can be checked.
    else if (!this.#found.has('shape')) this.#follow(value as Attestation)
  }

  /** The item is no receipt. */
  refuse(reason: string): void {
    this.#note('shape', reason)
  }

  end(): Verification {
    if (!this.#last) this.refuse('the value has 0 items')
    if (this.#last && !this.#found.has('shape')) this.#finish(this.#last)
    const shapeless = this.#found.has('shape')
    const checks = CHECKS.map((name, index): Check => {
      const found = this.#found.get(name)
      if (shapeless && index > CHECKS.indexOf('shape'))
        return { name, ok: false, detail: 'not checked: the shape is wrong' }
      if (found === undefined) return { name, ok: true }
      return found instanceof Note ? { name, ok: true, detail: found.text } : { name, ok: false, detail: found }
    })
    return { ok: checks.every(({ ok }) => ok), checks }
  }

  #follow(next: Attestation): void {
    const at = (text: string | null) => text && `serial ${next.serial}: ${text}`
    const last = this.#last
    if (last) this.#link(next, last, at)
    else this.#note('start', this.#startFault(next))
    const trust = distrust(next, this.#keyRing)
    this.#note('trusted_keys', at(trust))
    this.#note('receipt_hashes', at(receiptHashFault(next)))
    this.#note('attested_times', at(attestedTimeFault(next)))
    this.#lastIsSigned = false
    // A signature introduces a key, so it is checked also in mode `last`.
    if ((this.#options.signatures ?? 'every') === 'every' || isHandover(next)) this.#checkSignature(next)
    const met = this.#awaited.filter(({ serial }) => serial === next.serial)
    const other = met.some(({ receipt_hash }) => receipt_hash !== next.receipt_hash)
    this.#note('through', other ? at('is another receipt than the one that was pinned') : null)
    this.#awaited = this.#awaited.filter((point) => !met.includes(point))
    this.#tree.append(next.receipt_hash)
    const { trees } = this.#options
    if (trees?.sizes.has(next.serial)) trees.found(this.#tree.head(), next.ts_ms)
    this.#last = next
  }

  #link(next: Attestation, last: Attestation, at: (text: string | null) => string | null): void {
    this.#note('serials', next.serial === last.serial + 1 ? null : at(`comes after serial ${last.serial}`))
    this.#note('links', next.prev_hash === last.receipt_hash ? null : at('does not link to the one before'))
    this.#note('times', next.ts_ms >= last.ts_ms ? null : at('is earlier than the one before'))
    this.#note('key_changes', at(this.#keyChangeFault(next, last)))
  }

  #keyChangeFault(next: Attestation, last: Attestation): string | null {
    const same = next.key_id === last.key_id && next.pubkey_hex === last.pubkey_hex
    if (!isHandover(last)) return same ? null : 'is signed with another key, which nothing introduced'
    const { key_id, pubkey_hex, serial: first_serial } = next
    if (same || last.subject_sha256 !== introductionSubject({ key_id, use: 'receipt', pubkey_hex, first_serial }))
      return 'is not signed with the key that the one before introduced'
    // Trusted only if a trusted key signed the introduction.
    if (this.#lastIsSigned) this.#trust({ key_id, pubkey_hex, first_serial })
    return null
  }

  #trust(key: PinnedKey): void {
    if (this.#keyIds.has(key.key_id)) return
    const before = this.#keyRing
    try {
      const added = buildKeyRing([key])
      this.#keyRing = (attestation) => (attestation.key_id === key.key_id ? added : before)(attestation)
      this.#keyIds.add(key.key_id)
    } catch {
      // The introduced value is no key: it stays untrusted.
    }
  }

  #checkSignature(attestation: Attestation): void {
    const fault = signatureFault(attestation, this.#keyRing, this.#options.signatureCheck)
    this.#note('signatures', fault && `serial ${attestation.serial}: ${fault}`)
    this.#lastIsSigned = fault === null
  }

  #finish(last: Attestation): void {
    if (this.#options.signatures === 'last') {
      this.#checkSignature(last)
      this.#note('signatures', new Note('only the last signature and those that introduce keys were checked'))
    }
    const missing = this.#awaited[0]
    this.#note('through', missing ? `serial ${missing.serial}, which was pinned, is not among these` : null)
    this.#note('head', headFault(last, this.#options.head))
    this.#note('checkpoint', this.#checkpointFault(last))
  }

  #startFault({ serial, prev_hash }: Attestation): string | Note | null {
    const { from } = this.#options
    if (from) {
      if (serial !== from.serial + 1) return `starts at serial ${serial}, not after the given ${from.serial}`
      return prev_hash === from.receipt_hash ? null : `serial ${serial} does not link to the given receipt before it`
    }
    if (serial > 1) return new Note(`starts at serial ${serial}; no receipt before it was given to link to`)
    return prev_hash === GENESIS_HASH ? null : 'serial 1 must have 64 zeros as prev_hash'
  }

  #checkpointFault(last: Attestation): string | Note | null {
    const { checkpoint: note, signatureCheck } = this.#options
    const keys = this.#verifierKeys
    if (note === undefined)
      return keys ? 'there is none to check with the verifier key' : new Note('no checkpoint was given to compare with')
    const checkpoint = readCheckpoint(note)
    if (!checkpoint) return 'what was given is not a checkpoint'
    const fault = keys && noteFault(note, keys, signatureCheck)
    if (fault) return `it ${fault}`
    if (checkpoint.tree_size !== last.serial)
      return `is of ${checkpoint.tree_size} receipts, and these end at ${last.serial}`
    const { tree_size, root_hash } = this.#tree.head()
    if (tree_size !== last.serial) return new Note('the tree was not recomputed: that takes the chain from serial 1')
    if (root_hash !== checkpoint.root_hash) return 'its root is not that of the tree over these receipts'
    return keys ? null : new Note('its signature was not checked: no verifier key was given')
  }

  /** Keeps the first of each name; a fault replaces a note. */
  #note(name: CheckName, found: string | Note | null): void {
    const before = this.#found.get(name)
    if (found === null || typeof before === 'string' || (before && found instanceof Note)) return
    this.#found.set(name, found)
  }
}

function headFault({ serial, receipt_hash }: Attestation, head: ChainPoint | undefined): string | Note | null {
  if (!head) return new Note(`ends at serial ${serial}; no head was given to compare with`)
  return serial === head.serial && receipt_hash === head.receipt_hash
    ? null
    : `does not end at the given head, serial ${head.serial}`
}
