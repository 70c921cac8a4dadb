// Folds differences of typography and case in a text, and keeps the position of each unit in the text. Two texts are folded
// to the same units if they are equal except for white space, quotation marks, dashes and case.
import { cleanCharacters, composeCharacters } from './characters.ts'
import { unspaced } from './scripts.ts'

export interface Folded {
  /** The units to compare. */
  units: string
  /** For each unit, the UTF-16 range of the text that it stands for. The units of one character share its range. */
  starts: readonly number[]
  ends: readonly number[]
}

/**
 * Folds a text in composed form (NFC). White space counts only where it separates two words; the length and kind of a run of
 * white space, dashes or quotation marks does not count. Linear. Pure.
 */
export function foldText(text: string): Folded {
  const units: string[] = []
  const starts: number[] = []
  const ends: number[] = []
  const foldOf = openFolds()
  const emit = (folded: string, start: number, end: number) => {
    for (let k = 0; k < folded.length; k++) {
      units.push(folded.charAt(k))
      starts.push(start)
      ends.push(end)
    }
  }
  let before = ''
  let spaceFrom = -1
  let next = 0
  for (const character of text) {
    const i = next
    next += character.length
    const folded = foldOf(character)
    if (folded === SPACE) {
      if (spaceFrom < 0) spaceFrom = i
      continue
    }
    const isRun = (folded === DASH || folded === MARK) && units.at(-1) === folded
    if (isRun) ends[ends.length - 1] = next
    else {
      if (spaceFrom >= 0 && isWord(before) && isWord(character)) emit(SPACE, spaceFrom, i)
      emit(folded, i, next)
    }
    before = character
    spaceFrom = -1
  }
  return { units: units.join(''), starts, ends }
}

/** Folds a quote as it was submitted: first its characters are cleaned and composed as those of a page are. */
export function foldQuote(quote: string): Folded {
  return foldText(composeCharacters(cleanCharacters(quote, { length: 0 })))
}

/**
 * The UTF-16 range of the text that units `from` to `to` (end exclusive) stand for; null unless they are whole characters, with
 * the marks that belong to the last one.
 */
export function wholeRange({ starts, ends }: Folded, text: string, from: number, to: number): [number, number] | null {
  const [start, end] = [starts[from], ends[to - 1]]
  if (start === undefined || end === undefined) return null
  const cutsFirst = from > 0 && starts[from - 1] === start
  const cutsLast = to < starts.length && starts[to] === starts[to - 1]
  return cutsFirst || cutsLast || MARKED.test(text.slice(end, end + 2)) ? null : [start, end]
}

const SPACE = ' '
const DASH = '-'
const MARK = "'"
const MARKED = /^\p{M}/u

/** Between two such characters white space is the end of a word. */
const isWord = (character: string) => /[\p{L}\p{N}\p{M}]/u.test(character) && !unspaced.test(character)

/** Folds one character; caches the result, because texts repeat characters. */
function openFolds(): (character: string) => string {
  const known = new Map<string, string>()
  return (character) => {
    const found = known.get(character)
    if (found !== undefined) return found
    const folded = foldCharacter(character)
    known.set(character, folded)
    return folded
  }
}

function foldCharacter(character: string): string {
  if (/\s/u.test(character)) return SPACE
  if (/\p{Dash}/u.test(character)) return DASH
  if (QUOTATION.test(character)) return MARK
  // Upper case first: it unites ß with ss, and the two small sigmas.
  return character.toUpperCase().toLowerCase()
}

/** Quotation marks, and what is typed or set in their place: accents, primes, modifier apostrophes. */
const QUOTATION = /[\p{Quotation_Mark}`\u00b4\u02b9\u02bb\u02bc\u02ee\u2032-\u2037]/u
