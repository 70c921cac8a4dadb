// Describes in words what a file claims to be, before anything is proved: the facts at the top of a report.
import { EXPORT_MARK } from '../../chain/export.ts'
import { describeDocument, inWords } from '../../document-words.ts'
import { parseJson } from '../../json.ts'
import { attestationIn } from './bytes-behind.ts'

export type Fact = readonly [name: string, value: string]

export function describe(value: unknown, text: string): Fact[] {
  try {
    return factsOf(value, text)
  } catch {
    // A broken thing may have any form; the checks say what is wrong with it.
    return []
  }
}

function factsOf(value: unknown, text: string): Fact[] {
  if (text.startsWith(EXPORT_MARK)) return exportFacts(text)
  const { words, failure } = describeDocument(text)
  if (failure) return [...Object.entries(words), ...failureFacts(value as FailedAnswer)]
  if (Object.keys(words).length > 0) return [...Object.entries(words), ...signedFacts(value)]
  const { type, data, attestations } = (value ?? {}) as Record<string, unknown>
  if (typeof type === 'string' && data) return alertFacts(value as AlertBody)
  const list = Array.isArray(value) ? value : attestations
  return Array.isArray(list) ? chainFacts(list.length, list[0], list.at(-1)) : receiptFacts(value)
}

export const when = (ms: number) => (Number.isFinite(ms) ? inWords.format(new Date(ms)) : 'not a time')

function signedFacts(value: unknown): Fact[] {
  const { ts_ms } = attestationIn(value)
  return typeof ts_ms === 'number' ? [['In the chain since', when(ts_ms)]] : []
}

function receiptFacts(value: unknown): Fact[] {
  const { serial, subject_sha256, label, requested_by } = attestationIn(value)
  if (typeof serial !== 'number') return []
  return [
    ['Receipt', `serial ${serial}`],
    ['Made for', String(requested_by)],
    ...signedFacts(value),
    ...(label === null ? [] : [['Label', String(label)] as const]),
    ['Digest', String(subject_sha256)],
  ]
}

function chainFacts(count: number, first: unknown, last: unknown): Fact[] {
  const [from, to] = [attestationIn(first), attestationIn(last)]
  return [
    ['Receipts', `${count}, serial ${from.serial} to ${to.serial}`],
    ['From', when(Number(from.ts_ms))],
    ['To', when(Number(to.ts_ms))],
  ]
}

/** Of an export that is too long to keep, what its first line says. */
function exportFacts(text: string): Fact[] {
  const [header = '', first = ''] = text.split('\n', 2)
  const { head } = parseJson(header) as { head: { serial: number; receipt_hash: string } }
  const { ts_ms } = parseJson(first) as { ts_ms: number }
  return [
    ['Receipts', `serial 1 to ${head.serial}`],
    ['Head', head.receipt_hash],
    ['From', when(ts_ms)],
  ]
}

interface FailedAnswer {
  status?: string
  request_id?: string
  error: { retryable?: boolean }
}

function failureFacts({ status, request_id, error }: FailedAnswer): Fact[] {
  const next =
    status === 'pending'
      ? 'Ask again for the same request. Do not pay again.'
      : error.retryable
        ? 'The same request may be sent again.'
        : 'The same request would end in the same way.'
  // Only a verification has an id.
  const isCheck = status === 'failed' && request_id !== undefined
  return [
    ['Meaning', isCheck ? UNCHECKED : (ANSWER_WORDS[status ?? ''] ?? 'The service refused the call.')],
    ['What next', next],
    ...(request_id === undefined ? [] : [['Request', request_id] as const]),
  ]
}

const UNCHECKED = 'This check could not be done. It says nothing about the claim, and nothing was charged.'
const ANSWER_WORDS: Record<string, string> = {
  pending: 'The service is still working on it, or does not know yet whether the payment was made.',
  failed: 'The service could not answer. A failed verification is not charged.',
  payment_required: 'The service asked for a payment. Nothing was charged.',
}

interface AlertBody {
  type: string
  timestamp: string
  data: Record<string, unknown>
}

function alertFacts({ type, timestamp, data }: AlertBody): Fact[] {
  const simple = Object.entries(data).filter(([, value]) => typeof value === 'string' || typeof value === 'number')
  return [
    ['Alert', type],
    ['Raised on', when(Date.parse(timestamp))],
    ...simple.slice(0, 8).map(([name, value]) => [name.replaceAll('_', ' '), String(value)] as const),
  ]
}
