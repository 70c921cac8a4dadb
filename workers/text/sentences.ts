// The units of a quotation, sentences, or lines if a page has no sentences; and where a span of text may begin and end. All
// offsets are UTF-16.

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
  return ABBREVIATION.test(tail) || (DAY.test(tail) && MONTH.test(text.slice(end, end + 10)))
}

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

/** The span without white space at either end; an empty one if there is nothing else. */
export function trimmed(text: string, from: number, to: number): [start: number, end: number] {
  let start = from
  let end = to
  while (start < end && WHITE_SPACE.test(text.charAt(start))) start++
  while (end > start && WHITE_SPACE.test(text.charAt(end - 1))) end--
  return [start, end]
}

/**
 * The best place to end a span that may not pass `limit`: after a sentence, else after a clause, else between words,
 * else between characters, in its last half. Always greater than `start`, never inside a surrogate pair.
 */
export function sensibleCut(text: string, start: number, limit: number): number {
  const earliest = start + ((limit - start) >> 1)
  const half = text.slice(earliest, limit)
  for (const boundary of CUTS) {
    const at = lastMatchEnd(boundary, half)
    if (at > 0) return earliest + at
  }
  return betweenCharacters(text, start, limit)
}

/** The text, or of one with more than `most` code points the first `most` and an ellipsis. */
export function shortenedTo(text: string, most: number): string {
  if (text.length <= most) return text
  const characters = Array.from(text)
  return characters.length <= most ? text : `${characters.slice(0, most).join('')}…`
}

function lastMatchEnd(pattern: RegExp, text: string): number {
  let end = 0
  for (const match of text.matchAll(pattern)) end = match.index + match[0].length
  return end
}

/** Backs off from the middle of a character with its marks and joiners, unless the character fills the whole span. */
function betweenCharacters(text: string, start: number, limit: number): number {
  let cut = limit
  while (
    cut > start &&
    (insidePair(text, cut) || CONTINUES.test(text.slice(cut, cut + 2)) || text[cut - 1] === '\u200d')
  )
    cut--
  if (cut > start) return cut
  return insidePair(text, limit) ? limit - 1 : limit
}

/** Whether `at` lies between the two halves of a surrogate pair. */
export function insidePair(text: string, at: number): boolean {
  return at > 0 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00
}

/** UTF-16 units. Two sentences and the space between them fit into a quotation. */
const LONGEST = 360
// The locale is fixed, so that the cuts do not depend on the machine.
const SEGMENTER = new Intl.Segmenter('en', { granularity: 'sentence' })
const LOWER = /^\p{Ll}/u
const OPENER = /[\p{Ps}\p{Pi}]/u
const ITEM_NUMBER = /^[\s(]*\p{Nd}{1,3}[.)]+\s+$/u
const DAY = /(?:^|\s)\p{Nd}{1,2}\.\s+$/u
/** Months that are written with a capital behind a day and a period, as in German. */
const MONTH = /^(?:Jan|Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)\p{Ll}*(?!\p{L})/u
const LINE_END = /[\n\r\u0085\u2028\u2029]$/
/**
 * Titles, single initials, and short forms that are followed by a capital or a number more often than by a new
 * sentence.
 */
const ABBREVIATION =
  /(?:^|[\s("“‘'])(?:\p{L}|(?:\p{L}\.)+\p{L}|Mrs?|Ms|Dr|Prof|Rev|Gen|Col|Lt|Sgt|Capt|Sen|Rep|Gov|Hon|St|Sr|Jr|vs|cf|approx|ca|Fig|No|Nos|Nr|Vol|pp?|ed|eds|Art|Sec|Ch|Inc|Ltd|Co|Corp|Bros|al|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|bzw|Abb|Bd|Hr|Hrn|Fr|Mme|Mlle|Sra?|Dra?|Sig|Ing|Mag|им|ул|гг?|тыс)\.\s+$/u
const WHITE_SPACE = /\s/
const CUTS = [/[.!?。！？…।؟][\p{Pe}\p{Pf}"']*(?=\s|$)|[。！？]/gu, /[;:,،；：，、](?=\s)|[；：，、]/g, /\S(?=\s)/g]
const CONTINUES = /^[\p{M}\p{Emoji_Modifier}\u200d]/u
