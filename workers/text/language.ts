// The languages whose words are known here (vocabulary.json): which a text is written in, and which words of it say nothing by
// themselves. A text in another language is compared by all its words.
import { sentencesOf } from './sentences.ts'
import { foldWord, tokensOf } from './tokens.ts'
import LANGUAGES from './vocabulary.json' with { type: 'json' }

/** The function words of the language that most of the words fit; the first language on a tie. */
export function functionWordsOf(words: Iterable<string>): ReadonlySet<string> {
  const distinct = new Set(words)
  let best: ReadonlySet<string> = NONE
  let most = 0
  for (const known of FUNCTION_WORDS) {
    const count = countIn(distinct, known)
    if (count <= most) continue
    most = count
    best = known
  }
  return best
}

/**
 * False if the running text at the beginning has almost no function words of a known language. A text without running text,
 * such as a table, counts as known.
 */
export function isKnownLanguage(text: string): boolean {
  const beginning = text.slice(0, SAMPLE)
  if ((beginning.match(UNKNOWN_SCRIPT)?.length ?? 0) > 0.3 * (beginning.match(LETTER)?.length ?? 0)) return false
  const words: string[] = []
  for (const { start, end } of sentencesOf(beginning)) {
    const inSentence = wordsOf(beginning.slice(start, end))
    if (inSentence.length >= WORDS_OF_SENTENCE) words.push(...inSentence)
  }
  if (words.length < LEAST_WORDS) return true
  return countIn(new Set(words), functionWordsOf(words)) >= LEAST_DISTINCT
}

/**
 * Whether the beginning of a text may be in the language of a claim, so that words of the claim can be looked for in it:
 * false if they are of different scripts, or if the text has clearly more function words of another language.
 */
export function mayShareLanguage(claim: string, text: string): boolean {
  const tokens = tokensOf(claim)
  const begun = new Set(tokensOf(text.slice(0, SAMPLE)).map(({ folded }) => folded))
  const dense = tokens.filter(({ kind }) => kind === 'dense')
  if (dense.length > 0) return dense.some(({ folded }) => begun.has(folded))
  // A name has words of other languages: Van Buren.
  const said = new Set(tokens.filter(({ raw }, i) => i === 0 || !/^\p{Lu}/u.test(raw)).map(({ folded }) => folded))
  if (isLatin(said) !== isLatin(begun)) return false
  const [own, theirs] = [functionWordsOf(said), functionWordsOf(begun)]
  if (own === NONE || countIn(begun, own) >= SAME_LANGUAGE * countIn(begun, theirs)) return true
  const shared = countIn(said, theirs)
  return shared > 0 && countIn(said, own) - shared < CLEARLY_MORE
}

/** Whether a text attributes what it says to a speaker. */
export function isAttributed(text: string): boolean {
  const words = wordsOf(text)
  const known = ATTRIBUTION[FUNCTION_WORDS.indexOf(functionWordsOf(words))]
  return DENSE_ATTRIBUTION.test(text) || words.some((word) => known?.has(word))
}

function wordsOf(text: string): string[] {
  return tokensOf(text).flatMap(({ folded, kind }) => (kind === 'word' ? [folded] : []))
}

function countIn(words: Iterable<string>, known: ReadonlySet<string>): number {
  let count = 0
  for (const word of words) if (known.has(word)) count++
  return count
}

function isLatin(words: ReadonlySet<string>): boolean {
  const written = [...words].filter((word) => /\p{L}/u.test(word))
  return 2 * written.filter((word) => /^\p{sc=Latn}/u.test(word)).length >= written.length
}

const setOf = (words: string): ReadonlySet<string> => new Set(words.split(' ').map(foldWord))
const NONE: ReadonlySet<string> = new Set()
const FUNCTION_WORDS = LANGUAGES.map((language) => setOf(language.function))
const ATTRIBUTION = LANGUAGES.map(({ attribution }) => setOf(attribution))
const DENSE_ATTRIBUTION =
  /声称|聲稱|据称|據稱|说|說|写道|寫道|によると|と(?:述べ|主張|語)|という噂|주장|말했|에 따르면|กล่าว|อ้าง|ตามที่/
/** UTF-16 units. */
const SAMPLE = 4000
const LETTER = /\p{L}/gu
/** Scripts of languages that vocabulary.json does not cover. */
const UNKNOWN_SCRIPT =
  /[\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}\p{sc=Ethi}\p{sc=Geor}\p{sc=Armn}\p{sc=Beng}\p{sc=Taml}\p{sc=Telu}\p{sc=Knda}\p{sc=Mlym}\p{sc=Gujr}\p{sc=Guru}\p{sc=Sinh}]/gu
const WORDS_OF_SENTENCE = 8
const LEAST_WORDS = 24
/** Different function words of one language. */
const LEAST_DISTINCT = 4
const SAME_LANGUAGE = 0.6
const CLEARLY_MORE = 2
