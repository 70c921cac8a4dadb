// Finds the passages of a page that share the words of a claim, best first: sentences, ranked by BM25 over the claim's terms. A
// place where the whole claim occurs comes before any other.

import type { ReadText } from '../../text/read-text.ts'
import type { Sentence } from '../../text/sentences.ts'
import type { Query } from '../../text/terms.ts'
import { bm25 } from '../local/windows.ts'

/** How much of the claim's wording a passage has: all of it, all but for case and typography, or a part. */
export type Wording = 'exact' | 'folded' | 'partial'

/** UTF-16 offsets of a quotation: sentences that matched, with a neighbour if they say little alone. */
export interface Passage {
  start: number
  end: number
  wording: Wording
}

export interface Findings {
  /** They do not overlap and do not repeat each other. */
  passages: Passage[]
  /** The first places of the whole claim, which do not overlap, and how many there are. */
  wholeMatches: { start: number; end: number }[]
  wholeMatchCount: number
  /** The terms of the claim that the page has. */
  present: ReadonlySet<string>
  isBlank: boolean
}

interface Page {
  text: string
  sentences: readonly Sentence[]
}

/** Sentences `first` to `last`. */
interface Candidate {
  first: number
  last: number
  wording: Wording
  points: number
}

/** At most `most` passages about the claim. Linear in the length of the text. */
export function findPassages(claim: string, query: Query, page: ReadText, most: number): Findings {
  const found = page.termsOf(query)
  const whole = wholeMatches(query, page)
  const candidates = whole.places.map(({ start, end }) => wholeCandidate(claim, page, start, end))
  if (isAbout(query, page, found)) candidates.push(...ranked(query, page, found))
  return {
    passages: pick(candidates.sort(byRank), page, claim.length < SHORT, most),
    wholeMatches: whole.places,
    wholeMatchCount: whole.count,
    present: new Set(found.flatMap(({ terms }) => terms)),
    isBlank: page.sentences.length === 0,
  }
}

/** Every sentence with a term, by its own score and a part of its better neighbour's. */
function ranked(query: Query, page: Page, found: readonly { terms: string[]; length: number }[]): Candidate[] {
  const scores = bm25(new Map([...query.terms].map(([term, { weight }]) => [term, weight])), found)
  return scores.flatMap((score, i) => {
    if (score === 0) return []
    const around = Math.max(scores[i - 1] ?? 0, scores[i + 1] ?? 0)
    const share = isWholeLine(page, i, i) && isHeading(page.text, page.sentences[i]!) ? HEADINGS : 1
    return [{ first: i, last: i, wording: 'partial', points: Math.round(1e6 * share * (score + AROUND * around)) }]
  })
}

/**
 * Whether words of the claim are together on the page and not by chance: two terms of it, with a word among them and a share of
 * all, in neighbouring sentences. Of a page that is little longer than a quotation one word is enough, because a quotation of it
 * costs its reader nothing.
 */
function isAbout({ terms }: Query, { text }: Page, found: readonly { terms: string[] }[]): boolean {
  const content = [...terms.values()]
  const total = content.reduce((sum, { weight }) => sum + weight, 0)
  const needsWord = content.some(({ kind }) => kind !== 'number')
  const least = Math.min(LEAST_TERMS, content.length)
  return found.some((one, i) => {
    if (one.terms.length === 0) return false
    const near = new Set([...(found[i - 1]?.terms ?? []), ...one.terms, ...(found[i + 1]?.terms ?? [])])
    const shared = [...near].map((term) => terms.get(term)!)
    if (text.length <= SHORT_PAGE && shared.some(({ kind }) => kind === 'word')) return true
    const weight = shared.reduce((sum, one) => sum + one.weight, 0)
    const hasWord = !needsWord || shared.some(({ kind }) => kind !== 'number')
    return hasWord && shared.length >= least && weight >= LEAST_SHARE * total
  })
}

/** The places where all of the claim's tokens stand in its order. */
function wholeMatches({ tokens, granularity }: Query, page: ReadText) {
  const places: { start: number; end: number }[] = []
  if (tokens.length === 0) return { places, count: 0 }
  const { all, spans } = page.tokens(granularity)
  const sought = `\n${tokens.map((token) => token.folded).join('\n')}\n`
  let [count, i] = [0, 0]
  for (let found = all.indexOf(sought); found >= 0; found = all.indexOf(sought, found + sought.length - 1)) {
    if (++count > MOST_WHOLE_MATCHES) continue
    while (spans[i]!.at < found) i++
    places.push({ start: spans[i]!.start, end: spans[i + tokens.length - 1]!.end })
  }
  return { places, count }
}

/** The sentences around a place of the whole claim, as far as they fit into one quotation. */
function wholeCandidate(claim: string, { text, sentences }: Page, start: number, end: number): Candidate {
  const first = Math.max(
    0,
    sentences.findLastIndex((sentence) => sentence.start <= start),
  )
  let last = Math.max(
    first,
    sentences.findLastIndex((sentence) => sentence.start < end),
  )
  while (last > first && lengthOf(sentences, first, last) > LONGEST_PASSAGE) last--
  return { first, last, wording: claim.includes(text.slice(start, end)) ? 'exact' : 'folded', points: 0 }
}

