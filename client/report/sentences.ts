// The sentences of a block, each with the links and calls that belong to it.
import type { Link, Span } from './report.ts'

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' })

/**
 * Ranges that cover the text in order. What follows the end of a sentence and is only a link, a call or a mark belongs to that
 * sentence: `It opened in 1874. [1]`.
 * @param links in their order
 */
export function sentencesOf(text: string, links: readonly Link[]): Span[] {
  // A line break within a paragraph ends no sentence.
  const segments = segmenter.segment(text.replace(/[\r\n\u2028\u2029]/g, ' '))
  const sentences: Span[] = []
  let next = 0
  for (const { index, segment } of segments) {
    const end = index + segment.length
    const last = sentences.at(-1)
    while (next < links.length && links[next]!.end <= index && links[next]!.start < index) next++
    const belongs = last === undefined ? index : leadOf(text, { start: index, end }, links, next)
    if (last && belongs > index) last.end = belongs
    if (belongs < end) sentences.push({ start: belongs, end })
  }
  return sentences
}

/** The end of the calls and closing marks at the beginning of a sentence, which belong to the sentence before it. */
function leadOf(text: string, { start, end }: Span, links: readonly Link[], first: number): number {
  let at = start
  for (let n = first; n < links.length; n++) {
    const link = links[n]!
    if (link.start >= end || /[\p{L}\p{N}]/u.test(text.slice(at, link.start))) break
    const isCall = link.note !== null || /^[\s\d[\](){},;:.*†‡§#–-]*$/u.test(text.slice(link.start, link.end))
    const isAside = () => '(['.includes(lastBefore(text, start, link.start)) && /^\s*[)\]]/.test(text.slice(link.end))
    const isAlone = () => !/[\p{L}\p{N}]/u.test(text.slice(link.end, end))
    if (!isCall && !isAside() && !isAlone()) break
    at = Math.max(at, Math.min(link.end, end))
    while (at < end && /[)\].,;:\s]/.test(text[at]!)) at++
  }
  return at
}

/** The last character of a range that is not white space; a space for none. */
function lastBefore(text: string, start: number, end: number): string {
  let at = end - 1
  while (at >= start && /\s/.test(text[at]!)) at--
  return at < start ? ' ' : text[at]!
}
