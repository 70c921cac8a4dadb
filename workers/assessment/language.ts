// Whether a text is in a language whose words for numbers, months and negations are known here.
import { sentencesOf } from './sentences.ts'
import { tokensOf } from './tokens.ts'
import { functionWordsIn } from './vocabulary.ts'

/**
 * False if the running text at the beginning has almost no function words of a known language. A text without running text,
 * such as a table, counts as known.
 */
export function isKnownLanguage(text: string): boolean {
  const beginning = text.slice(0, SAMPLE)
  if ((beginning.match(UNKNOWN_SCRIPT)?.length ?? 0) > 0.3 * (beginning.match(LETTER)?.length ?? 0)) return false
  const words: string[] = []
  for (const { start, end } of sentencesOf(beginning)) {
    const tokens = tokensOf(beginning.slice(start, end))
    if (tokens.filter(({ kind }) => kind === 'word').length < WORDS_OF_SENTENCE) continue
    words.push(...tokens.filter(({ kind }) => kind === 'word').map(({ folded }) => folded))
  }
  if (words.length < LEAST_WORDS) return true
  return functionWordsIn(words) >= LEAST_DISTINCT
}

/** UTF-16 units. */
const SAMPLE = 4000
const LETTER = /\p{L}/gu
/**
 * Scripts of languages that the vocabulary does not cover. For every other script without spaces it has negations.
 */
const UNKNOWN_SCRIPT =
  /[\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}\p{sc=Ethi}\p{sc=Geor}\p{sc=Armn}\p{sc=Beng}\p{sc=Taml}\p{sc=Telu}\p{sc=Knda}\p{sc=Mlym}\p{sc=Gujr}\p{sc=Guru}\p{sc=Sinh}]/gu
const WORDS_OF_SENTENCE = 8
const LEAST_WORDS = 24
/** Different function words of one language. */
const LEAST_DISTINCT = 4
