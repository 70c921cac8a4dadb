// Pairs of words with opposite meanings. If a claim has one word and the quoted lines have the other in its place, the
// lines hardly support the claim. English; a pair that often occurs in one sentence about different things does not belong
// here.
import { tokensOf } from './tokens.ts'

/** The opposites between a claim and lines: what the claim says, and what the lines say instead. */
export function oppositesBetween(claim: string, lines: string): { claimed: string; given: string }[] {
  const [said, given] = [wordsOf(claim), wordsOf(lines.replace(ENDED, ' '))]
  const pairs = PAIRS.flatMap(([one, other]) => [
    ...turned(said, given, one, other),
    ...turned(said, given, other, one),
  ])
  return [
    ...pairs.filter(({ claimed, given }) => !isSeenFromOtherSide(claim, claimed, lines, given)),
    ...prefixed(said, given),
    ...prefixed(given, said).map(({ claimed, given }) => ({ claimed: given, given: claimed })),
  ]
}

/**
 * Whether two opposite verbs describe one event from its two sides: "Spain won against Italy", "Italy lost to Spain"; "the
 * town bought it", "it was sold to the town". The party that one text has behind a preposition is then in front of the verb
 * in the other.
 */
function isSeenFromOtherSide(claim: string, claimed: string, lines: string, given: string): boolean {
  if (!TWO_SIDED.test(claimed)) return false
  const [said, others] = [sidesOf(claim, claimed), sidesOf(lines, given)]
  const shares = (some: ReadonlySet<string>, others: ReadonlySet<string>) => [...some].some((word) => others.has(word))
  return shares(said.before, others.behind) || shares(said.behind, others.before)
}

/** The words in front of a verb in its sentence, and those behind a preposition that follows it. Pronouns count as one. */
function sidesOf(text: string, verb: string) {
  const tokens = foldedWords(text)
  const at = tokens.indexOf(verb)
  const side = (words: readonly string[]) =>
    new Set(words.filter((word) => !NAMES_NOTHING.test(word)).map((word) => (PRONOUN.test(word) ? 'he' : word)))
  const behind = tokens.slice(at + 1, at + 1 + LONGEST_SIDE)
  return {
    before: side(tokens.slice(Math.max(0, at - LONGEST_SIDE), at)),
    behind: side(behind.flatMap((word, i) => (BEFORE_PARTY.test(word) ? behind.slice(i + 1, i + 4) : []))),
  }
}

/**
 * Whether lines have the opposite of a word that the claim has, even if they have that word too, perhaps about another
 * thing.
 */
export function hasOppositeOf(claim: string, lines: string): boolean {
  const [said, given] = [wordsOf(claim), wordsOf(lines)]
  const isTurned = [...PAIRS, ...LOOSE_PAIRS].some(
    ([one, other]) => turns(said, given, one, other) || turns(said, given, other, one),
  )
  return isTurned || prefixed(said, given).length > 0 || prefixed(given, said).length > 0
}

/**
 * Whether lines have the opposite of a small word of the claim, such as "for" or "all", beside the same words. Lines have
 * such words in other places by chance.
 */
export function hasOppositeInPlace(claim: string, lines: string): boolean {
  const said = foldedWords(claim)
  const given = foldedWords(lines)
  const turns = (side: RegExp, opposite: RegExp) => {
    const places = placesBeside(said, side)
    return places.size > 0 && [...placesBeside(given, opposite)].some((place) => places.has(place))
  }
  return SMALL_PAIRS.some(([one, other]) => turns(one, other) || turns(other, one))
}

const foldedWords = (text: string) => tokensOf(text).map(({ folded }) => folded)

/** The words beside the small words that match: those of substance among the three behind. */
function placesBeside(words: readonly string[], which: RegExp): Set<string> {
  const places = new Set<string>()
  for (const [at, word] of words.entries())
    if (which.test(word))
      for (const next of words.slice(at + 1, at + 4)) if (next.length >= SHORTEST_PLACE) places.add(next)
  return places
}

