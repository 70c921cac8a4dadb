// Finds the quotations in a text: between double quotation marks of every usual style.
import type { Span } from './report.ts'

/** The marks that may end a quotation, by the mark that begins it. */
const PAIRS: Readonly<Record<string, string>> = {
  '"': '"',
  '＂': '＂',
  '“': '”',
  '„': '“”',
  '‟': '”',
  '”': '”',
  '«': '»',
  '»': '«',
  '「': '」',
  '『': '』',
  '〝': '〞〟',
}
/** Marks that can begin or end a quotation; their place says which. */
const EITHER = new Set(['"', '＂', '”', '»'])
/** Words that a quotation has at least. Fewer are a term, a title or a word the writer keeps away from. */
export const MIN_WORDS = 3
/** Characters that count as a quotation in scripts without spaces. */
const MIN_CHARS = 8

/** The texts between the marks, outermost first and in order, marks not included. Linear. */
export function findQuotations(text: string): Span[] {
  const last = lastClosings(text)
  const found: Span[] = []
  for (let i = 0; i < text.length; i++) {
    const ends = PAIRS[text[i]!]
    if (ends === undefined || !opens(text, i)) continue
    const end = [...ends].some((mark) => (last.get(mark) ?? -1) > i) ? closingAfter(text, i, ends) : -1
    if (end < 0) continue
    found.push({ start: i + 1, end })
    i = end
  }
  return found
}

/** For each mark the last place at which it ends a quotation, so that a mark without a partner costs no search. */
function lastClosings(text: string): Map<string, number> {
  const last = new Map<string, number>()
  for (const { 0: mark, index } of text.matchAll(/["＂“”«»」』〞〟]/g)) if (closes(text, index)) last.set(mark, index)
  return last
}

function closingAfter(text: string, start: number, ends: string): number {
  for (let i = start + 2; i < text.length; i++) if (ends.includes(text[i]!) && closes(text, i)) return i
  return -1
}

function opens(text: string, i: number): boolean {
  const after = text[i + 1]
  if (after === undefined) return false
  if (/\s/.test(after)) return text[i] === '«'
  return !EITHER.has(text[i]!) || !/[\p{L}\p{N}.,;:!?)\]}]/u.test(text[i - 1] ?? ' ')
}

function closes(text: string, i: number): boolean {
  const mark = text[i]!
  if (!EITHER.has(mark)) return true
  const before = text[i - 1] ?? ' '
  if (/\s/.test(before)) return mark === '»'
  // A number may be the call of a note.
  return !/\p{L}/u.test(text[i + 1] ?? ' ')
}

/** Whether a text is long enough to be a quotation. */
export function isQuotation(text: string): boolean {
  return has(text, UNSPACED, MIN_CHARS) || has(text, WORD, MIN_WORDS)
}

/** Whether the text has so many matches; it is read only as far as that is known. */
function has(text: string, pattern: RegExp, count: number): boolean {
  let left = count
  for (const _ of text.matchAll(pattern)) if (--left === 0) return true
  return false
}

const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}'’.-]*/gu

const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/gu

/** Code points of one quote of a quote check. */
const MAX_PART = 1000

/**
 * The parts of a quotation that must be on the page: what is between its omissions (`[...]`, `…`) and insertions in
 * brackets, in pieces that a quote check takes. The last mark of a sentence counts as the writer's.
 */
export function partsOf(text: string, { start, end }: Span): Span[] {
  const parts: Span[] = []
  let from = start
  const add = (to: number) => {
    const part = trimmed(text, { start: from, end: to })
    if (/[\p{L}\p{N}]/u.test(text.slice(part.start, part.end))) parts.push(...split(text, part))
  }
  for (const { 0: gap, index } of text.slice(start, end).matchAll(OMISSION)) {
    add(start + index)
    from = start + index + gap.length
  }
  add(end)
  return parts
}

/** A letter in brackets, as in `[T]he`, is a letter of the quotation. */
const OMISSION = /\[(?!\p{L}\])[^[\]]*\]|\(\s*(?:…|\.\s?\.\s?\.)\s*\)|…|\.\s?\.\s?\.(?:\s?\.)?/gu

/** What a part is asked for with. */
export function askedText(text: string): string {
  return singleSpaced(text.replace(/\[(\p{L})\]/gu, '$1')).toWellFormed()
}

/** White space as single spaces. A text in which places were replaced would keep an object for each of them. */
export function singleSpaced(text: string): string {
  return text.split(/\s+/).join(' ')
}

function trimmed(text: string, { start, end }: Span): Span {
  let from = start
  let to = end
  while (from < to && /\s/.test(text[from]!)) from++
  while (to > from && /[\s,.;:]/.test(text[to - 1]!)) to--
  return { start: from, end: to }
}

/** Pieces of at most MAX_PART code points, cut after a sentence or else after a word. */
function split(text: string, { start, end }: Span): Span[] {
  const pieces: Span[] = []
  let from = start
  while (from < end) {
    // A code point has at most two units.
    const points = [...text.slice(from, Math.min(end, from + 2 * MAX_PART + 2))]
    const head = points.slice(0, MAX_PART).join('')
    const isLast = from + head.length >= end
    const length = isLast ? end - from : placeToCut(head)
    pieces.push(trimmed(text, { start: from, end: from + length }))
    from += length
  }
  return pieces.filter(({ start, end }) => end > start)
}

function placeToCut(head: string): number {
  const after = [/[.!?。！？](?=\s|[^\x20-\x7e])/gu, /\s/g]
  const places = after.map((mark) => [...head.matchAll(mark)].at(-1)).map((found) => (found ? found.index + 1 : 0))
  return places.find((place) => place > head.length / 2) ?? head.length
}
