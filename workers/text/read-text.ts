// What all claims on one text share: its sentences, its tokens and terms, its offsets. Each is read when it is
// first needed, and once, so that ten claims on one page cost little more than one.
import { isKnownLanguage } from './language.ts'
import { type CodePointIndex, codePointIndex } from './offsets.ts'
import { type Sentence, sentencesOf } from './sentences.ts'
import type { Query } from './terms.ts'
import { type Granularity, scanTokens, termReader } from './tokens.ts'

export interface ReadText {
  readonly text: string
  readonly sentences: readonly Sentence[]
  readonly offsets: CodePointIndex
  readonly lowerCase: string
  readonly isKnownLanguage: boolean
  /** The terms of the query that each sentence has, in the order of the text, and how many terms it has in all. */
  termsOf(query: Pick<Query, 'terms' | 'granularity'>): { terms: string[]; length: number }[]
  tokens(granularity: Granularity): Tokens
}

export interface Tokens {
  /** All of them, folded, each between two line breaks, which no token holds. */
  all: string
  /** Where each begins in `all`, and where it stands in the text. */
  spans: readonly { at: number; start: number; end: number }[]
}

interface Scan extends Tokens {
  /** Of each sentence, how many terms it has. */
  lengths: readonly number[]
  /** All of them in the order of the text, and the number of the sentence of each. */
  terms: readonly string[]
  sentenceOf: readonly number[]
}

/** The claims of one purchase come one after the other, so the last text is kept: they share what is read of it. */
let last: ReadText | null = null

export function readOnce(text: string): ReadText {
  if (last?.text !== text) last = readText(text)
  return last
}

function readText(text: string): ReadText {
  const sentences = once(() => sentencesOf(text))
  const scans = new Map<Granularity, Scan>()
  const scanned = (granularity: Granularity) => {
    const known = scans.get(granularity) ?? scan(text, sentences(), granularity)
    scans.set(granularity, known)
    return known
  }
  const offsets = once(() => codePointIndex(text))
  const lowerCase = once(() => text.toLowerCase())
  const known = once(() => isKnownLanguage(text))
  return {
    text,
    get sentences() {
      return sentences()
    },
    get offsets() {
      return offsets()
    },
    get lowerCase() {
      return lowerCase()
    },
    get isKnownLanguage() {
      return known()
    },
    tokens: scanned,
    termsOf({ terms, granularity }) {
      const scan = scanned(granularity)
      const found = scan.lengths.map((length) => ({ terms: [] as string[], length }))
      for (let i = 0; i < scan.terms.length; i++) {
        const term = scan.terms[i]!
        if (terms.has(term)) found[scan.sentenceOf[i]!]!.terms.push(term)
      }
      return found
    },
  }
}

function scan(text: string, sentences: readonly Sentence[], granularity: Granularity): Scan {
  const lengths = sentences.map(() => 0)
  const terms: string[] = []
  const sentenceOf: number[] = []
  let part = 0
  const reader = termReader((term, { start }) => {
    while (part < sentences.length - 1 && sentences[part]!.end <= start) part++
    if (sentences.length === 0) return
    lengths[part]!++
    terms.push(term)
    sentenceOf.push(part)
  })
  const folded: string[] = []
  const spans: { at: number; start: number; end: number }[] = []
  let at = 0
  scanTokens(text, granularity, (token, kind, start, end, raw) => {
    reader.read({ folded: token, kind, start, end, raw })
    spans.push({ at, start, end })
    folded.push(token)
    at += token.length + 1
  })
  reader.end()
  return { lengths, terms, sentenceOf, all: `\n${folded.join('\n')}\n`, spans }
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
