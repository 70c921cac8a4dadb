// Examines what a reader dropped or pasted: its kind, whether it is unchanged since it was signed, and whose key signed it.
// Everything runs in the browser, with the client's verifiers; nothing is sent.
import { joinBytes } from '../../bytes.ts'
import { EXPORT_MARK } from '../../chain/export.ts'
import type { Check, Verification } from '../../checks.ts'
import { verifyDocument } from '../../document.ts'
import { describeDocument, KeptText } from '../../document-words.ts'
import { parseJson } from '../../json.ts'
import { checkBody, checkMessage, isAlert, type MessageVerification, readMessage } from './alert-message.ts'
import { attestationIn } from './bytes-behind.ts'
import { checkReportIn } from './check-report.ts'
import { describe, type Fact } from './describe.ts'
import type { LeaseVerification, Term } from './lease-check.ts'
import { type Ring, ringsOf, type Trust, type Voucher } from './trust.ts'

/**
 * - `good`: every check passed with a key that the reader pinned.
 * - `published`: every check passed with a key that the service of this page publishes.
 * - `stranger`: unchanged since it was signed, but the key is not known here.
 * - `keyless`: it names its key by a number alone, or not at all, and no key here is that one; nothing can be checked.
 * - `lapsed`: genuine, but no longer in force (leases only).
 * - `bad`: changed, or not what it says.
 * - `unsigned`: an answer without a receipt, or the report of a check, so there is nothing to verify.
 * - `unread`: an evidence package, which other programs check.
 */
export type Status = 'good' | 'published' | 'stranger' | 'keyless' | 'lapsed' | 'bad' | 'unsigned' | 'unread'

export interface Report {
  /** E.g. `a completed result`. */
  kind: string
  status: Status
  facts: Fact[]
  checks: Check[]
  /** The parsed value; undefined for text that is not JSON, and for files too long to keep. */
  value: unknown
  /** Of an answer without a receipt: why there is nothing to verify. */
  failure: string | null
  /** Of a lease that is genuine, and of a revocation. */
  term?: Term | undefined
  /** The key that signed a message; else the one that the thing names, and null where it names none. */
  key: { id: number; hex: string | null; status: KeyStatus } | null
}

/** `unpinned`: published here, but it is none of the keys that the reader pinned. */
export type KeyStatus = 'pinned' | 'published' | 'unpinned' | 'unknown'

/**
 * @param chunks the bytes; they are asked for once for each list of keys that is tried
 * @param kinds what is recognised beside documents and alerts
 * @param now milliseconds, for leases
 */
export async function examine(
  chunks: () => AsyncIterable<Uint8Array>,
  trust: Trust,
  kinds: readonly Kind[] = [],
  now = Date.now(),
): Promise<Report> {
  const subject = await identify(chunks, kinds)
  if (subject.text.startsWith(ZIP_MARK)) return { ...PACKAGE, facts: [], checks: [], value: undefined, key: null }
  const { failure } = describeDocument(subject.text)
  const { value, kind } = subject
  const facts = subject.facts ?? describe(value, subject.text)
  const named = { kind, facts, value, failure }
  if (failure && subject.keyId === null) return { ...named, status: 'unsigned', checks: [], key: null }
  if (checkReportIn(value)) return { ...named, kind: CHECK_REPORT, status: 'unsigned', checks: [], key: null }
  const judged = await judge(subject, trust, now)
  return { ...named, ...judged, kind: judged.kind ?? kind }
}

/** How a ZIP file begins. Evidence packages are such files, and nothing else that the service makes. */
const ZIP_MARK = 'PK\u0003\u0004'

const CHECK_REPORT = 'the report of a check'

/** Checking one needs the code of the service and the verifier, so a person is told what does. */
const PACKAGE = { kind: 'an evidence package', status: 'unread', failure: null } as const

interface Subject {
  kind: string
  text: string
  value: unknown
  /** Of a thing that names the number of its key alone. */
  keyId: number | null
  /** Null where they are read as those of any file. */
  facts: Fact[] | null
  /** It names its key itself, so that its own key can be tried. Leases and messages name none. */
  namesKey: boolean
  verify(ring: Omit<Ring, 'voucher'>, now: number): Promise<MessageVerification & LeaseVerification & { kind?: string }>
}

/** Recognises a thing of one kind, which has no receipt. */
export type Kind = (value: unknown) => (Pick<Subject, 'kind' | 'keyId' | 'facts' | 'verify'> & { keyId: number }) | null

