// Which key a result must be signed with: keys that are pinned as `verify` pins them, else the key of the first use, which is kept
// beside the purchases. A kept key that has been replaced is followed by the receipts that introduce its successors.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { checkKeys } from '../arguments.ts'
import { waitForLock } from '../batch/lock.ts'
import { checkLines, LogFile, readLines } from '../batch/log-file.ts'
import type { Question } from '../batch/purchase.ts'
import type { Check } from '../checks.ts'
import type { PurchaseResult } from '../result.ts'
import { integer, list, literal, object, text } from '../shape.ts'
import { type PinnedKey, trustIntroduced, verifyResult } from '../verification.ts'
import { readable } from './files.ts'
import { firstError } from './output.ts'
import { openClient } from './patience.ts'
import { type Pins, readIntroducedFiles, readPinned } from './pins.ts'
import { signatureCheck } from './signature-check.ts'

export interface Proof {
  ok: boolean
  /** The result has every member that is shown. False only where not `ok`. */
  isReadable: boolean
  /** Those that failed; none where `ok`. */
  faults: Check[]
  /** One sentence: by which key it is proved, or why it is not. */
  words: string
}

/** Of a result of which nothing is to be shown. */
export function unproved(words: string): Proof {
  return { ok: false, isReadable: false, faults: [], words }
}

/** The file of the keys that are kept since their first use. */
const KEPT = 'keys.jsonl'

interface KeptKey extends PinnedKey {
  service: string
  kept_at: string
}

export class Trust {
  readonly #service: string
  readonly #folder: string
  readonly #pinned: PinnedKey[]
  readonly #introduced: unknown[]

  private constructor(service: string, folder: string, pinned: PinnedKey[], introduced: unknown[]) {
    this.#service = service
    this.#folder = folder
    this.#pinned = pinned
    this.#introduced = introduced
  }

  /** Reads the pins. Throws a UsageError or a DamagedFileError. `folder` is where the key of the first use is kept. */
  static async open(service: string, folder: string, pins: Pins): Promise<Trust> {
    const pinned = await readPinned(pins)
    if (pinned.length > 0) checkKeys(pinned)
    else await readable(join(folder, KEPT), () => checkLines(join(folder, KEPT)))
    return new Trust(service, folder, pinned, await readIntroducedFiles(pins))
  }

