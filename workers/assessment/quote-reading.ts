// How much of a claim a quoted line says, and whether it negates it or attributes it to a speaker.
import { isContentTerm, isContentWord, type Query } from './query.ts'
import { searchText } from './search.ts'
import { sentencesOf } from './sentences.ts'
import { absentTerms, wordingOf } from './warnings.ts'

/**
 * `share`: share of the claim's content words in the quote; `weight`: the same by weight, with the numbers that the quote
 * has; both 0 to 1. `claimWeight`: the weight of the claim's words; a usual word weighs 1.
 */
export function readQuote(claim: string, query: Query, quote: string) {
  const findings = searchText(query, quote, sentencesOf(quote))
  const contentWords = query.terms.filter((term) => isContentTerm(term) && term.kind === 'word').length
  return {
    ...wordingOf(claim, query, quote),
    isVerbatim: findings.wholeMatchCount > 0,
    share: contentWords === 0 ? 0 : 1 - absentTerms(query, findings).length / contentWords,
    ...weightIn(query, findings.frequencies),
  }
}

/** The share, by weight, of the claim's content words and numbers that the quote has. */
function weightIn({ terms }: Query, frequencies: Uint32Array) {
  let [all, found] = [0, 0]
  for (const [i, term] of terms.entries()) {
    const has = (frequencies[i] ?? 0) > 0
    if (!isContentTerm(term) || !(isContentWord(term) || has)) continue
    all += term.prior
    if (has) found += term.prior
  }
  return { weight: all === 0 ? 0 : found / all, claimWeight: all }
}