function turns(said: readonly string[], given: readonly string[], side: RegExp, other: RegExp): boolean {
  const takes = (words: readonly string[], which: RegExp) => words.some((word) => which.test(word))
  return takes(said, side) && !takes(said, other) && takes(given, other)
}

/** Whether a text says that a ban ended: a rule that is lifted is the opposite of one that is in force. */
export const endsBan = (text: string): boolean => text.search(ENDED) >= 0

/** Whether a text negates with a verb or an adjective: "refused to", "unable to", "has yet to". */
export const deniesByVerb = (text: string): boolean => DENYING.test(text)

/**
 * Whether a text denies by a word what another one denies by "not": "the match was cancelled", "the match did not take
 * place". A word that the other text negates itself denies nothing: "was not cancelled".
 */
export function deniesByWord(text: string, negated: string): boolean {
  const others = negated.toLowerCase()
  const said = text.toLowerCase()
  const found = [...said.matchAll(DENIES), ...(text.length <= SHORT_TEXT ? said.matchAll(DENIES_IN_SHORT_TEXT) : [])]
  const words = new Set(found.map(([word]) => word))
  return [...words].some((word) => {
    const stem = word.slice(0, Math.max(SHORTEST_STEM, word.length - 3))
    return !new RegExp(`${NOT}(?:[\\p{L}’']+ ){0,2}${stem}`, 'u').test(others)
  })
}

/** popular and unpopular, smoker and nonsmoker */
function prefixed(some: readonly string[], others: readonly string[]) {
  const [one, two] = [new Set(some), new Set(others)]
  return [...one].flatMap((word) =>
    ['un', 'non', 'dis']
      .filter((prefix) => word.length >= 4 && two.has(prefix + word) && !one.has(prefix + word) && !two.has(word))
      .map((prefix) => ({ claimed: word, given: prefix + word })),
  )
}

/** The pairs of which the claim has only one word, and the lines only the other. */
function turned(said: readonly string[], given: readonly string[], side: RegExp, other: RegExp) {
  const claimed = said.find((word) => side.test(word))
  if (claimed === undefined || said.some((word) => other.test(word))) return []
  const found = given.find((word) => other.test(word))
  if (found === undefined || given.some((word) => side.test(word))) return []
  return [{ claimed, given: found }]
}

/** Each word once, because every pair is searched among them. Numbers have no opposites here. */
function wordsOf(text: string): string[] {
  const words = new Set<string>()
  for (const { folded } of tokensOf(text)) if (/^\p{L}/u.test(folded)) words.add(folded)
  return [...words]
}

/** Verbs with two parties, each of which may be the subject. */
const TWO_SIDED = /^(?:wins?|won|winning|los(?:e|es|t|ing)|defeat(?:ed|s)?|b(?:ought|uys?)|s(?:old|ells?))$/
const BEFORE_PARTY = /^(?:to|against|from|by|for|over)$/
const NAMES_NOTHING = /^(?:the|an?|its|was|were|is|are|been|in|on|of|at|and)$/
const PRONOUN = /^(?:he|him|she|her|they|them)$/
/** Tokens. */
const LONGEST_SIDE = 12
/** A rule that ends states the opposite: lifted the ban, had been illegal. */
const ENDED =
  /(?<!\p{L})(?:end(?:s|ed|ing)?|lift(?:s|ed|ing)?|remov(?:es?|ed|ing)|repeal(?:s|ed|ing)?|overturn(?:s|ed|ing)?|revers(?:es?|ed|ing)|abolish(?:es|ed|ing)?|revok(?:es?|ed|ing)|scrap(?:s|ped|ping)?) (?:\p{L}+ ){0,2}(?:ban|bans|prohibition)(?!\p{L})|(?<!\p{L})(?:(?:had|previously|formerly|once|hitherto)(?: been)?|until then) (?:illegal|banned|forbidden|prohibited)(?!\p{L})/giu

