// How much a run of neighbouring sentences has to do with a claim: BM25 over the claim's terms, the heaviest run of its
// words in its order, and whether enough of the claim is there at all.
import { isTelling, isTellingWord, type Query } from './query.ts'
import type { Findings } from './search.ts'

export interface Relevance {
  /** About 0 to 2; only its order means anything. */
  score: number
  /** How many of the claim's telling terms occur in the sentences. */
  terms: number
  /** Whether enough of the claim, or of one of its sentences, occurs in the sentences to be worth showing. */
  bears: boolean
}

/** Measures sentences `first` to `last`; the time is that of reading their hits. */
export type Measure = (first: number, last: number) => Relevance

export function relevanceMeasure(query: Query, findings: Findings): Measure {
  const { hits, hitsFrom, tokenCounts } = findings
  const priors = Float64Array.from(query.terms, ({ prior }) => prior)
  const rarities = raritiesOf(findings)
  const weights = shares(priors.map((prior, term) => prior * (rarities[term] ?? 0)))
  const parts = query.parts.map((part) => openPart(query, part, rarities))
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
    const damping = K1 * (1 - B + (B * sum(tokenCounts.subarray(first, last + 1))) / meanLength)
    let score = (RUN * Math.min(run, wholeRun)) / wholeRun
    for (const term of present) {
      const count = counts[term] ?? 0
      score += ((strengths[term] ?? 0) * (weights[term] ?? 0) * count * (K1 + 1)) / (count + damping)
    }
    const bears = parts.some((part) => part.bears(present, strengths, run))
    for (const term of present) counts[term] = strengths[term] = 0
    return { score, terms: present.length, bears }
  }
}

/**
 * A passage bears on a part of a claim if it has a good share of the part's terms, more than one of them, and not only
 * numbers; or, where there are many terms, a smaller share; or a long run of its words. Numbers count less, because a
 * passage with another number bears on the claim all the same; and what is rare on this page counts little more.
 */
function openPart(query: Query, part: ReadonlySet<number>, rarities: readonly number[]) {
  const greatest = Math.max(...rarities)
  const coverage = shares(
    Float64Array.from(query.terms, ({ prior, kind }, term) => {
      if (!part.has(term)) return 0
      return prior * (kind === 'number' ? NUMBER_COVERAGE : 1) * (0.5 + (0.5 * (rarities[term] ?? 0)) / greatest)
    }),
  )
  const telling = query.terms.filter((term, number) => part.has(number) && isTelling(term))
  const tellingWords = new Set(query.terms.flatMap((term, number) => (isTellingWord(term) ? [number] : [])))
  const needsWord = telling.some(isTellingWord)
  const needed = Math.max(LEAST_SHARE, Math.min(SHARE, (SHARE * MANY_TERMS) / telling.length))

  return {
    bears(present: readonly number[], strengths: Float64Array, run: number): boolean {
      let covered = 0
      let count = 0
      let words = 0
      for (const term of present) {
        if (coverage[term] === 0) continue
        covered += (strengths[term] ?? 0) * (coverage[term] ?? 0)
        count++
        if (tellingWords.has(term)) words++
      }
      if (count < Math.min(2, telling.length) || (needsWord && words === 0)) return false
      return covered >= needed || (run >= LONG_RUN && covered >= LEAST_SHARE)
    },
  }
}

/** BM25's weight of each term. A term of one sentence is as rare as one of none. */
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
/**
 * What a run of all the claim's words adds to the score; all its terms in one sentence of usual length reach about 1.
 */
const RUN = 0.6
const FURTHER_SENTENCES = 5
const NUMBER_COVERAGE = 0.5
const SHARE = 0.42
const LEAST_SHARE = 0.15
const MANY_TERMS = 10
/** In telling words. */
const LONG_RUN = 4
