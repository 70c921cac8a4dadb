// The doubt about a verdict against a claim: lines that say the claim itself hardly contradict it.
import { agreeAcrossUnits } from './measures.ts'
import { deniesByVerb, hasOppositeOf } from './opposites.ts'
import { quantitiesOf } from './quantities.ts'
import { MOST_QUANTITIES } from './quantity-checks.ts'
import type { Query } from './query.ts'
import { readQuote } from './quote-reading.ts'
import type { SemanticFlag } from './semantic-risk-flags.ts'
import { substitutedNames } from './substitutions.ts'

/**
 * How the quotes read against the claim agree with it, if they do. The claim word for word, neither negated nor
 * attributed to a speaker, is hardly a contradiction. Nor are lines that have all its numbers and its words, and deny
 * or reverse nothing: a contradiction has another word somewhere. Of a short claim that word is easily the only one
 * missing, so only a long claim may miss some; and where other lines support the claim, it may miss none.
 */
export function agreementOf(
  claim: string,
  query: Query,
  quotes: readonly string[],
  isMixed: boolean,
): SemanticFlag | null {
  const readings = quotes.map((quote) => readQuote(claim, query, quote))
  const plain = readings.filter(({ isNegatedOtherwise, isAttributed }) => !isNegatedOtherwise && !isAttributed)
  if (plain.some(({ isVerbatim }) => isVerbatim) && query.tokens.length >= FEW_TOKENS) return 'claim_wording_present'
  if (quotes.length === 0 || plain.length < quotes.length) return null
  const claimed = quantitiesOf(claim)
  // Each is held against every number of the lines, so a list of numbers is left to the model.
  if (claimed.length > MOST_QUANTITIES) return null
  // A claim that compares may be wrong by its comparison alone.
  if (claimed.some(({ bound }) => bound !== null) || COMPARES.test(claim)) return null
  const all = quotes.join('\n')
  const { weight, claimWeight } = readQuote(claim, query, all)
  const isSaid = weight >= ALL || (!isMixed && weight * claimWeight >= ENOUGH_WORDS && weight >= MORE_THAN_HALF)
  if (!isSaid || saysOtherwise(claim, query, quotes, all)) return null
  const given = quotes.flatMap(quantitiesOf)
  const agrees = claimed.every((one) => given.some((other) => agreeAcrossUnits(one, other)))
  return agrees ? 'claim_words_present' : null
}

/** Whether lines with the claim's words may contradict it all the same. */
function saysOtherwise(claim: string, query: Query, quotes: readonly string[], all: string): boolean {
  if (hasOppositeOf(claim, all) || deniesByVerb(claim) !== deniesByVerb(all)) return true
  return substitutedNames(query, quotes, new Set()).length > 0
}

const FEW_TOKENS = 4
const COMPARES =
  /\b(?:(?:more|less|fewer|greater|higher|lower|larger|smaller|older|younger|earlier|later|rather) than|half|only|exactly)\b/i
/** Shares of the claim's telling words and of the numbers among them that were found, by weight. */
const [ALL, MORE_THAN_HALF] = [0.999, 0.55]
/** By weight, in which a usual word counts 1: a contradiction hardly shares so many. */
const ENOUGH_WORDS = 6.5
