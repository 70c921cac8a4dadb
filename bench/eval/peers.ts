// The peers of the literal assessment: BM25 over the stemmed words of each sentence, alone and with the sentences around
// it. They know no numbers, dates or typography, and they never abstain from a page that has one of the claim's words.
import { stemmer } from 'stemmer'
import { type Sentence, sentencesOf } from '../../workers/text/sentences.ts'
import type { Span } from './labels.ts'

export interface Peer {
  /** At most `most` sentences, best first; none where no word of the claim is on the page. */
  sentences(most: number): Span[]
  /** The same, each with its neighbours as long as the whole fits into `length` UTF-16 units; none overlap. */
  withNeighbours(most: number, length: number): Span[]
}

export function bm25(claim: string, text: string): Peer {
  const sentences = sentencesOf(text)
  const ranked = rank(claim, text, sentences)
  return {
    sentences: (most) => ranked.slice(0, most).map((i) => ({ start: sentences[i]!.start, end: sentences[i]!.end })),
    withNeighbours(most, length) {
      const taken: Span[] = []
      for (const i of ranked) {
        if (taken.length === most) break
        const core = sentences[i]!
        if (taken.some(({ start, end }) => core.start < end && start < core.end)) continue
        taken.push(widened(sentences, i, length, taken))
      }
      return taken
    },
  }
}

/** Takes the sentence after and the one before in turn. */
function widened(sentences: readonly Sentence[], i: number, length: number, taken: readonly Span[]): Span {
  let [first, last] = [i, i]
  const fits = (a: number, b: number) => {
    const [from, to] = [sentences[a], sentences[b]]
    if (!from || !to || to.end - from.start > length) return false
    return taken.every(({ start, end }) => to.end <= start || from.start >= end)
  }
  for (;;) {
    const before: [number, number] = [first, last]
    if (fits(first, last + 1)) last++
    if (fits(first - 1, last)) first--
    if (before[0] === first && before[1] === last) return { start: sentences[first]!.start, end: sentences[last]!.end }
  }
}

/** The numbers of the sentences that share a word with the claim, by falling score and then by place. */
function rank(claim: string, text: string, sentences: readonly Sentence[]): number[] {
  const documents = sentences.map(({ start, end }) => stemsOf(text.slice(start, end)))
  const mean = documents.reduce((sum, { length }) => sum + length, 0) / Math.max(1, documents.length)
  const terms = [...new Set(stemsOf(claim))]
  const rarities = terms.map((term) => {
    const holding = documents.filter((document) => document.includes(term)).length
    return Math.log(1 + (documents.length - holding + 0.5) / (holding + 0.5))
  })
  const scores = documents.map((document) => {
    let score = 0
    for (const [i, term] of terms.entries()) {
      const count = document.filter((word) => word === term).length
      score += (rarities[i]! * count * (K1 + 1)) / (count + K1 * (1 - B + (B * document.length) / mean))
    }
    return score
  })
  return [...scores.keys()].filter((i) => scores[i]! > 0).sort((a, b) => scores[b]! - scores[a]! || a - b)
}

/** The words of a text without stop words, as stems. */
export const stemsOf = (text: string): string[] =>
  (text.toLowerCase().match(WORD) ?? []).filter((word) => !STOP_WORDS.has(word)).map(stemmer)

const WORD = /[\p{L}\p{N}]+/gu
const K1 = 1.2
const B = 0.75
const STOP_WORDS: ReadonlySet<string> = new Set(
  `a an and are as at be been but by for from had has have he her his in into is it its not of on or she such that the
   their then there these they this to was were which will with`.split(/\s+/),
)
