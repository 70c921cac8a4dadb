// Defines what counts as the same word: text is compared token by token, each token folded, so that case, typography,
// accents, invisible characters and number formats do not hide a match. Offsets always stay those of the text itself.

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

/**
 * By what they mean. Words that mean something else in another of the languages are left out, such as sept and once.
 */
const NUMBER_WORDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    2: 'two zwei deux dois duas اثنان اثنين',
    3: 'three drei trois tres ثلاثة ثلاث',
    4: 'four vier quatre cuatro quatro أربعة أربع',
    5: 'five fünf cinq cinco خمسة خمس',
    6: 'six sechs seis ستة',
    7: 'seven sieben siete sete سبعة سبع',
    8: 'eight acht huit ocho oito ثمانية ثماني',
    9: 'nine neun neuf nueve nove تسعة تسع',
    10: 'ten zehn dix diez dez عشرة عشر',
    11: 'eleven onze',
    12: 'twelve zwölf douze doce',
    13: 'thirteen dreizehn treize trece treze',
    14: 'fourteen vierzehn quatorze catorce',
    15: 'fifteen fünfzehn quinze',
    16: 'sixteen sechzehn dieciséis dezesseis',
    17: 'seventeen siebzehn diecisiete dezessete',
    18: 'eighteen achtzehn dieciocho dezoito',
    19: 'nineteen neunzehn diecinueve dezenove',
    20: 'twenty zwanzig vingt veinte vinte عشرون عشرين',
    30: 'thirty dreißig trente treinta trinta ثلاثون ثلاثين',
    40: 'forty vierzig quarante cuarenta quarenta أربعون أربعين',
    50: 'fifty fünfzig cinquante cincuenta cinquenta خمسون خمسين',
    60: 'sixty sechzig soixante sesenta sessenta ستون ستين',
    70: 'seventy siebzig setenta سبعون سبعين',
    80: 'eighty achtzig ochenta oitenta ثمانون ثمانين',
    90: 'ninety neunzig noventa تسعون تسعين',
  }).flatMap(([value, words]) => words.split(' ').map((word) => [foldWord(word), value] as const)),
)
