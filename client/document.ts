// Verifies a file of any known kind. The form of the file decides its kind, and the answer names the kind. A pin that does
// not apply to that kind is refused, because otherwise its owner would believe that it was checked.
import { UsageError } from './arguments.ts'
import { joinBytes } from './bytes.ts'
import { type Attestation, verifyAttestation } from './chain/attestation.ts'
import { type ChainOptions, verifyChain } from './chain/chain.ts'
import { EXPORT_MARK, verifyExport } from './chain/export.ts'
import { type ReceiptOptions, verifyReceipt } from './chain/receipt.ts'
import type { Check, Verification } from './checks.ts'
import { MAX_JSON_BYTES, parseJson } from './json.ts'
import { anything, closed, integer } from './shape.ts'
import { verifyPurchaseReceipt, verifyResult } from './verification.ts'

export type DocumentOptions = Omit<ChainOptions, 'checkpoint'> & Pick<ReceiptOptions, 'tree'>

interface Kind {
  name: string
  /** The pins that apply to it, besides the keys. */
  pins: readonly (keyof DocumentOptions)[]
  verify(value: unknown, options: DocumentOptions): Verification
}

const CHAIN_PINS = ['from', 'through', 'head', 'signatures'] as const

const RESULT: Kind = { name: 'a completed result', pins: [], verify: verifyResult }
const RECEIPT: Kind = { name: 'a receipt', pins: ['vkey', 'tree'], verify: verifyReceipt }
const SOLD: Kind = { name: 'the receipt of a purchase', pins: [], verify: verifyPurchaseReceipt }
const ATTESTATION: Kind = { name: 'an attestation', pins: [], verify: verifyAttestation }
const WRAPPED: Kind = { ...ATTESTATION, verify: (value, options) => verifyAttestation(attestationIn(value), options) }
const CHAIN: Kind = { name: 'consecutive attestations', pins: CHAIN_PINS, verify: verifyChain }
const PAGE: Kind = { name: 'a page of the chain', pins: CHAIN_PINS, verify: verifyPage }
const EXPORT: Omit<Kind, 'verify'> = { name: 'an export', pins: ['through', 'head', 'vkey', 'signatures'] }

/**
 * Verifies a completed result, its receipt alone, a receipt, an attestation, attestations in a row, or an export, which may be longer than
 * memory. Throws a TypeError for a malformed pin, a UsageError for one that does not apply, never for a bad file.
 */
export async function verifyDocument(
  chunks: AsyncIterable<Uint8Array>,
  options: DocumentOptions,
): Promise<Verification> {
  const source = chunks[Symbol.asyncIterator]()
  const begun: Uint8Array[] = []
  for (let length = 0; length < EXPORT_MARK.length; ) {
    const { value, done } = await source.next()
    if (done) break
    begun.push(value)
    length += value.length
  }
  async function* all() {
    try {
      yield* begun
      for (let next = await source.next(); !next.done; next = await source.next()) yield next.value
    } finally {
      await source.return?.()
    }
  }
  if (!new TextDecoder().decode(joinBytes(begun)).startsWith(EXPORT_MARK))
    return verifyJson(await collect(all(), MAX_JSON_BYTES), options)
  refuseMisfits(EXPORT, options)
  return verifyExport(all(), options)
}

function verifyJson(bytes: Uint8Array | null, options: DocumentOptions): Verification {
  if (bytes === null) {
    const detail = `it is longer than ${MAX_JSON_BYTES.toLocaleString('en')} bytes, and only an export of the chain may be`
    return { ok: false, checks: [{ name: 'json', ok: false, detail }] }
  }
  let value: unknown
  try {
    value = parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (error) {
    // Not UTF-8, not JSON, or JSON that two readers may read differently.
    return { ok: false, checks: [{ name: 'json', ok: false, detail: (error as Error).message }] }
  }
  const kind = kindOf(value)
  refuseMisfits(kind, options)
  const { ok, checks } = kind.verify(value, options)
  return { ok, checks: [{ name: 'json', ok: true, detail: kind.name }, ...checks] }
}

/** Found by the member that all others depend on, so that the others are always checked. */
function kindOf(value: unknown): Kind {
  if (Array.isArray(value)) return CHAIN
  if (typeof value !== 'object' || value === null) return ATTESTATION
  if (Object.hasOwn(value, 'receipt')) return RESULT
  if (Object.hasOwn(value, 'attestations')) return PAGE
  if (!Object.hasOwn(value, 'attestation')) return ATTESTATION
  if (Object.hasOwn(value, 'envelope')) return SOLD
  return Object.keys(value).length === 1 ? WRAPPED : RECEIPT
}

const attestationIn = (value: unknown) => (value as { attestation: unknown }).attestation

function refuseMisfits(kind: Omit<Kind, 'verify'>, { signatures, ...options }: DocumentOptions): void {
  const given = { ...options, signatures: signatures === 'last' ? signatures : undefined }
  const flags = (Object.keys(FLAGS) as (keyof typeof FLAGS)[]).filter((name) => given[name] !== undefined)
  const misfit = flags.find((name) => !kind.pins.includes(name))
  if (misfit) throw new UsageError(`${FLAGS[misfit]} says nothing about ${kind.name}, and that is what the file holds.`)
}

const FLAGS = {
  from: '--from',
  through: '--through',
  head: '--head',
  vkey: '--vkey',
  tree: '--tree',
  signatures: '--last-signature',
} as const

const pageShape = closed({ from: integer(1), to: integer(0), head_serial: integer(0), attestations: anything })

interface Page {
  from: number
  to: number
  head_serial: number
  attestations: Attestation[]
}

function verifyPage(value: unknown, options: DocumentOptions): Verification {
  const page = value as Page
  const { checks } = verifyChain(page.attestations, options)
  const fault = pageShape(value, '') ?? rangeFault(page)
  const first: Check = fault === null ? { name: 'page', ok: true } : { name: 'page', ok: false, detail: fault }
  return { ok: [first, ...checks].every(({ ok }) => ok), checks: [first, ...checks] }
}

/** `head_serial` is the head at the time of the page. Nothing in the page proves it. */
function rangeFault({ from, to, head_serial, attestations }: Page): string | null {
  if (!Array.isArray(attestations) || attestations[0]?.serial !== from || attestations.at(-1)?.serial !== to)
    return `these are not the receipts from ${from} to ${to}`
  return to <= head_serial ? null : `it ends after its head, serial ${head_serial}`
}

/** Null for more bytes; no more are read. */
async function collect(chunks: AsyncIterable<Uint8Array>, most: number): Promise<Uint8Array | null> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const chunk of chunks) {
    length += chunk.length
    if (length > most) return null
    parts.push(chunk)
  }
  return joinBytes(parts)
}