  /** Whether the result proves, offline where a key is known, and answers this question. */
  async examine(result: PurchaseResult, question: Question): Promise<Proof> {
    const fault = ('claims' in question ? shownClaims : shownSource)(result, '')
    // Nothing of it can be shown, by any signer.
    if (fault) return unproved(`shape: ${fault}`)
    const asked = askedFaults(result, question)
    const { key_id, pubkey_hex } = result.receipt?.attestation ?? {}
    const name = `${key_id}:${pubkey_hex}`
    const kept = this.#pinned.length > 0 ? this.#pinned : await this.#readKept()
    if (kept.length === 0) return await this.#examineFirst(result, asked)
    const judge = (keys: PinnedKey[]) => verifyResult(result, { keys, signatureCheck })
    let found = judge(trustIntroduced(this.#introduced, kept, { signatureCheck }))
    if (found.checks.some((check) => check.name === 'trusted_key' && !check.ok)) {
      const published = await openClient({ baseUrl: this.#service })
        .keys()
        .catch(() => [])
      found = judge(trustIntroduced([...this.#introduced, ...published], kept, { signatureCheck }))
    }
    const whose = this.#pinned.length > 0 ? 'pinned' : 'kept since the first use'
    return proofOf([...found.checks, ...asked], `signed by key ${key_id}, ${whose}`, name)
  }

  /** The keys that are trusted without asking the service. */
  async known(): Promise<PinnedKey[]> {
    const kept = this.#pinned.length > 0 ? this.#pinned : await this.#readKept()
    return trustIntroduced(this.#introduced, kept, { signatureCheck })
  }

  /** Without a known key the published one is taken, if everything else proves, and kept. */
  async #examineFirst(result: PurchaseResult, asked: Check[]): Promise<Proof> {
    const { key_id, pubkey_hex } = result.receipt?.attestation ?? {}
    const published = await openClient({ baseUrl: this.#service }).keys()
    const key = published.find((one) => one.key_id === key_id && one.pubkey_hex === pubkey_hex && one.use === 'receipt')
    const { checks } = verifyResult(result, { keys: key ? [key] : [], signatureCheck })
    const wordsFor = (kept: string) =>
      `signed by key ${key_id}, seen for the first time and ${kept}; ` +
      `compare it with a source other than the service, or pin it: --pin ${key_id}:${pubkey_hex}`
    const proof = proofOf([...checks, ...asked], wordsFor('kept from now on'), `${key_id}:${pubkey_hex}`)
    if (!proof.ok || !key) return proof
    return await this.#keep(key).then(
      () => proof,
      // A full disk changes nothing about the proof.
      (error: Error) => ({ ...proof, words: wordsFor(`not kept (${error.message})`) }),
    )
  }

  async #readKept(): Promise<PinnedKey[]> {
    const read = this.#withKept(async (kept) => kept)
    return await read.catch(async (error: unknown) => {
      // Without room for a lock the keys can still be read.
      if ((firstError(error) as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      const kept: PinnedKey[] = []
      for await (const line of readLines<KeptKey>(join(this.#folder, KEPT)))
        if (line.service === this.#service) kept.push({ key_id: line.key_id, pubkey_hex: line.pubkey_hex })
      return kept
    })
  }

  async #keep({ key_id, pubkey_hex }: PinnedKey): Promise<void> {
    await this.#withKept(async (kept, file) => {
      if (kept.length > 0) return
      await file.append({ service: this.#service, key_id, pubkey_hex, kept_at: new Date().toISOString() })
    })
  }

  async #withKept<T>(work: (kept: PinnedKey[], file: LogFile<KeptKey>) => Promise<T>): Promise<T> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    await using _lock = await waitForLock(join(this.#folder, 'keys.lock'))
    const kept: PinnedKey[] = []
    await using file = await LogFile.open<KeptKey>(join(this.#folder, KEPT), (line) => {
      if (line.service === this.#service) kept.push({ key_id: line.key_id, pubkey_hex: line.pubkey_hex })
    })
    return await work(kept, file)
  }
}

/** A genuine result of another question is no answer to this one. */
function askedFaults(result: PurchaseResult, question: Question): Check[] {
  const check = (name: string, ok: boolean, detail: string): Check => (ok ? { name, ok } : { name, ok, detail })
  const page = check('asked_page', result.source?.requested_url === question.source_url, 'it is about another page')
  if (!('claims' in question)) {
    const isAsked = 'claim' in result && result.claim === question.claim
    return [page, check('asked_claim', isAsked, 'it is about another claim')]
  }
  const told = 'claims' in result && Array.isArray(result.claims) ? result.claims : []
  const isAsked = told.length === question.claims.length && told.every(({ claim }, i) => claim === question.claims[i])
  const context = 'context' in result ? result.context : undefined
  return [
    page,
    check('asked_claims', isAsked, 'it is about other claims'),
    check('asked_context', context === question.context, 'the claims were read with another context'),
  ]
}

function proofOf(checks: readonly Check[], words: string, key: string): Proof {
  const faults = checks.filter(({ ok }) => !ok)
  if (faults.length === 0) return { ok: true, isReadable: true, faults, words }
  const isUnknown = faults.every(({ name }) => name === 'trusted_key' || name === 'signature')
  const isStranger = isUnknown && faults.some(({ name }) => name === 'trusted_key')
  const why = isStranger
    ? `unknown key: it is signed by key ${key}, and no trusted key introduces that one`
    : faults.map(({ name, detail }) => (detail ? `${name}: ${detail}` : name)).join('; ')
  return { ok: false, isReadable: true, faults, words: why }
}

const MOST_FLAGS = 32
const MOST_QUOTES = 6
const MOST_CLAIMS = 10

/** What is shown of a result. The checks of its receipt do not need all of it. */
const shownPage = {
  checked_at: text(),
  request_id: text(),
  source: object({ requested_url: text(), final_url: text(), normalized_text: text() }),
  payment: object({ mode: text(), simulated: literal(true, false), amount_atomic: text() }),
  receipt: object({ attestation: object({ serial: integer(1) }) }),
}
const shownFinding = {
  claim: text(),
  claim_support: text(),
  explanation: text(),
  risk_flags: list(text(), MOST_FLAGS),
  evidence: list(object({ stance: text(), quote: text(), start: integer(0), end: integer(0) }), MOST_QUOTES),
}
const shownSource = object({ ...shownPage, ...shownFinding })
const shownClaims = object({ ...shownPage, claims: list(object(shownFinding), MOST_CLAIMS, 1) })
