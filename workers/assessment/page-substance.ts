// Measures the other text of a suspect page, besides the phrase that makes it suspect, and whether it has the words of a
// claim.
import { codePoints } from '../../server/interface/scalars.ts'
import { FURNITURE } from './page-phrases.ts'
import { isContentTerm, isContentWord, readClaim } from './query.ts'
import { searchText } from './search.ts'

/**
 * The lower-cased lines without the sentences that have the phrase. Where several sentences share it, the line is left
 * out.
 */
export function sentencesWithout(phrase: RegExp, lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    if (!phrase.test(line)) return line
    const sentences = line.split(SENTENCE_END)
    const others = sentences.filter((sentence) => !phrase.test(sentence))
    return others.length < sentences.length ? others : []
  })
}

/**
 * The amount of content in the lines, in code points of running text. A long line counts whole. A short line that states
 * something, such as a price, counts half. Menus, notices of cookies and of rights, and lines with `besides` count nothing.
 */
export function substanceOf(lines: readonly string[], besides: RegExp | undefined): number {
  let substance = 0
  for (const line of lines) {
    const length = codePoints(line)
    if ((length < LONGEST_NOTICE && FURNITURE.test(line)) || (length < LONGEST_OFFER && besides?.test(line))) continue
    if (length >= (DENSE.test(line) ? LONG_LINE.dense : LONG_LINE.spaced)) substance += length
    else if (isStatement(line)) substance += length / 2
  }
  return substance
}

function isStatement(line: string): boolean {
  if (STATES.test(line)) return true
  if (DENSE.test(line)) return codePoints(line) >= (SENTENCE.test(line) ? DENSE_SENTENCE : DENSE_PHRASE)
  const words = line.match(WORD)?.length ?? 0
  return words >= (SENTENCE.test(line) ? SENTENCE_WORDS : PHRASE_WORDS)
}

/**
 * Whether the lines have at least half of the claim's content terms, by weight, with two words among them. The phrase
 * itself does not count, nor does an address: a missing page often repeats the address that was asked for.
 */
export function holdsWordsOf(claim: string, lines: readonly string[], phrase: RegExp): boolean {
  const text = lines.map((line) => line.split(phrase).join(' ').replace(ADDRESS, ' ')).join('\n')
  const query = readClaim(claim)
  const { frequencies } = searchText(query, text, [{ start: 0, end: text.length, line: 0 }])
  let [all, found, words, wordsFound] = [0, 0, 0, 0]
  for (const [i, term] of query.terms.entries()) {
    if (!isContentTerm(term)) continue
    const isFound = (frequencies[i] ?? 0) > 0
    all += term.prior
    if (isFound) found += term.prior
    if (!isContentWord(term)) continue
    words++
    if (isFound) wordsFound++
  }
  return all > 0 && found >= SHARE * all && wordsFound >= Math.min(LEAST_WORDS, words)
}

const SHARE = 0.5
const LEAST_WORDS = 2
/** Code points. Menus and footers are short lines; running text has long ones. */
const LONG_LINE = { spaced: 80, dense: 35 }
/** Code points. A longer paragraph about cookies or subscriptions is text. */
const [LONGEST_OFFER, LONGEST_NOTICE] = [200, 400]
const DENSE = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}]/u
const SENTENCE_END = /(?<=[.!?…؟।]["'”’»)]?)\s+|(?<=[。！？])/u
/** A number, the cells of a row, or a name with its value. */
const STATES = /\p{Nd}.*\p{L}|\p{L}.*\p{Nd}|\t|\p{L}\s?[:：]\s?[\p{L}\p{Nd}]/u
/** With fewer words, or characters of a dense script, a line may be the name of a menu. */
const [SENTENCE_WORDS, PHRASE_WORDS] = [4, 6]
const [DENSE_SENTENCE, DENSE_PHRASE] = [7, 12]
const WORD = /\p{L}[\p{L}\p{M}'’-]*/gu
const SENTENCE = /[.!?…؟।。！？]["'”’»)]?$/u
const ADDRESS = /(?:https?:\/)?\/\S+/g