const DENYING =
  /\b(?:(?:refus(?:es?|ed|ing)|fail(?:s|ed|ing)?|declin(?:es?|ed|ing)|unable|yet|ceas(?:es?|ed|ing)) to|incapable of|(?:prevent|prohibit|bar|ban)(?:s|ned|red|ed)? (?:\p{L}+ ){1,3}from|away from|absent from|outside of|insufficient (?:for|to)|too \p{L}+ to|free (?:of|from)|devoid of|lack(?:s|ed|ing)?)\b/iu

const SHORTEST_STEM = 4
const NOT = "(?:(?<!\\p{L})(?:not|never|no|without|cannot)|n['’]t) "
const DENIES =
  /(?<!\p{L})(?:only|little|few|hardly|barely|scarcely|seldom|rarely|unable|incapable|absen(?:t|ce)|yet to|instead|extinct|exempt|impossib(?:le|ly)|illegal(?:ly)?|invalid|refus(?:es?|ed|al)|fail(?:s|ed|ure)?|lack(?:s|ed|ing)?|omit(?:s|ted)?|avoid(?:s|ed)?|den(?:y|ies|ied)|reject(?:s|ed)?|dismiss(?:es|ed)?|abandon(?:s|ed)?|cancel(?:s|l?ed)|discontinu(?:es?|ed)|abolish(?:es|ed)?|prevent(?:s|ed)?|stop(?:s|ped)?|ceas(?:es?|ed)|exclud(?:es?|ed)|\p{L}{2,20}less|un\p{L}{4,20})(?!\p{L})/gu

/** Longer texts have these words by chance. */
const DENIES_IN_SHORT_TEXT =
  /(?<!\p{L})(?:another|without|out of|former(?:ly)?|inactive|incomplete|inconclusive|miss(?:es|ed|ing)?)(?!\p{L})/gu
/** UTF-16 units: a sentence or two. */
const SHORT_TEXT = 200

const pair = (one: string, other: string): readonly [RegExp, RegExp] => [
  new RegExp(`^(?:${one.replace(/\s+/g, '')})$`, 'u'),
  new RegExp(`^(?:${other.replace(/\s+/g, '')})$`, 'u'),
]

