// Recomputes what receipts attest: the digest of every stored result, its envelope, and the receipt as the chain has it. Results
// are read in pages and never change, so no long transaction is needed.
import { z } from 'zod'
import { column, type Database, sql } from '../db/pool.ts'
import { receipt } from '../interface/attestation.ts'
import { attestationPreimage, canonicalJson, sha256 } from '../receipts/format.ts'
import { HOW_TO_VERIFY } from '../verification/stages/completion.ts'

/** A stored result of one request, and what is wrong with it. */
interface Difference {
  subject: string
  detail: string
}

/** Results of one query: a result may have some 400 kB. */
const PAGE = 32

/** @param most differences that are listed; all results are counted */
export async function auditResults(db: Database, most: number): Promise<{ checked: number; found: Difference[] }> {
  const found: Difference[] = []
  let checked = 0
  for (let after = FIRST; ; ) {
    const page = await loadResults(db, after)
    const last = page.at(-1)
    if (!last) return { checked, found }
    const read = page.map(({ id, result }) => ({ id, shown: readResult(result) }))
    const chain = await loadChain(db, read)
    for (const { id, shown } of read) {
      const detail = shown === null ? NO_RESULT : differenceOf(id, shown, chain)
      if (detail !== null && found.length < most) found.push({ subject: id, detail })
    }
    checked += page.length
    after = last.id
  }
}

const NO_RESULT = 'its bytes are not those of a result'
/** As JSON writes it: an escape, because text in UTF-8 cannot hold one. */
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/
const FIRST = '00000000-0000-0000-0000-000000000000'

function loadResults(db: Database, after: string) {
  return db.any(sql.type(z.object({ id: z.string(), result: z.instanceof(Buffer) }))`
    select id::text, result from verification_requests
    where state = 'completed' and id > ${after} order by id limit ${PAGE}`)
}

/** The digest covers every member but the receipt, so that has the published members alone, and each of them is checked. */
const shape = z.looseObject({ request_id: z.string(), receipt })
type Shown = z.output<typeof shape>

/** Null for bytes that the service would not write, also if a reader of JSON would find the same values in them. */
function readResult(bytes: Buffer): Shown | null {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    const text = JSON.stringify(value)
    // A lone surrogate has no canonical form.
    if (!Buffer.from(text).equals(bytes) || LONE_SURROGATE.test(text)) return null
    return shape.parse(value)
  } catch {
    return null
  }
}

const link = z.object({
  serial: z.number(),
  receipt_hash: z.string(),
  subject_sha256: z.string(),
  signature: z.string(),
})
type Link = z.output<typeof link>

async function loadChain(db: Database, read: { shown: Shown | null }[]): Promise<Map<number, Link>> {
  const serials = read.flatMap(({ shown }) => (shown ? [shown.receipt.attestation.serial] : []))
  const rows = await db.any(sql.type(link)`
    select serial, encode(receipt_hash, 'hex') receipt_hash, encode(subject_sha256, 'hex') subject_sha256,
           encode(sig_ed25519, 'hex') signature
    from receipts where serial = any(${column(serials, 'int8', (serial) => serial)})`)
  return new Map(rows.map((row) => [row.serial, row]))
}

/** The first thing in which the result, its receipt and the chain differ, or null. */
function differenceOf(id: string, shown: Shown, chain: Map<number, Link>): string | null {
  const { receipt, ...result } = shown
  const { envelope, attestation, canonical_envelope_base64, verification } = receipt
  const name = `its receipt ${attestation.serial}`
  const linked = chain.get(attestation.serial)
  const canonical = Buffer.from(canonicalJson(envelope))
  const rules: [string, () => boolean][] = [
    ['it names another request', () => result.request_id === id && envelope.request_id === id],
    [
      'its digest is not the one that its receipt attests (result_sha256)',
      () => sha256(canonicalJson(result)) === envelope.result_sha256,
    ],
    ['its canonical envelope is not its envelope', () => canonical.toString('base64') === canonical_envelope_base64],
    [`${name} is not in the chain`, () => linked !== undefined],
    [
      `${name} is another one in the chain`,
      () =>
        sha256(attestationPreimage(attestation)) === linked?.receipt_hash &&
        attestation.receipt_hash === linked.receipt_hash &&
        attestation.sig_ed25519_hex === linked.signature,
    ],
    ['how to verify it is told in other words than ours', () => verification === HOW_TO_VERIFY],
    [`${name} attests another envelope`, () => sha256(canonical) === linked?.subject_sha256],
  ]
  return rules.find(([, holds]) => !holds())?.[0] ?? null
}
