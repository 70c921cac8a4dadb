// The subject of a claim: the name that it begins with. Lines name it in full, in part, or in another place of the sentence.
import type { Query } from './query.ts'
import { type Token, tokensOf } from './tokens.ts'
import { SHORTEST_PREFIX, stemmed, wordSimilarity } from './word-similarity.ts'

/**
 * The folded words of the name that a claim begins with, and of the words that tell it from others of its name: A Dog's
 * Purpose (2017 film). Empty if it begins with none.
 */
export function subjectOf({ tokens, terms }: Query): ReadonlySet<string> {
  let end = /^(?:the|an?)$/.test(tokens[0]?.folded ?? '') ? 1 : 0
  const isCapital = (at: number) => /^\p{Lu}/u.test(tokens[at]?.raw ?? '')
  const first = end
  while (isCapital(end)) {
    end++
    if (tokens[end]?.folded === 's' && isCapital(end + 1)) end++
  }
  // A headline has capitals throughout.
  if (end === first || !tokens.slice(end).some(({ raw }) => /^\p{Ll}/u.test(raw))) return new Set()
  const last = tokens.slice(end, end + LONGEST_DISTINCTION).findIndex(({ raw }) => DISTINCTION.test(raw))
  const distinction = last >= 0 && tokens.slice(end, end + last).every(({ kind }) => kind === 'number') ? last + 1 : 0
  const names = new Set(tokens.slice(first, end + distinction).map(({ folded }) => folded))
  return new Set(terms.flatMap(({ folded }) => (names.has(folded) ? [folded] : [])))
}

/** Whether a line has a part of a name, and not behind another name: "Hart", not "Olaf Hart" for Anna Hart. */
export function hasPartOfName({ symbolOf }: Query, name: ReadonlySet<string>, quote: string): boolean {
  const tokens = tokensOf(quote)
  return tokens.some(({ folded, start }, i) => {
    const before = tokens[i - 1]
    if (!name.has(folded) || !before) return name.has(folded)
    const isJoined = !/[,;:.()]/.test(quote.slice(before.end, start))
    return !(isJoined && IS_NAME.test(before.raw) && symbolOf(before.folded) < 0)
  })
}

/**
 * Whether lines say by whom something was done that the subject of the claim did, and it is not that subject: the claim
 * "Holm designed the pier", the lines "Holm paid for the pier, which was designed by Dahl".
 */
export function hasOtherAgent(query: Query, quote: string): boolean {
  const { tokens } = query
  const subject = subjectOf(query)
  if (subject.size === 0 || tokens.some(({ folded }) => folded === 'by')) return false
  const given = tokensOf(quote)
  const done = tokens.flatMap(({ folded }, i) => {
    const isPassive = [1, 2].some((back) => IS_BE.test(tokens[i - back]?.folded ?? ''))
    const isNoun = BEFORE_NOUN.test(tokens[i - 1]?.folded ?? '')
    return isPassive || isNoun || folded.length < SHORTEST_PREFIX ? [] : [stemmed(folded)]
  })
  return given.some(({ folded }, i) => {
    if (given[i + 1]?.folded !== 'by' || has(given.slice(i + 2, i + 2 + LONGEST_AGENT), subject)) return false
    const own = stemmed(folded)
    return done.some((verb) => wordSimilarity(own, verb) >= SAME_VERB)
  })
}

/** Whether a line has the subject of the claim behind its verb and another name of the claim before it: "Kelby beat Marlow". */
export function hasSwappedNames(query: Query, quote: string): boolean {
  const { tokens } = query
  const subject = subjectOf(query)
  const isVerb = ({ folded, raw }: Token, at: number) => at > 0 && !subject.has(folded) && /^\p{Ll}{3}/u.test(raw)
  const verbAt = tokens.findIndex(isVerb)
  const verb = tokens[verbAt]
  if (subject.size === 0 || !verb) return false
  const objects = new Set(tokens.slice(verbAt + 1).flatMap(({ raw, folded }) => (IS_NAME.test(raw) ? folded : [])))
  const given = tokensOf(quote)
  const at = given.findIndex(({ folded }) => folded === verb.folded)
  if (at < 0 || given.slice(at + 1, at + 3).some(({ folded }) => folded === 'by')) return false
  const [before, behind] = [given.slice(0, at), given.slice(at + 1)]
  return has(before, objects) && !has(before, subject) && has(behind, subject) && !has(behind, objects)
}

const has = (tokens: readonly Token[], words: ReadonlySet<string>) => tokens.some(({ folded }) => words.has(folded))

const IS_NAME = /^\p{Lu}\p{M}*\p{Ll}/u
const IS_BE = /^(?:is|are|was|were|be|been|being)$/
const BEFORE_NOUN = /^(?:an?|the|s|his|her|its|their|of)$/
/** The words in brackets behind a name: a year and a kind of work. */
const DISTINCTION = /^(?:film|novel|book|album|song|band|series|play|game)$/
const LONGEST_DISTINCTION = 2
/** Tokens behind "by". */
const LONGEST_AGENT = 4
/** As similar as forms of one word. */
const SAME_VERB = 0.8
