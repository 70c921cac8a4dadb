// A range of the receipt chain: no gap, no fork, no step back in time.
import {
  type Attestation,
  attestationShape,
  attestedTimeFault,
  distrust,
  GENESIS_HASH,
  receiptHashFault,
  signatureFault,
} from './attestation.ts'
import { examine, Note, type Rule, type Verification } from './checks.ts'
import { buildKeyRing, type KeyRing, type PinnedKey } from './keys.ts'
import { list } from './shape.ts'

/** A place in the chain that the caller has verified or pinned before. */
export interface ChainPoint {
  serial: number
  receipt_hash: string
}

export interface ChainOptions {
  keys: readonly PinnedKey[]
  /** The receipt just before the first one given; without it, a range that starts after serial 1 hangs in the air. */
  from?: ChainPoint
  /** The head that was pinned: the range must end there. */
  head?: ChainPoint
  /**
   * `every` (default) checks each signature, about 2 ms apiece. `last` checks one: through the links it covers all
   * before it, except that a bad signature among those goes unnoticed.
   */
  signatures?: 'every' | 'last'
}

/** Verifies consecutive attestations, oldest first. Throws a TypeError for a malformed pin, never for a bad chain. */
export function verifyChain(attestations: unknown, options: ChainOptions): Verification {
  const keyRing = buildKeyRing(options.keys)
  const rules: Rule<Attestation[]>[] = [
    ['start', (chain) => startFault(chain[0]!, options.from)],
    ['serials', pairs((next, last) => (next.serial === last.serial + 1 ? null : `comes after serial ${last.serial}`))],
    ['links', pairs((next, last) => (next.prev_hash === last.receipt_hash ? null : 'does not link to the one before'))],
    ['times', pairs((next, last) => (next.ts_ms >= last.ts_ms ? null : 'is earlier than the one before'))],
    ['trusted_keys', each((one) => distrust(one, keyRing))],
    ['receipt_hashes', each(receiptHashFault)],
    ['attested_times', each(attestedTimeFault)],
    ['signatures', (chain) => signaturesFault(chain, keyRing, options.signatures ?? 'every')],
    ['head', (chain) => headFault(chain.at(-1)!, options.head)],
  ]
  return examine(attestations, list(attestationShape, Number.POSITIVE_INFINITY, 1), rules)
}

function startFault({ serial, prev_hash }: Attestation, from: ChainPoint | undefined): string | Note | null {
  if (from) {
    if (serial !== from.serial + 1) return `starts at serial ${serial}, not after the given ${from.serial}`
    return prev_hash === from.receipt_hash ? null : `serial ${serial} does not link to the given receipt before it`
  }
  if (serial > 1) return new Note(`starts at serial ${serial}; no receipt before it was given to link to`)
  return prev_hash === GENESIS_HASH ? null : 'serial 1 must have 64 zeros as prev_hash'
}

function signaturesFault(chain: Attestation[], keyRing: KeyRing, mode: 'every' | 'last'): string | Note | null {
  const fault = each((one) => signatureFault(one, keyRing))(mode === 'every' ? chain : chain.slice(-1))
  return fault ?? (mode === 'last' ? new Note('only the last signature was checked') : null)
}

function headFault({ serial, receipt_hash }: Attestation, head: ChainPoint | undefined): string | Note | null {
  if (!head) return new Note(`ends at serial ${serial}; no head was given to compare with`)
  return serial === head.serial && receipt_hash === head.receipt_hash
    ? null
    : `does not end at the given head, serial ${head.serial}`
}

function each(fault: (attestation: Attestation) => string | null) {
  return (chain: Attestation[]): string | null => {
    for (const attestation of chain) {
      const found = fault(attestation)
      if (found) return `serial ${attestation.serial}: ${found}`
    }
    return null
  }
}

function pairs(fault: (next: Attestation, last: Attestation) => string | null) {
  return (chain: Attestation[]): string | null => {
    for (let i = 1; i < chain.length; i++) {
      const found = fault(chain[i]!, chain[i - 1]!)
      if (found) return `serial ${chain[i]!.serial} ${found}`
    }
    return null
  }
}
