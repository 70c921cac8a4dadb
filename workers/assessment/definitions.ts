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
   citizen native resident american success failure hit academic expert specialist activist pet criminal survivor victim
   veteran parent child twin graduate student immigrant host hero villain role cast`.split(/\s+/),
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
  'athlete footballer player sportsman quarterback boxer wrestler swimmer runner sprinter midfielder striker defender goalkeeper winger forward batsman bowler pitcher cricketer golfer cyclist skier skater gymnast',
  'politician senator minister president governor mayor congressman statesman diplomat representative',
  'scientist physicist chemist biologist mathematician statistician researcher astronomer geologist botanist zoologist engineer inventor',
  'city town village settlement municipality capital suburb hamlet commune',
  'country nation state republic kingdom',
  'doctor physician surgeon psychiatrist neurologist medic',
  'soldier general officer commander marine airman sailor admiral colonel captain',
  'band group duo trio quartet',
  'businessman businesswoman entrepreneur executive founder investor',
  'lawyer attorney jurist judge',
  'engineer designer architect builder',
  'teacher taught professor lecturer educator scholar tutor headmaster',
  'chef cook baker restaurateur',
  'coach manager trainer',
  'murderer killer gangster robber thief mobster',
  'model mannequin',
  'priest bishop cleric pastor minister monk rabbi imam',
  'presenter host broadcaster anchor newsreader',
  'dancer choreographer ballerina',
  'lake loch reservoir pond lagoon water',
  'river stream tributary creek',
  'mountain peak hill volcano mount summit',
  'port harbour harbor seaport',
  'island islet atoll',
  'pub tavern inn bar',
  'restaurant diner eatery cafe bistro',
  'hotel resort inn motel',
  'drug medication medicine antidepressant antibiotic painkiller',
  'newspaper daily weekly tabloid broadsheet paper',
  'magazine periodical journal',
  'church cathedral chapel basilica abbey',
  'school college academy university',
  'ship vessel boat frigate ferry liner',
  'car automobile vehicle sedan hatchback suv',
  'road highway motorway street avenue',
  'software program programme app application',
  'website site portal',
  'game videogame shooter',
  'stadium arena venue ground',
  'building skyscraper tower house mansion castle',
  'law act bill statute legislation',
  'treaty agreement pact accord',
  'war conflict battle campaign',
  'team club side franchise',
  'plant tree shrub flower herb',
  'drink beverage cocktail beer wine spirit',
  'dish soup stew dessert cake food snack',
  'award prize medal honour honor',
  'animal dog hound terrier retriever spaniel',
  'animal mammal bird fish reptile insect species',
  'illness disease disorder condition syndrome infection virus cancer',
].map((words) => new Set(words.split(' ')))
