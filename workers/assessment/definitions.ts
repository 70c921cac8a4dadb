// Detects that a claim says what kind of thing its subject is, and the quoted lines say another kind: "is a poker player",
// and "is an American football quarterback". English.
import { readClaim } from './query.ts'
import { type Token, tokensOf } from './tokens.ts'
import { type Stemmed, stemmed, wordSimilarity } from './word-similarity.ts'

/**
 * Whether a claim only says what its subject is, and the quotes define something themselves with none of these words and no
 * word of the same kind. General words such as place fit many kinds and do not count.
 */
export function isOtherKind(claim: string, quotes: readonly string[]): boolean {
  const [, said] = DEFINED.exec(claim.trim()) ?? []
  if (said === undefined || !quotes.some((quote) => DEFINES.test(quote.slice(0, LONGEST_READ)))) return false
  const contentWords = new Set(readClaim(claim).terms.flatMap(({ folded, prior }) => (prior > 0 ? [folded] : [])))
  const words = tokensOf(said).filter(({ kind, folded }) => kind === 'word' && contentWords.has(folded))
  if (words.length > MOST_WORDS || !words.some(isCommon) || words.some(({ folded }) => WIDE.has(folded))) return false
  const read = tokensOf(quotes.join('\n').slice(0, LONGEST_READ))
  const given = [...new Set(read.map(({ folded }) => folded))].map(stemmed)
  return !words.map(({ folded }) => stemmed(folded)).some((word) => given.some((other) => areOfOneKind(word, other)))
}

const isCommon = ({ raw }: Token): boolean => /^\p{Ll}/u.test(raw)

function areOfOneKind(one: Stemmed, other: Stemmed): boolean {
  const isSameKind = KINDS.some((words) => words.has(one.word) && words.has(other.word))
  return wordSimilarity(one, other) > 0 || isSameKind || holds(one.word, other.word)
}

/** footballer and football, filmmaker and film */
function holds(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one]
  return short.length >= SHORTEST_PART && long.includes(short)
}

const DEFINED =
  /^(?!.*\b(?:and|but|that|who|which)\b.*\b(?:is|was|are|were)\b).{2,40}? (?:is|was|are|were) (?:an?|one of the) ([^,;:]{3,60})$/u
const DEFINES = /\b(?:is|was|are|were)(?: \p{L}+){0,2} (?:an?|the) /u
const MOST_WORDS = 4
const SHORTEST_PART = 4
/** UTF-16 units: a definition comes early. */
const LONGEST_READ = 2000
const WIDE: ReadonlySet<string> = new Set(
  `place location area region person human man woman individual figure personality celebrity artist entertainer performer
   professional worker leader member part thing object work product creation one group company organization organisation
   business institution event period time kind type sort form example number series people object character title name
   citizen native resident american success failure hit`.split(/\s+/),
)
const KINDS: readonly ReadonlySet<string>[] = [
  'film movie picture feature documentary comedy drama thriller filmmaker cinema',
  'song single track ballad hit tune record',
  'album record release ep lp',
  'book novel novella story memoir literature',
  'show series sitcom programme program television tv soap',
  'writer author novelist poet playwright screenwriter journalist essayist columnist lyricist',
  'singer musician vocalist songwriter rapper guitarist drummer pianist bassist composer',
  'actor actress star comedian comedienne',
  'athlete footballer player sportsman quarterback boxer wrestler swimmer runner sprinter',
  'politician senator minister president governor mayor congressman statesman diplomat representative',
  'scientist physicist chemist biologist mathematician researcher astronomer',
  'city town village settlement municipality capital',
  'country nation state republic kingdom',
  'doctor physician surgeon',
  'soldier general officer commander',
  'band group duo trio quartet',
  'businessman businesswoman entrepreneur executive founder investor',
  'lawyer attorney jurist judge',
  'animal mammal bird fish reptile insect species',
  'illness disease disorder condition syndrome infection',
].map((words) => new Set(words.split(' ')))
