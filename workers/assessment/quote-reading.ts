// How much of a claim a quoted line says, and whether it denies it or gives it as somebody's statement.
import { isTelling, isTellingWord, type Query } from './query.ts'
import { searchText } from './search.ts'
import { sentencesOf } from './sentences.ts'
import { absentTerms, wordingOf } from './warnings.ts'

/**
 * `share` is of the claim's telling words, `weight` also of its numbers that the quote has; both 0 to 1. `claimWeight`
 * is what the claim's words weigh, a usual one 1.
 */
export function readQuote(claim: string, query: Query, quote: string) {
  const findings = searchText(query, quote, sentencesOf(quote))
  const telling = query.terms.filter((term) => isTelling(term) && term.kind === 'word').length
  return {
    ...wordingOf(claim, query, quote),
    isVerbatim: findings.wholeMatchCount > 0,
    share: telling === 0 ? 0 : 1 - absentTerms(query, findings).length / telling,
    ...weightIn(query, findings.frequencies),
  }
}

/** Of the claim's telling words, and of its numbers that the quote has, what the quote has by weight. */
function weightIn({ terms }: Query, frequencies: Uint32Array) {
  let [all, found] = [0, 0]
  for (const [i, term] of terms.entries()) {
    const has = (frequencies[i] ?? 0) > 0
    if (!isTelling(term) || !(isTellingWord(term) || has)) continue
    all += term.prior
    if (has) found += term.prior
  }
  return { weight: all === 0 ? 0 : found / all, claimWeight: all }
}