/** Takes the best passages that do not overlap or repeat those already taken, down to a share of the most points. */
function pick(candidates: readonly Candidate[], page: Page, mayBeShort: boolean, count: number): Passage[] {
  const taken: Passage[] = []
  const said = new Set<string>()
  const most = Math.max(0, ...candidates.map(({ points }) => points))
  const free = (a: number, b: number) => {
    const [start, end] = spanOf(page.sentences, a, b)
    return taken.every((other) => end <= other.start || start >= other.end)
  }
  for (const { first, last, wording, points } of candidates) {
    if (taken.length === count) break
    const core = page.text.slice(...spanOf(page.sentences, first, last))
    if ((wording === 'partial' && points < most * LEAST_OF_BEST) || said.has(core) || !free(first, last)) continue
    const [from, to] = withContext(page, first, last, taken.length < MOST_CONTINUED ? LONGEST_CONTINUED : 0, free)
    const [start, end] = spanOf(page.sentences, from, to)
    if (wording === 'partial' && end - start < SHORT && !isWholeLine(page, from, to) && !mayBeShort) continue
    said.add(core)
    taken.push({ start, end, wording })
  }
  return taken
}

/**
 * Adds the sentence before to a passage that is short or begins with a pronoun, then the one after if it is still short, or if
 * the whole stays within `continued` UTF-16 units: it often has the rest of what the claim says.
 */
function withContext(page: Page, first: number, last: number, continued: number, free: Free): [number, number] {
  const { text, sentences } = page
  let [from, to] = [first, last]
  const isShort = () => lengthOf(sentences, from, to) < ENOUGH
  const fits = (a: number, b: number, most: number) => lengthOf(sentences, a, b) <= most && free(a, b)
  const pointsBack = POINTS_BACK.test(text.slice(...spanOf(sentences, first, first)))
  if ((isShort() || pointsBack) && explains(page, from - 1) && fits(from - 1, to, LONGEST_PASSAGE)) from--
  if (isShort() && explains(page, to) && fits(from, to + 1, LONGEST_PASSAGE)) to++
  if (sentences[to + 1]?.line === sentences[to]?.line && fits(from, to + 1, continued)) to++
  return [from, to]
}

type Free = (first: number, last: number) => boolean

/** Whether sentence `i` and the next are of one line, or a heading and the text below it. */
function explains({ text, sentences }: Page, i: number): boolean {
  const [a, b] = [sentences[i], sentences[i + 1]]
  if (!a || !b) return false
  return a.line === b.line || (b.line - a.line <= 2 && isHeading(text, a) && !isHeading(text, b))
}

function isHeading(text: string, { start, end }: Sentence): boolean {
  return end - start <= LONGEST_HEADING && !NO_HEADING.test(text.slice(start, end))
}

function isWholeLine({ sentences }: Page, from: number, to: number): boolean {
  return sentences[from - 1]?.line !== sentences[from]?.line && sentences[to + 1]?.line !== sentences[to]?.line
}

/** From the start of sentence `first` to the end of sentence `last`; nothing if one of them is missing. */
function spanOf(sentences: readonly Sentence[], first: number, last: number): [start: number, end: number] {
  return [sentences[first]?.start ?? 0, sentences[last]?.end ?? 0]
}

function lengthOf(sentences: readonly Sentence[], first: number, last: number): number {
  const [start, end] = spanOf(sentences, first, last)
  return end - start
}

function byRank(a: Candidate, b: Candidate): number {
  return WORDINGS.indexOf(a.wording) - WORDINGS.indexOf(b.wording) || b.points - a.points || a.first - b.first
}

const WORDINGS: readonly Wording[] = ['exact', 'folded', 'partial']
const MOST_WHOLE_MATCHES = 64
/** UTF-16 units, so never more code points than a quotation may have. */
const LONGEST_PASSAGE = 1000
const LONGEST_HEADING = 80
const ENOUGH = 100
/** The first quotations are lengthened by the next sentence up to so many UTF-16 units. */
const [MOST_CONTINUED, LONGEST_CONTINUED] = [2, 450]
/** A quotation shorter than this could be on any page, unless its line or the claim is as short. */
const SHORT = 12
/** UTF-16 units; one quotation may hold all of it. */
const SHORT_PAGE = 450
/** Different terms of the claim in neighbouring sentences, and their share of its weight. */
const [LEAST_TERMS, LEAST_SHARE] = [2, 0.25]
/** The cells of a row, or a sentence. */
const NO_HEADING = /\t|[.!?。！？…।؟;][\p{Pe}\p{Pf}"']?$/u
/** The sentence before one that begins with a pronoun names what the pronoun means. */
const POINTS_BACK =
  /^(?:It|Its|He|His|She|Her|They|Their|This|These|Those|Er|Sie|Es|Ihre?|Seine?|Il|Elle|Ils|Elles|Sa|Son|Él|Ella|Ele|Ela|Он|Она|Оно|Они|Его|Её|Их)\s/u
/** What the better neighbour adds of its score, such as the name for a pronoun. */
const AROUND = 0.3
/** The share of its score that a heading or name without a sentence keeps. */
const HEADINGS = 0.7
const LEAST_OF_BEST = 0.2
