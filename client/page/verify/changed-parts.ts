// Which parts of a changed result its failed checks point at, in words for its card. The place of a quote is not among them: the card
// compares each quote with the text itself.
import type { Check } from '../../checks.ts'
import type { CardMarks } from '../result/result-card.ts'
import { wordsOf } from './check-words.ts'

/** Checks of a verdict; their detail begins with the number of the claim, where there are several. */
const OF_VERDICTS = [
  'literal_scope_only_mentions',
  'supports_has_support',
  'contradicts_has_contradiction',
  'mixed_has_both',
]
const OF_RECEIPT = [
  'purchase_attestation',
  'signature',
  'receipt_hash',
  'attested_time',
  'subject_sha256',
  'canonical_envelope',
]

/** By the member in which the envelope of the receipt differs from the result. */
const OF_READING: Readonly<Record<string, string>> = {
  checked_at: 'The envelope of its receipt names another date.',
  methodology_version: 'The envelope of its receipt names another method.',
}
const ELSEWHERE: Readonly<Record<string, string>> = {
  request_id: 'Its envelope names another request than the result.',
  payment: 'Its envelope names another payment than the result.',
}

export function changedParts(checks: readonly Check[]): CardMarks {
  const failed = new Map(checks.filter(isFailed).map(({ name, detail = '' }) => [name, detail]))
  const fails = (name: string) => (failed.has(name) ? wordsOf(name).fails : undefined)
  const byClaim = (names: readonly string[]) =>
    new Map(names.filter((name) => failed.has(name)).map((name) => [claimOf(failed.get(name)), wordsOf(name).fails]))
  const differing = /^envelope\.(\w+) /.exec(failed.get('envelope_agrees') ?? '')?.[1] ?? ''
  const marks = {
    verdicts: byClaim(OF_VERDICTS),
    readings: byClaim(['claims_as_read']),
    text: fails('text_sha256'),
    reading: OF_READING[differing],
    receipt: OF_RECEIPT.map(fails).find((words) => words !== undefined) ?? ELSEWHERE[differing],
  }
  const { verdicts, readings, ...others } = marks
  const isPlaced =
    verdicts.size + readings.size > 0 ||
    Object.values(others).some((words) => words !== undefined) ||
    ['evidence_quotes', 'evidence_digests'].some((name) => failed.has(name))
  const [, repeated] = /^(\S+) names two quotes$/.exec(failed.get('evidence_quotes') ?? '') ?? []
  if (repeated !== undefined) return { ...marks, card: `Two quotes have the same name, ${repeated}.` }
  return { ...marks, card: failed.has('result_sha256') && !isPlaced ? UNPLACED : undefined }
}

const UNPLACED =
  'The checks cannot tell which part was changed: the claim, the verdict, the explanation, a doubt or something else. Quotes and text agree with each other.'

const isFailed = ({ ok, detail }: Check) => !ok && !detail?.startsWith('not checked')

/** The index of the claim that a detail names. */
function claimOf(detail = ''): number {
  return Number(/^claim (\d+): /.exec(detail)?.[1] ?? 1) - 1
}
