// Measures how relevant neighbouring sentences are to a claim: BM25 over the claim's terms, the heaviest run of its words
// in its order, and whether the page has enough of the claim.
import { isContentTerm, isContentWord, type Query, type Term } from './query.ts'
import type { Findings } from './search.ts'

export interface Relevance {
  /** About 0 to 2; only its order means anything. */
  score: number
  /** How many of the claim's content terms occur in the sentences. */
  terms: number
  /** The weight of the claim's terms that occur in the sentences, 0 to 1. */
  weight: number
}

/** Measures sentences `first` to `last`. The time is proportional to their hits. */
export type Measure = (first: number, last: number) => Relevance

export function relevanceMeasure(query: Query, findings: Findings): Measure {
  const { hits, hitsFrom, tokenCounts } = findings
  const priors = Float64Array.from(query.terms, ({ prior }) => prior)
  const rarities = raritiesOf(findings)
  const weights = shares(priors.map((prior, term) => prior * (rarities[term] ?? 0)))
  const meanLength = Math.max(1, sum(tokenCounts) / tokenCounts.length)
  const wholeRun = Math.max(1, sum(priors))
  const counts = new Uint32Array(query.terms.length)
  const strengths = new Float64Array(query.terms.length)

  return (first, last) => {
    const present: number[] = []
    for (const { term, strength } of hits.slice(hitsFrom[first], hitsFrom[last + 1])) {
      const count = counts[term] ?? 0
      if (count === 0) present.push(term)
      counts[term] = count + 1
      strengths[term] = Math.max(strengths[term] ?? 0, strength)
    }
    // In the order of the claim, so that rounding does not depend on the order of the page.
    present.sort((a, b) => a - b)
    const run = heaviestRun(findings, first, last)
    const lengthCounts = first === last ? B : B_OF_TWO
    const damping = K1 * (1 - lengthCounts + (lengthCounts * sum(tokenCounts.subarray(first, last + 1))) / meanLength)
    let score = (RUN * Math.min(run, wholeRun)) / wholeRun
    let weight = 0
    for (const term of present) {
      const count = counts[term] ?? 0
      weight += (strengths[term] ?? 0) * (weights[term] ?? 0)
      score += ((strengths[term] ?? 0) * (weights[term] ?? 0) * count * (K1 + 1)) / (count + damping)
    }
    for (const term of present) counts[term] = strengths[term] = 0
    return { score, terms: present.length, weight }
  }
}

/**
 * Whether the page has enough of the claim, or of one of its sentences, to be worth quoting from. This is decided once for
 * the page: a passage about a part of the claim may have few of its words, and only the rest of the page shows that this is
 * not chance. The share of a part's terms in the best sentence with two on either side counts fully, the share on the whole
 * page counts less; a long run of the claim's words is enough too. A page that is little longer than a quotation needs only
 * one content word or its stem, because a quotation of it costs its reader nothing. Words that only begin alike must be a
 * share of the claim, in which numbers count less, because another number is relevant to the claim too. `length` is in
 * UTF-16 units; `enough` is the least sum of the two shares.
 */
export function isPageRelevant(query: Query, findings: Findings, length: number, enough = ENOUGH): boolean {
  const isShort = length <= SHORT_PAGE
  return query.parts.some((part) => isRelevantToPart(query, part, findings, { isShort, enough }))
}

