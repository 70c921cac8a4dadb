// Corrections of misquotations: the words of the page in place of those in the report, and nothing else changed.
import type { Judged, JudgedPart } from './judgement.ts'
import type { Found } from './pages.ts'
import type { Report, Span } from './report.ts'

export interface Correction extends Span {
  /** The words of the report. */
  before: string
  /** The words of the page. */
  after: string
  /** `after` as the file spells it. */
  spelled: string
  url: string
}

/**
 * The words of the page that are most similar to a quotation; null if there are none. A similar passage that begins or ends
 * with a few words of another paragraph is cut there, and a passage that spans several paragraphs does not count.
 */
export function nearestWords({ nearest }: Found): string | null {
  if (!nearest) return null
  const size = (line: string) => line.split(/\s+/).length
  const lines = nearest.text.split(/\n+/).filter((line) => line.trim() !== '')
  const [longest = ''] = lines.toSorted((one, other) => size(other) - size(one))
  return size(longest) * 2 > size(nearest.text) ? longest.replace(/\s+/g, ' ').trim() : null
}

/**
 * The corrections for the quotations of which the page has a similar passage, in the order of the file. A quotation that cannot be
 * replaced without touching anything else, or overlaps another one, has none.
 */
export function correctionsFor(judged: readonly Judged[], syntax: Report['syntax']): Correction[] {
  const all = judged.filter(({ kind, status }) => kind === 'quotation' && status === 'wrong')
  const found = all.flatMap((citation) => citation.parts.flatMap((part) => correct(part, citation, syntax)))
  const apart: Correction[] = []
  for (const one of found.sort((a, b) => a.start - b.start)) if (one.start >= (apart.at(-1)?.end ?? 0)) apart.push(one)
  return apart
}

function correct(
  { text, replaceable, found }: JudgedPart,
  { url, mark }: Judged,
  syntax: Report['syntax'],
): Correction[] {
  const words = found?.match === 'near' ? nearestWords(found) : null
  if (!replaceable || words === null) return []
  const after = withinMarks(trimStops(words), mark)
  const spelled = syntax === 'html' ? spellHtml(after) : spellMarkdown(after)
  return [{ ...replaceable, before: text, after, spelled, url }]
}

/** Marks of the kind that hold the quotation become marks of a quotation within one. */
function withinMarks(text: string, mark: string | null): string {
  if (mark === '"' || mark === '＂') return text.replaceAll(mark, "'")
  if (mark === '“' || mark === '”') return text.replaceAll('“', '‘').replaceAll('”', '’')
  if (mark === '„' || mark === '‟') return text.replaceAll('„', '‚').replace(/[“”]/g, '‘')
  if (mark === '«' || mark === '»') return text.replaceAll('«', '‹').replaceAll('»', '›')
  if (mark === '「') return text.replaceAll('「', '『').replaceAll('」', '』')
  return text
}

function trimStops(words: string): string {
  let end = words.length
  while (end > 0 && /[\s,.;:]/.test(words[end - 1]!)) end--
  return words.slice(0, end)
}

const spellHtml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Characters that would be markup get a backslash. */
function spellMarkdown(text: string): string {
  return text
    .replace(/[\\`*_[\]<>|~]|&(?=[#\w]+;)|!(?=\[)/g, '\\$&')
    .replace(/^(?:[-+#=]|\d+(?=[.)]))/, (first) => (/^\d/.test(first) ? first : `\\${first}`))
}

/** The text with the corrections made. They must be in order and apart. */
export function applyCorrections(text: string, corrections: readonly Correction[]): string {
  const parts: string[] = []
  let at = 0
  for (const { start, end, spelled } of corrections) {
    parts.push(text.slice(at, start), spelled)
    at = end
  }
  return [...parts, text.slice(at)].join('')
}
