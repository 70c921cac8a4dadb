// A range of the chain checked for whoever asks, in slices, so that the event loop goes on answering others; the signatures
// are checked on threads meanwhile.
import type { Database } from '../db/pool.ts'
import { findAttestation } from './archive.ts'
import { loadKnownKeys, loadReceipts } from './audit.ts'
import { inspectReceipt, type Signed, type Walk } from './entry-verification.ts'
import { GENESIS } from './format.ts'
import type { Head } from './head.ts'
import type { Range } from './reader.ts'
import type { Verifier } from './signatures.ts'

export interface RangeFault {
  serial: number
  check: string
  detail: string
}

export interface RangeCheck {
  receipts: number
  signatures: number
  /** The one of the lowest serial. */
  fault: RangeFault | null
}

/** A millisecond of the event loop or two. */
const SLICE = 125

/** @param range not beyond the head; an empty one is sound */
export async function checkRange(
  { db, verifier }: { db: Database; verifier: Verifier },
  { from, to }: Range,
  head: Head,
): Promise<RangeCheck> {
  const keys = await loadKnownKeys(db)
  const faults: RangeFault[] = []
  const report = (check: string, serial: number, detail: string) => void faults.push({ serial, check, detail })
  const walk = await startBefore(db, from)
  const checks: Promise<void>[] = []
  let receipts = 0
  let signatures = 0

  for (let first = from; first <= to; first += SLICE) {
    const slice = await loadReceipts(db, first, Math.min(first + SLICE - 1, to))
    const signed = slice.map((receipt) => inspectReceipt(receipt, walk, keys, report))
    receipts += slice.length
    signatures += signed.filter(Boolean).length
    checks.push(
      checkSignatures(
        verifier,
        slice.map(({ serial }) => serial),
        signed,
        report,
      ),
    )
    // Whoever fails first speaks at the end, not as an unhandled rejection meanwhile.
    checks.at(-1)?.catch(() => {})
  }
  await Promise.all(checks)
  if (walk.serial < to) report('serials', to, 'is missing')
  if (from <= to && to === head.serial && walk.prevHash !== head.receipt_hash)
    report('head', to, 'is not what the head says')
  return { receipts, signatures, fault: faults.toSorted((a, b) => a.serial - b.serial)[0] ?? null }
}

/** After the receipt before the range, which is not checked itself. */
async function startBefore(db: Database, from: number): Promise<Walk> {
  const before = from === 1 ? null : await findAttestation(db, from - 1)
  const prevHash = from === 1 ? GENESIS : (before?.receipt_hash ?? 'none')
  return { serial: from - 1, prevHash, tsMs: before?.ts_ms ?? 0, tree: null }
}

async function checkSignatures(
  verifier: Verifier,
  serials: number[],
  signed: (Signed | null)[],
  report: (check: string, serial: number, detail: string) => void,
) {
  const asked = signed.flatMap((one, index) => (one ? [{ ...one, serial: serials[index]! }] : []))
  const answers = await verifier.areSigned(
    asked.map(({ text, key, signature }) => ({
      text,
      pubkey_hex: key.pubkey_hex,
      signature_hex: signature.toString('hex'),
    })),
  )
  for (const [index, { serial }] of asked.entries())
    if (!answers[index]) report('signatures', serial, 'is not signed by its key')
}
