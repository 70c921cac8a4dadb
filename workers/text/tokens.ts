// Defines what counts as the same word: text is compared token by token, each token folded, so that case, typography,
// accents, invisible characters and number formats do not hide a match. Offsets always stay those of the text itself.
import { stemmer } from 'stemmer'
import LANGUAGES from './vocabulary.json' with { type: 'json' }

/** `dense` is one character (with its marks) of a script written without spaces between words, or in long compounds. */
export type TokenKind = 'word' | 'number' | 'dense'

/** `start` and `end` are UTF-16 offsets into the scanned text; `raw` is the text between them. */
export type TokenVisitor = (folded: string, kind: TokenKind, start: number, end: number, raw: string) => void

/** What is a token: words and numbers, or, to find a claim that has neither, every visible character. */
export type Granularity = 'words' | 'symbols'

export const granularityFor = (claim: string): Granularity => (LETTER_OR_DIGIT.test(claim) ? 'words' : 'symbols')

/** Calls `visit` for every token of the text, in order. Time is linear in the length of the text. */
export function scanTokens(text: string, granularity: Granularity, visit: TokenVisitor): void {
  const seen = new Map<string, { folded: string; kind: TokenKind }>()
  for (const match of text.matchAll(granularity === 'words' ? TOKEN : ANY_VISIBLE)) {
    const raw = match[0]
    let token = seen.get(raw)
    if (token === undefined) {
      token = foldToken(raw)
      seen.set(raw, token)
    }
    if (token.folded) visit(token.folded, token.kind, match.index, match.index + raw.length, raw)
  }
}

export interface Token {
  folded: string
  kind: TokenKind
  start: number
  end: number
  raw: string
}

/** The tokens of a short text as a list. */
export function tokensOf(text: string, granularity: Granularity = 'words'): Token[] {
  const tokens: Token[] = []
  scanTokens(text, granularity, (folded, kind, start, end, raw) => tokens.push({ folded, kind, start, end, raw }))
  return tokens
}

/** Where a term of a text stands, and of which sort it is. */
export interface TermPlace {
  start: number
  end: number
  kind: 'word' | 'number' | 'gram'
}

/**
 * Calls `visit` for the terms of tokens that come in order: words without their endings, numbers, and of scripts without spaces
 * overlapping sequences of characters. Two characters where each is a syllable or a word, three in an alphabet; fewer where no
 * more stand together.
 */
export function termReader(visit: (term: string, place: TermPlace) => void) {
  let run: Omit<Token, 'kind'>[] = []
  let isOpen = false
  const flush = () => {
    if (isOpen) emit(run)
    isOpen = false
    run = []
  }
  const emit = (tokens: typeof run) => {
    const [first, last] = [tokens[0], tokens.at(-1)]
    if (!first || !last) return
    visit(tokens.map(({ folded }) => folded).join(''), { start: first.start, end: last.end, kind: 'gram' })
  }
  return {
    read({ folded, kind, start, end, raw }: Token) {
      if (kind !== 'dense') {
        flush()
        visit(kind === 'word' ? termOf(folded) : folded, { start, end, kind })
        return
      }
      if (run.at(-1)?.end !== start) flush()
      run.push({ folded, start, end, raw })
      const size = ALPHABETIC.test(folded) ? 3 : 2
      isOpen = run.length < size
      if (run.length > size) run.shift()
      if (!isOpen) emit(run)
    },
    end: flush,
  }
}

/** The term of a folded word: its stem, where it looks English; of words in other letters the beginning. */
export function termOf(folded: string): string {
  if (ASCII.test(folded)) return ENGLISH.test(folded) ? stemmer(folded) : folded
  const word = folded.replace(HEBREW_PARTICLES, '')
  return Array.from(word.slice(0, 2 * LONGEST_TERM))
    .slice(0, LONGEST_TERM)
    .join('')
}

function foldToken(raw: string): { folded: string; kind: TokenKind } {
  if (FIRST_DIGIT.test(raw)) return { folded: foldNumber(raw), kind: 'number' }
  const word = foldWord(raw)
  if (FIRST_DENSE.test(raw)) return { folded: word, kind: 'dense' }
  const number = NUMBER_WORDS.get(word)
  return number === undefined ? { folded: word, kind: 'word' } : { folded: number, kind: 'number' }
}

/** Case (ß as SS), compatibility forms, accents, vowel points and invisible characters are dropped. */
export function foldWord(raw: string): string {
  if (PLAIN.test(raw)) return raw.toLowerCase()
  const caseless = raw.normalize('NFKC').toUpperCase().toLowerCase()
  const bare = caseless.normalize('NFD').replace(NOT_COMPARED, '').normalize('NFC')
  return ARABIC.test(bare) ? foldArabic(bare) : bare
}

