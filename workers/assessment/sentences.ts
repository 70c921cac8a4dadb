// The units of a quotation: sentences, or lines if a page has no sentences. A line break always ends a unit.
import { sensibleCut, trimmed } from './cuts.ts'
import { foldWord } from './tokens.ts'
import { monthOf } from './units.ts'

/** UTF-16 offsets of one sentence without the white space around it; `line` counts the lines of the text from 0. */
export interface Sentence {
  start: number
  end: number
  line: number
}

/**
 * Cuts a text into sentences: by the Unicode rules, joined again where a period belongs to an abbreviation, and cut again
 * where a sentence is too long for a quotation. Linear in the length of the text; between two sentences there is only white
 * space.
 */
export function sentencesOf(text: string): Sentence[] {
  const sentences: Sentence[] = []
  let line = 0
  let start = 0
  for (const { segment, index } of SEGMENTER.segment(text)) {
    const next = index + segment.length
    const endsLine = LINE_END.test(segment)
    if (!endsLine && next < text.length && next - start < LONGEST && goesOn(text, start, next)) continue
    const end = endsLine ? next : withoutOpeners(text, start, next)
    addSentence(sentences, text, start, end, line)
    start = end
    if (endsLine) line++
  }
  return sentences
}

/**
 * A small letter after `?"`, and what follows an abbreviation or the number of an item, belong to the sentence before.
 */
function goesOn(text: string, start: number, end: number): boolean {
  if (LOWER.test(text.slice(end, end + 2)) || (end - start < 8 && ITEM_NUMBER.test(text.slice(start, end)))) return true
  const tail = text.slice(Math.max(start, end - 16), end)
  return ABBREVIATION.test(tail) || (DAY.test(tail) && monthOf(foldWord(wordAt(text, end))) !== undefined)
}

const wordAt = (text: string, start: number): string => /^\p{L}+/u.exec(text.slice(start, start + 16))?.[0] ?? ''

/** The Unicode rules leave an opening bracket or quotation mark with the sentence before it. */
function withoutOpeners(text: string, start: number, end: number): number {
  let cut = end
  while (cut > start && OPENER.test(text.charAt(cut - 1))) cut--
  return cut > start ? cut : end
}

function addSentence(sentences: Sentence[], text: string, from: number, to: number, line: number): void {
  let [start, end] = trimmed(text, from, to)
  while (end - start > LONGEST) {
    const [, cut] = trimmed(text, start, sensibleCut(text, start, start + LONGEST))
    sentences.push({ start, end: cut, line })
    ;[start, end] = trimmed(text, cut, end)
  }
  if (start < end) sentences.push({ start, end, line })
}

/** UTF-16 units. Two sentences and the space between them fit into a quotation. */
const LONGEST = 360
// The locale is fixed, so that the cuts do not depend on the machine.
const SEGMENTER = new Intl.Segmenter('en', { granularity: 'sentence' })
const LOWER = /^\p{Ll}/u
const OPENER = /[\p{Ps}\p{Pi}]/u
const ITEM_NUMBER = /^[\s(]*\p{Nd}{1,3}[.)]+\s+$/u
const DAY = /(?:^|\s)\p{Nd}{1,2}\.\s+$/u
const LINE_END = /[\n\r\u0085\u2028\u2029]$/
/**
 * Titles, single initials, and short forms that are followed by a capital or a number more often than by a new
 * sentence.
 */
const ABBREVIATION =
  /(?:^|[\s("“‘'])(?:\p{L}|(?:\p{L}\.)+\p{L}|Mrs?|Ms|Dr|Prof|Rev|Gen|Col|Lt|Sgt|Capt|Sen|Rep|Gov|Hon|St|Sr|Jr|vs|cf|approx|ca|Fig|No|Nos|Nr|Vol|pp?|ed|eds|Art|Sec|Ch|Inc|Ltd|Co|Corp|Bros|al|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|bzw|Abb|Bd|Hr|Hrn|Fr|Mme|Mlle|Sra?|Dra?|Sig|Ing|Mag|им|ул|гг?|тыс)\.\s+$/u
