// The words that a claim puts between quotation marks, looked for on the page.
import type { Doubt } from './quantity-checks.ts'
import { type Granularity, granularityFor, scanTokens, tokensOf } from './tokens.ts'

interface Phrase {
  granularity: Granularity
  tokens: string
}

/** The phrases that the claim puts between quotation marks, if they have more than one token. */
export function quotedPhrases(claim: string): Phrase[] {
  return quotations(claim)
    .flatMap((quoted) => quoted.split(LEFT_OUT_OF_QUOTE))
    .flatMap((quoted) => {
      const phrase = quoted.trim().normalize('NFC')
      if (phrase.length < SHORTEST_PHRASE || phrase.length > LONGEST_PHRASE) return []
      const granularity = granularityFor(phrase)
      return tokensOf(phrase, granularity).length > 1 ? { granularity, tokens: foldedTokens(phrase, granularity) } : []
    })
}

/**
 * Marks are paired in order, however short what they hold is. A straight mark opens where a word follows it and none
 * goes before, and closes otherwise.
 */
function quotations(claim: string): string[] {
  const found: string[] = []
  let open = -1
  for (const { index, 0: mark } of claim.matchAll(MARKS)) {
    const opensByPlace = /^$|[\s\p{Ps}\p{Pi}\p{Pd}]/u.test(claim.slice(Math.max(0, index - 1), index))
    const opens = OPENING.test(mark) || (!CLOSING.test(mark) && open < 0 && opensByPlace)
    if (open >= 0 && !OPENING.test(mark)) {
      found.push(claim.slice(open, index))
      open = -1
    } else if (opens) open = index + 1
  }
  return found
}

/**
 * Each phrase's tokens must be consecutive in the text. A missing phrase raises only a flag, because titles, terms and
 * speech that a page words differently are as frequent as invented quotations. The text is read once for all phrases.
 */
export function phraseDoubts(text: string, phrases: readonly Phrase[]): Doubt[] {
  const read = new Map<Granularity, string>()
  const isAbsent = phrases.some(({ granularity, tokens }) => {
    const all = read.get(granularity) ?? foldedTokens(text, granularity)
    read.set(granularity, all)
    return !all.includes(tokens)
  })
  return isAbsent ? [{ flag: 'quoted_phrase_absent', isGrave: false }] : []
}

/** The tokens of a text, each between two line breaks, which no token holds. */
function foldedTokens(text: string, granularity: Granularity): string {
  const tokens: string[] = []
  scanTokens(text, granularity, (folded) => tokens.push(folded))
  return `\n${tokens.join('\n')}\n`
}

/** UTF-16 units; shorter ones are names and abbreviations more often than quotations. */
const [SHORTEST_PHRASE, LONGEST_PHRASE] = [6, 400]
/** Marks that a quotation leaves words out. */
const LEFT_OUT_OF_QUOTE = /\s*(?:\[?(?:\.{3}|…)\]?|\[[^\]]*\])\s*/
const MARKS = /["“”„«»「」『』]/g
/** “ also closes, after „. */
const OPENING = /[„«「『]/
const CLOSING = /[”»」』]/