/** Spelling variants of one letter, and the article with the particles written onto it. */
function foldArabic(word: string): string {
  const letters = word.replace(/[ىی]/g, 'ي').replace(/ة/g, 'ه').replace(/ک/g, 'ك')
  return letters.replace(/^[وف]?(?:ال|بال|كال|لل)(?=.{3})/, '')
}

/**
 * One spelling per value: `1,234.50`, `1.234,50` and `1 234.50` are all `1234.50`. A single separator before exactly
 * three digits is read as a thousands separator, because that is what pages mean by it; claim and page are read alike.
 */
export function foldNumber(raw: string): string {
  const digits = foldDigits(raw)
  const [, whole, decimals] = GROUPED.exec(digits) ?? []
  const plain =
    whole === undefined
      ? digits.replace(/[^0-9]/, '.')
      : `${whole.replace(/[^0-9]/g, '')}${decimals === undefined ? '' : `.${decimals}`}`
  return plain.replace(/^0+(?=[0-9])/, '')
}

/** Decimal digits of every script as ASCII digits; the rest unchanged, except that the length may shrink. */
function foldDigits(text: string): string {
  // A match is one character.
  return text.replace(/[^\P{Nd}0-9]/gu, (digit) => String(digitValue(digit.codePointAt(0)!)))
}

/** Unicode assigns decimal digits in contiguous runs of ten, 0 first; runs may touch each other. */
function digitValue(codePoint: number): number {
  let first = codePoint
  while (FIRST_DIGIT.test(String.fromCodePoint(first - 1))) first--
  return (codePoint - first) % 10
}

const ASCII = /^[ -~]+$/
/** The stemmer is slow for a long string of letters. */
const ENGLISH = /^[a-z]{1,30}$/
/** Code points. */
const LONGEST_TERM = 6
const HEBREW_PARTICLES = /^[והבלכמש]{1,2}(?=[א-ת]{3})/
const ALPHABETIC = /^[\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u
const LETTER_OR_DIGIT = /[\p{L}\p{Nd}]/u
/** For a text of symbols only: each is compared by itself. */
const ANY_VISIBLE = /[^\p{Z}\p{C}\p{DI}]/gu
const DENSE = String.raw`\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}ーｰ`
const TOKEN = new RegExp(
  [
    // The digits of one number, grouped by spaces, or by other separators, or with a decimal part, or plain. What
    // follows a digit and a separator is never a decimal number itself: 12.05.2019 is three numbers.
    String.raw`(?<!\p{Nd}[.,])[1-9]\p{Nd}{0,2}(?:[ \u00a0\u2009\u202f]\p{Nd}{3})+(?:[.,٫]\p{Nd}+)?(?![.,]?\p{Nd})`,
    String.raw`(?<!\p{Nd}[.,])[1-9]\p{Nd}{0,2}(?:[.,'’٬]\p{Nd}{3})+(?:[.,٫]\p{Nd}+)?(?![.,]?\p{Nd})`,
    String.raw`(?<!\p{Nd}[.,·])\p{Nd}+[.,٫·]\p{Nd}+(?![.,·]?\p{Nd})`,
    String.raw`\p{Nd}+`,
    String.raw`[[${DENSE}]&&\p{L}][\p{M}ﾞﾟ]*`,
    String.raw`(?:\p{L}\.){2,}`,
    // An apostrophe separates words, so that l'homme matches homme, and company's matches company.
    String.raw`[[\p{L}\p{M}]--[${DENSE}]](?:[[\p{L}\p{M}\p{N}]--[${DENSE}]]|[\p{DI}ـ])*`,
  ].join('|'),
  'gv',
)
const PLAIN = /^[A-Za-z]+$/
const FIRST_DIGIT = /^\p{Nd}/u
const FIRST_DENSE = new RegExp(`^[${DENSE}]`, 'v')
/** Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowel signs, hamza and tatweel, ignorables, dots of U.S. */
const NOT_COMPARED = /[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640.]|\p{DI}/gu
const ARABIC = /\p{sc=Arab}/u
const GROUPED = /^([1-9]\d{0,2}(?:[ \u00a0\u2009\u202f.,'’٬]\d{3})+)(?:[.,٫](\d+))?$/

/** Words that mean something else in another of the languages are left out, such as sept and once. */
const NUMBER_WORDS: ReadonlyMap<string, string> = new Map(
  LANGUAGES.flatMap(({ numbers = '' }) => numbers.split(' ').map((pair) => pair.split('='))).map(
    ([value = '', word = '']) => [foldWord(word), value],
  ),
)