function isRelevantToPart(
  query: Query,
  part: ReadonlySet<number>,
  findings: Findings,
  { isShort, enough }: { isShort: boolean; enough: number },
): boolean {
  const contentTerms = query.terms.filter((term, number) => part.has(number) && isContentTerm(term))
  const weighed = query.terms.map((term, number) => {
    const weight = term.prior * (isShort && term.kind === 'number' ? NUMBER_COVERAGE : 1)
    return { term, weight: part.has(number) ? weight : 0 }
  })
  const total = weighed.reduce((all, { weight }) => all + weight, 0)
  const coverage = weighed.map(({ term, weight }) => ({ term, share: total === 0 ? 0 : weight / total }))
  const needsWord = contentTerms.some(isContentWord)
  const last = findings.tokenCounts.length - 1
  const page = coveredBy(findings, 0, last, coverage)
  if (page.terms === 0 || (needsWord && page.words === 0)) return false
  if (isShort && (page.hasWord || (page.share >= ENOUGH_OF_SHORT && page.isSpaced))) return true
  const least = Math.min(2, contentTerms.length)
  for (let i = 0; i <= last; i++) {
    if (findings.hitsFrom[i] === findings.hitsFrom[i + 1]) continue
    const near = coveredBy(findings, Math.max(0, i - BESIDE), Math.min(last, i + BESIDE), coverage)
    if (near.terms < least || (needsWord && near.words === 0)) continue
    const isRun = heaviestRun(findings, i, i) >= LONG_RUN && near.share >= LEAST_SHARE
    if (isRun || near.share + ELSEWHERE * page.share >= enough) return true
  }
  return false
}

/** A term of the claim, and its share of the weight of the part. */
interface Covered {
  term: Term
  share: number
}

/** The share of the coverage, and the number of terms and words, that sentences `first` to `last` have. */
function coveredBy({ hits, hitsFrom }: Findings, first: number, last: number, coverage: readonly Covered[]) {
  const strengths = new Map<Covered, number>()
  for (const { term, strength } of hits.slice(hitsFrom[first], hitsFrom[last + 1])) {
    // Only terms of the claim have hits.
    const covered = coverage[term]!
    if (covered.share > 0 && strength > (strengths.get(covered) ?? 0)) strengths.set(covered, strength)
  }
  let share = 0
  let words = 0
  let isSpaced = false
  let hasWord = false
  for (const [{ term, share: whole }, strength] of strengths) {
    share += strength * whole
    if (isContentWord(term)) words++
    if (term.kind !== 'word') continue
    isSpaced = true
    if (strength >= ONE_STEM) hasWord = true
  }
  return { share, terms: strengths.size, words, isSpaced, hasWord }
}

/** BM25's weight of each term. A term that occurs in one sentence counts as rare as a term that occurs in none. */
function raritiesOf({ frequencies, tokenCounts }: Findings): number[] {
  // A page of few sentences says little about what is rare, so some are added that have no term.
  const sentences = tokenCounts.length + FURTHER_SENTENCES
  return Array.from(frequencies, (found) => {
    const frequency = Math.max(1, found)
    return Math.log(1 + (sentences - frequency + 0.5) / (frequency + 0.5))
  })
}

function heaviestRun({ runs, bridges }: Findings, first: number, last: number): number {
  return Math.max(...runs.subarray(first, last + 1), ...bridges.subarray(first, last))
}

function shares(values: Float64Array): Float64Array {
  const total = sum(values)
  return total === 0 ? values : values.map((value) => value / total)
}

function sum(values: Float64Array | Uint32Array): number {
  let total = 0
  for (const value of values) total += value
  return total
}

const K1 = 1.2
const B = 0.5
/** Two sentences are always longer than one, so their length counts less. */
const B_OF_TWO = 0.3
/**
 * What a run of all the claim's words adds to the score; all its terms in one sentence of usual length reach about 1.
 */
const RUN = 0.3
const FURTHER_SENTENCES = 5
const NUMBER_COVERAGE = 0.5
/** Weight of the share on the whole page, relative to the share in one place. */
const ELSEWHERE = 0.3
/**
 * Few pages that are relevant to their claim have less, and about half of the others. A higher bound excludes more of the
 * others, and loses evidence of long claims and of long pages: `bench/eval/bounds.ts` prints both.
 */
const ENOUGH = 0.43
/** Sentences on either side of one. */
const BESIDE = 2
const LEAST_SHARE = 0.15
/** In content words. */
const LONG_RUN = 4
/** UTF-16 units; one quotation may hold all of it. */
const SHORT_PAGE = 450
/** Least strength of the claim's word itself, or of a word with the same stem. */
const ONE_STEM = 0.95
/** Of a part's terms; about one word of seven. Two equal characters mean less. */
const ENOUGH_OF_SHORT = 0.13