const PAIRS: readonly (readonly [RegExp, RegExp])[] = [
  pair(
    `increas(?:e|es|ed|ing)|rais(?:e|es|ed|ing)|rises?|rose|risen|rising|grows?|grew|grown|enhanc(?:e|es|ed|ing|ement)|promot(?:e|es|ed|ing)|
     activat(?:e|es|ed|ing|ion)|stimulat(?:e|es|ed|ing|ion)|induc(?:e|es|ed|ing)`,
    `decreas(?:e|es|ed|ing)|deactivat(?:e|es|ed|ing|ion)|inactivat(?:e|es|ed|ing|ion)|declin(?:e|es|ed|ing)|falls?|fell|fallen|falling|drop(?:s|ped|ping)?|reduc(?:e|es|ed|ing|tion)|
     shr[aiu]nk(?:s|ing)?|inhibit(?:s|ed|ing|ion)?|suppress(?:es|ed|ing|ion)?|block(?:s|ed|ing)?|impair(?:s|ed|ing)?|
     prevent(?:s|ed|ing|ion)?`,
  ),
  pair('improv(?:e|es|ed|ing|ement)', 'worsen(?:s|ed|ing)?|deteriorat(?:e|es|ed|ing)'),
  pair('upregulat\\p{L}+', 'downregulat\\p{L}+'),
  pair('over(?:estimat|rat|stat|valu)\\p{L}+', 'under(?:estimat|rat|stat|valu)\\p{L}+'),
  pair('higher|greater|larger|bigger', 'lower|smaller'),
  pair('highest|largest|biggest|greatest', 'lowest|smallest|least'),
  pair('best|greatest|finest', 'worst'),
  pair('oldest|eldest', 'youngest|newest'),
  pair('longest', 'shortest'),
  pair('most', 'least'),
  pair('first', 'last|final'),
  pair('early|earlier|earliest', 'late|later|latest'),
  pair('wins?|won|winning|winners?|victory', 'los(?:e|es|t|ing|ers?)|defeat(?:ed|s)?'),
  pair('accept(?:s|ed|ing)?|approv(?:e|es|ed|ing|al)', 'reject(?:s|ed|ing|ion)?|refus(?:e|es|ed|ing|al)|declined'),
  pair(
    'allow(?:s|ed|ing)?|permit(?:s|ted|ting)?|legal',
    'forbid(?:s|den)?|forbade|ban(?:s|ned|ning)?|prohibit(?:s|ed|ing)?|illegal',
  ),
  pair('succe(?:ed|eds|eded|ss|ssful|ssfully)', 'fail(?:s|ed|ing|ure|ures)?|unsuccessful(?:ly)?'),
  pair('positive(?:ly)?|praised?|acclaimed', 'negative(?:ly)?|criticis?z?ed|panned'),
  pair('alive|lives|living', 'dead|died|deceased'),
  pair('born', 'died'),
  pair(
    'male|man|men|boys?|father|son|brother|husband|king',
    'female|woman|women|girls?|mother|daughter|sister|wife|queen',
  ),
  pair('north(?:ern|west|east|western|eastern)?', 'south(?:ern|west|east|western|eastern)?'),
  pair('east(?:ern)?', 'west(?:ern)?'),
  pair(
    'begin(?:s|ning)?|began|begun|start(?:s|ed|ing)?|launch(?:es|ed)?',
    'ends?|ended|ending|finish(?:es|ed)?|ceas(?:e|es|ed)',
  ),
  pair('opens?|opened|opening', 'clos(?:e|es|ed|ing|ure)'),
  pair('includ(?:e|es|ed|ing)', 'exclud(?:e|es|ed|ing)'),
  pair('majority', 'minority'),
  pair('public', 'private'),
  pair('support(?:s|ed|ing)?|favou?r(?:s|ed|ing)?', 'oppos(?:e|es|ed|ing|ition)'),
  pair('confirm(?:s|ed|ing)?', 'den(?:y|ies|ied|ying)'),
  pair('bought|buys?', 'sold|sells?'),
  pair('arriv(?:e|es|ed|al)', 'depart(?:s|ed|ure)?|left|leav(?:e|es|ing)'),
  pair('popular', 'unpopular'),
  pair('true', 'false'),
  pair('safe', 'unsafe|dangerous|harmful'),
  pair('always', 'never|rarely|seldom'),
  pair('all|every', 'none|few'),
]

/** Pairs that often describe different things, so they do not remove a support; but a contradiction may rest on them. */
const LOOSE_PAIRS: readonly (readonly [RegExp, RegExp])[] = [
  pair('increas(?:e|es|ed|ing)|encourag(?:e|es|ed|ing)|accelerat(?:e|es|ed|ing|ion)', 'lower|smaller|slower'),
  pair('decreas(?:e|es|ed|ing)|reduc(?:e|es|ed|ing|tion)', 'higher|greater|larger'),
  pair(
    'encourag(?:e|es|ed|ing)|accelerat(?:e|es|ed|ing|ion)|promot(?:e|es|ed|ing)|increas(?:e|es|ed|ing)',
    'delay(?:s|ed|ing)?|slow(?:s|ed|ing)?|hinder(?:s|ed|ing)?|block(?:s|ed|ing)?|discourag(?:e|es|ed|ing)',
  ),
]

/** Small words that lines have in many places; they count only beside the words that the claim has beside them. */
const SMALL_PAIRS: readonly (readonly [RegExp, RegExp])[] = [
  pair('with', 'without'),
  pair('for', 'against'),
  pair('before', 'after'),
  pair('above|over', 'below|under'),
  pair('inside', 'outside'),
  pair('all|every|most|both', 'none|few|half|some'),
  pair('first', 'second|third'),
]
const SHORTEST_PLACE = 4