async function identify(chunks: () => AsyncIterable<Uint8Array>, kinds: readonly Kind[]): Promise<Subject> {
  const kept = new KeptText()
  const head: Uint8Array[] = []
  for await (const chunk of kept.through(chunks())) if (head.length < 2) head.push(chunk)
  // Of a longer file the first lines are enough to say what it is.
  const text = kept.text() || new TextDecoder().decode(joinBytes(head))
  const message = readMessage(text)
  const value = parsed(message ? message.body : text)
  const base = { text, value, keyId: null, facts: null, namesKey: !message }
  if (message) return { ...base, kind: 'an alert', verify: async ({ keys }) => checkMessage(message, keys) }
  if (isAlert(value)) return { ...base, kind: 'an alert', verify: async ({ keys }) => checkBody(value, keys) }
  for (const kind of kinds) {
    const found = kind(value)
    if (found) return { ...base, ...found, namesKey: false }
  }
  return { ...base, kind: 'a file', verify: (ring) => checkDocument(chunks(), text, value, ring) }
}

async function checkDocument(
  chunks: AsyncIterable<Uint8Array>,
  text: string,
  value: unknown,
  { keys, vkey }: Omit<Ring, 'voucher'>,
) {
  const hasLog =
    text.startsWith(EXPORT_MARK) ||
    (typeof value === 'object' && value !== null && 'inclusion' in value && !('envelope' in value))
  const { ok, checks } = await verifyDocument(chunks, { keys, ...(hasLog && vkey !== undefined && { vkey }) })
  const kind = checks.find(({ name, ok }) => name === 'json' && ok)?.detail
  return { ok, checks, kind: text.startsWith(EXPORT_MARK) ? 'an export of the whole chain' : kind }
}

type Judgement = Pick<Report, 'status' | 'checks' | 'key' | 'term'> & { kind?: string }

async function judge(subject: Subject, trust: Trust, now: number): Promise<Judgement> {
  const own = ownKey(subject)
  const rings = ringsOf(trust)
  const tried: { voucher: Voucher; verdict: Awaited<ReturnType<Subject['verify']>> }[] = []
  for (const ring of rings) {
    const verdict = await subject.verify(ring, now)
    tried.push({ voucher: ring.voucher, verdict })
    if (knowsKey(verdict)) break
  }
  const [first = { voucher: 'file' as const, verdict: await subject.verify({ keys: [] }, now) }] = tried
  const last = tried.at(-1) ?? first
  if (knowsKey(last.verdict)) {
    const isUnpinned = last.voucher === 'published' && trust.pinned.length > 0
    const { kind, checks, ok, lapsed, signer, term } = last.verdict
    const shown = signer ? { id: signer.key_id, hex: signer.pubkey_hex } : own
    const key = shown && { ...shown, status: isUnpinned ? ('unpinned' as const) : (last.voucher as KeyStatus) }
    if (!ok && !lapsed) return { kind, checks, key, status: 'bad' }
    if (isUnpinned) return { kind, checks: distrusted(first.verdict.checks, checks), key, status: 'stranger', term }
    if (lapsed) return { kind, checks, key, status: 'lapsed', term }
    return { kind, checks, key, status: last.voucher === 'pinned' ? 'good' : 'published', term }
  }
  const key = own && { ...own, status: 'unknown' as const }
  // The file's own key shows whether anything was changed since; it says nothing about who signed.
  const alone =
    own?.hex && subject.namesKey
      ? await subject.verify({ keys: [{ key_id: own.id, pubkey_hex: own.hex }] }, now).catch(() => null)
      : null
  if (!alone) {
    const isOnlyKey = first.verdict.checks.every(({ ok, name }) => ok || KEY_CHECKS.includes(name))
    return { ...first.verdict, key, status: isOnlyKey ? 'keyless' : 'bad' }
  }
  const checks = distrusted(first.verdict.checks, alone.checks)
  return { kind: alone.kind, checks, key, status: alone.ok ? 'stranger' : 'bad' }
}

const KEY_CHECKS = ['trusted_key', 'trusted_keys']

const knowsKey = ({ checks }: Verification) => checks.every(({ name, ok }) => ok || !name.startsWith('trusted_key'))

/** The checks that used a key from the file, with the finding that this key is not trusted. */
function distrusted(trusted: readonly Check[], own: readonly Check[]): Check[] {
  const findings = new Map(trusted.filter(({ name }) => KEY_CHECKS.includes(name)).map((check) => [check.name, check]))
  return own.map((check) => findings.get(check.name) ?? check)
}

function ownKey({ value, keyId, text }: Subject): { id: number; hex: string | null } | null {
  if (keyId !== null) return { id: keyId, hex: null }
  const first = text.startsWith(EXPORT_MARK) ? parsed(text.split('\n')[1] ?? '') : firstOf(value)
  if (typeof first !== 'object' || first === null) return null
  const { key_id, pubkey_hex } = attestationIn(first)
  return Number.isSafeInteger(key_id) && typeof pubkey_hex === 'string'
    ? { id: key_id as number, hex: pubkey_hex }
    : null
}

function firstOf(value: unknown): unknown {
  if (Array.isArray(value)) return value[0]
  const { attestations } = (value ?? {}) as { attestations?: unknown }
  return Array.isArray(attestations) ? attestations[0] : value
}

function parsed(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}
