// Reads a claim: the terms that a text is searched for, and where a text has them.
import { functionWordsOf } from './language.ts'
import {
  type Granularity,
  granularityFor,
  scanTokens,
  type TermPlace,
  type Token,
  termReader,
  tokensOf,
} from './tokens.ts'

/**
 * A distinct word, number or character sequence of the claim. `weight` is 0 for "the", 1 for most words, and small for a single
 * sign and for characters that are on every page.
 */
export interface Term {
  term: string
  /** As the claim writes it. */
  raw: string
  weight: number
  kind: TermPlace['kind']
}

export interface Query {
  granularity: Granularity
  tokens: readonly Token[]
  /** By term. Those of weight 0 are left out, unless the claim has no other. */
  terms: ReadonlyMap<string, Term>
}

export function readClaim(claim: string): Query {
  const composed = claim.normalize('NFC')
  const granularity = granularityFor(composed)
  const tokens = tokensOf(composed, granularity)
  const isEmpty = emptyWords(tokens)
  const isChinese = !KANA.test(composed)
  const all = new Map<string, Term>()
  const byStart = new Map(tokens.map((token, i) => [token.start, { token, i }]))
  const reader = termReader((term, { start, end, kind }) => {
    if (all.has(term)) return
    const { token, i = 0 } = byStart.get(start) ?? {}
    const weight = kind === 'gram' ? weightOfGram(term, isChinese) : token && isEmpty(token, i) ? 0 : weightOf(token)
    all.set(term, { term, raw: composed.slice(start, end), weight, kind })
  })
  for (const token of tokens) reader.read(token)
  reader.end()
  const content = [...all].filter(([, { weight }]) => weight > 0)
  const terms = content.length > 0 ? content : [...all].map(([key, term]) => [key, { ...term, weight: 1 }] as const)
  return { granularity, tokens, terms: new Map(terms) }
}

/** Whether a token says nothing by itself: a function word of the claim's language, or the ending of a number. */
function emptyWords(tokens: readonly Token[]) {
  // A name may contain words of other languages: De La Cruz.
  const plain = tokens.filter(({ raw }, i) => i === 0 || !/^\p{Lu}\p{Ll}/u.test(raw))
  const functionWords = functionWordsOf(plain.map(({ folded }) => folded))
  const shouting = tokens.every(({ raw }) => raw === raw.toUpperCase())
  const isAcronym = (raw: string) =>
    !shouting && raw.length > 1 && raw === raw.toUpperCase() && raw !== raw.toLowerCase()
  return ({ folded, kind, raw, start }: Token, i: number) => {
    const before = tokens[i - 1]
    const isSuffix = before?.kind === 'number' && before.end === start && SUFFIX.test(folded)
    return kind === 'word' && (isSuffix || functionWords.has(folded)) && !isAcronym(raw)
  }
}

const weightOf = (token: Token | undefined) => (token?.folded.length === 1 ? ONE_SIGN : 1)

/** Pairs with a character that is a word of its own, such as "of", go over the border of a word. */
function weightOfGram(gram: string, isChinese: boolean): number {
  return (isChinese && HAN_PARTICLE.test(gram)) || HIRAGANA.test(gram) ? ONE_SIGN : 1
}

/** The terms of the claim that each part of a text has, in the order of the text, and how many terms it has in all. */
export function termsIn(
  { terms, granularity }: Query,
  text: string,
  parts: readonly { start: number; end: number }[],
): { terms: string[]; length: number }[] {
  const found = parts.map(() => ({ terms: [] as string[], length: 0 }))
  let part = 0
  const reader = termReader((term, { start }) => {
    while (part < parts.length - 1 && parts[part]!.end <= start) part++
    const one = found[part]
    if (!one) return
    one.length++
    if (terms.has(term)) one.terms.push(term)
  })
  scanTokens(text, granularity, (folded, kind, start, end, raw) => reader.read({ folded, kind, start, end, raw }))
  reader.end()
  return found
}

/** The weight of a single letter or digit, which occurs on most pages: 4b, plan B, two. */
const ONE_SIGN = 0.3
/** 22nd, 1990s: the number is compared, and its ending says nothing. */
const SUFFIX = /^(?:st|nd|rd|th|s)$/
const HAN_PARTICLE = /[的于於在而被有得為为后後了是和與与及其到從从以之也就都把對对來来]/u
const KANA = /[\p{sc=Hira}\p{sc=Kana}]/u
const HIRAGANA = /^\p{sc=Hira}+$/u
