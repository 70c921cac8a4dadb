// Reads a page once for one claim: which sentences have which of the claim's terms, and which of its runs of words.
import { phraseFollower } from './phrases.ts'
import type { Query } from './query.ts'
import type { Sentence } from './sentences.ts'
import { termIndex } from './term-reader.ts'
import { scanTokens } from './tokens.ts'

/** A place where all of the claim's tokens occur in its order. UTF-16 offsets; `first` and `last` number sentences. */
export interface WholeMatch {
  start: number
  end: number
  first: number
  last: number
}

/** What was found, by the number of the sentence. */
export interface Findings {
  /** `hits` of sentence i are those from `hitsFrom[i]` to before `hitsFrom[i + 1]`. */
  hits: readonly { term: number; strength: number }[]
  hitsFrom: Uint32Array
  tokenCounts: Uint32Array
  /**
   * Weight of the heaviest run of the claim's tokens inside a sentence, and of one that goes on into the next sentence.
   */
  runs: Float64Array
  bridges: Float64Array
  /** In how many sentences each content term occurs. */
  frequencies: Uint32Array
  /** The first places of the whole claim, which do not overlap, and how many there are. */
  wholeMatches: readonly WholeMatch[]
  wholeMatchCount: number
}

/** Linear in the length of the text. */
export function searchText(query: Query, text: string, sentences: readonly Sentence[]): Findings {
  const tally = openTally(query, sentences)
  const runs = openRuns(query, tally.findings)
  const readTerms = termIndex(query.terms)()
  let sentence = 0
  scanTokens(text, query.granularity, (folded, kind, start, end) => {
    while (sentence < sentences.length - 1 && (sentences[sentence]?.end ?? 0) <= start) sentence++
    tally.enter(sentence)
    readTerms(folded, kind, start, end, tally.hit)
    runs.follow(query.symbolOf(folded), start, end, sentence)
  })
  runs.end()
  tally.end()
  return tally.findings
}

type Tally = { -readonly [K in keyof Findings]: Findings[K] } & {
  hits: { term: number; strength: number }[]
  wholeMatches: WholeMatch[]
}

/** Counts tokens and hits by sentence. */
function openTally(query: Query, sentences: readonly Sentence[]) {
  const findings: Tally = {
    hits: [],
    hitsFrom: new Uint32Array(sentences.length + 1),
    tokenCounts: new Uint32Array(sentences.length),
    runs: new Float64Array(sentences.length),
    bridges: new Float64Array(sentences.length),
    frequencies: new Uint32Array(query.terms.length),
    wholeMatches: [],
    wholeMatchCount: 0,
  }
  const lastSeenIn = new Int32Array(query.terms.length).fill(-1)
  let current = 0

  const advanceTo = (sentence: number) => {
    while (current < sentence) findings.hitsFrom[++current] = findings.hits.length
  }
  return {
    findings,
    enter(sentence: number) {
      advanceTo(sentence)
      findings.tokenCounts[sentence] = (findings.tokenCounts[sentence] ?? 0) + 1
    },
    hit(term: number, strength: number) {
      findings.hits.push({ term, strength })
      if (lastSeenIn[term] === current) return
      lastSeenIn[term] = current
      findings.frequencies[term] = (findings.frequencies[term] ?? 0) + 1
    },
    end() {
      advanceTo(sentences.length)
    },
  }
}

/** Keeps the places of the whole claim and, of the runs that cannot be made longer, the heaviest of each sentence. */
function openRuns(query: Query, findings: Tally) {
  const follower = phraseFollower(query.symbols)
  const weightBefore = tokenWeights(query)
  const whole = query.symbols.length
  // Rings of the places of the last tokens: a run is never longer than the claim.
  const starts = new Uint32Array(whole)
  const sentenceOf = new Uint32Array(whole)
  let count = 0
  let length = 0
  let endInClaim = -1

  const ringPlace = (tokensBack: number) => (count - tokensBack) % whole
  const keepRun = () => {
    if (length < 2) return
    const first = sentenceOf[ringPlace(length)] ?? 0
    const last = sentenceOf[ringPlace(1)] ?? 0
    const weight = (weightBefore[endInClaim + 1] ?? 0) - (weightBefore[endInClaim + 1 - length] ?? 0)
    const kept = first === last ? findings.runs : first + 1 === last ? findings.bridges : null
    if (kept) kept[first] = Math.max(kept[first] ?? 0, weight)
  }
  const keepWhole = (end: number, last: number) => {
    findings.wholeMatchCount++
    if (findings.wholeMatches.length >= MOST_WHOLE_MATCHES) return
    const first = ringPlace(whole)
    findings.wholeMatches.push({ start: starts[first] ?? 0, end, first: sentenceOf[first] ?? 0, last })
  }

  return {
    follow(symbol: number, start: number, end: number, sentence: number) {
      const longer = follower.follow(symbol)
      if (longer <= length) keepRun()
      starts[count % whole] = start
      sentenceOf[count % whole] = sentence
      count++
      length = longer
      endInClaim = follower.endInClaim
      if (length < whole || whole === 0) return
      keepWhole(end, sentence)
      keepRun()
      follower.restart()
      length = 0
    },
    end: keepRun,
  }
}

/**
 * Sums of the weights of the claim's tokens before each of them. A run of function words alone has almost no weight.
 */
function tokenWeights(query: Query): Float64Array {
  const priors = new Map(query.terms.map(({ folded, prior }) => [folded, prior]))
  const sums = new Float64Array(query.tokens.length + 1)
  for (const [i, { folded, kind }] of query.tokens.entries()) {
    const weight = kind === 'dense' ? DENSE_WEIGHT : (priors.get(folded) ?? 0)
    sums[i + 1] = (sums[i] ?? 0) + Math.max(weight, LEAST_WEIGHT)
  }
  return sums
}

const MOST_WHOLE_MATCHES = 64
const DENSE_WEIGHT = 0.5
const LEAST_WEIGHT = 0.1
