// How likely two words are forms of one word: by Porter's stems in English, and in any language by their beginnings.
import { stemmer } from 'stemmer'

/** Related words begin with at least so many letters in common. */
export const SHORTEST_PREFIX = 3

/** A folded word with its stem, which is found once. */
export interface Stemmed {
  word: string
  stem: string
}

export const stemmed = (word: string): Stemmed => ({ word, stem: stemOf(word) })

/**
 * 1 for the same word, less for another form of it, 0 for another word: increase and increasing, not international. Words
 * that begin alike and continue differently may be different words, so they count least.
 */
export function wordSimilarity(a: Stemmed, b: Stemmed): number {
  if (a.word === b.word) return 1
  const [short, long] = a.word.length < b.word.length ? [a.word, b.word] : [b.word, a.word]
  let common = 0
  while (common < short.length && short[common] === long[common]) common++
  if (common < SHORTEST_PREFIX) return 0
  if (a.stem === b.stem) return STRENGTH.sameStem
  if (common < SHORTEST_LOOSE) return 0
  const isInflected = common >= LONG_ENOUGH && long.length - common <= LONGEST_INFLECTION
  if (isInflected || isWithin(a.stem, b.stem) || isWithin(b.stem, a.stem)) return STRENGTH.sameBeginning
  return common >= short.length - 2 && long.length - common <= LONGEST_ENDING ? STRENGTH.beginsAlike : 0
}

/** A stem with a short ending that English stems keep: nation and national. */
function isWithin(stem: string, other: string): boolean {
  return stem.length >= SHORTEST_LOOSE && other.startsWith(stem) && other.length - stem.length <= LONGEST_STEM_ENDING
}

/** The stemmer supports only English, and is slow for a long string of letters. */
function stemOf(word: string): string {
  return word.length <= LONGEST_WORD && ENGLISH_LETTERS.test(word) ? stemmer(word) : word
}

const STRENGTH = { sameStem: 0.95, sameBeginning: 0.8, beginsAlike: 0.6 }
const SHORTEST_LOOSE = 4
const LONGEST_ENDING = 5
const LONGEST_STEM_ENDING = 3
/** Endings of case, number and person in most languages that have them. */
const LONGEST_INFLECTION = 2
/** Letters in common, so that nation and native are not forms of one word. */
const LONG_ENOUGH = 5
const LONGEST_WORD = 30
const ENGLISH_LETTERS = /^[a-z]+$/
