// A text that cites a page, graded: finds the page and the claim, buys the verification and turns the verdict into a score.
import { CountersignError } from '../error.ts'
import type { ClaimSupport } from '../result.ts'
import { buy, type Question, type Verdict, verdictOf, type WrapperOptions } from './purchase.ts'

export interface Grade {
  /** 1: the page supports the claim. 0.5: it says both. 0: it does not. Null: no verdict was given. */
  score: number | null
  reason: string
  question: Question | null
  verdict: Verdict | null
  /** Why the page could not be read. Nothing was charged then. */
  failure: { code: string; message: string } | null
}

const SCORES: Record<ClaimSupport, number | null> = {
  supports: 1,
  mixed: 0.5,
  contradicts: 0,
  insufficient_evidence: 0,
  not_assessed: null,
}

/**
 * Grades one text against the one page that it cites. A page that cannot be read scores 0. Throws CountersignError where the
 * text is not at fault: a wallet without money, a service that is away.
 *
 * @param given the page and the claim, where they are not to be taken from the text
 */
export async function grade(output: string, given: Partial<Question>, options: WrapperOptions): Promise<Grade> {
  const none = { question: null, verdict: null, failure: null }
  const [source_url, ...further] = given.source_url ? [given.source_url] : linksIn(output)
  if (source_url === undefined) return { ...none, score: 0, reason: 'The text cites no page.' }
  if (further.length > 0)
    return { ...none, score: null, reason: `The text cites ${further.length + 1} pages: say source_url.` }
  const claim = given.claim ?? withoutLinks(output)
  if (claim === '') return { ...none, score: 0, reason: 'The text makes no claim.' }
  if (Array.from(claim).length > MAX_CLAIM)
    return { ...none, score: null, reason: `The text is longer than one claim of ${MAX_CLAIM} characters: say claim.` }
  const question = { source_url, claim }
  try {
    const verdict = verdictOf(await buy(question, options))
    const reason = `${verdict.claim_support}: ${verdict.explanation}`
    return { score: SCORES[verdict.claim_support] ?? null, reason, question, verdict, failure: null }
  } catch (error) {
    if (!(error instanceof CountersignError) || !isOfPage(error)) throw error
    const { code, message } = error
    return { score: 0, reason: `${code}: ${message}`, question, verdict: null, failure: { code, message } }
  }
}

/** A page that is not there, not public or not readable; a failure that may pass says nothing about it. */
function isOfPage({ status, retryable, code }: CountersignError): boolean {
  return status === 422 && !retryable && code.startsWith('source_')
}

/** The addresses in a text, each once, without the punctuation after them. */
export function linksIn(text: string): string[] {
  const links = text.match(/https:\/\/(?=[^\s<>"'`\])])(?:[.,;:!?*_]*[^\s<>"'`\]).,;:!?*_])*/g)
  return [...new Set(links)]
}

/** A Markdown link leaves its words. */
export function withoutLinks(text: string): string {
  return withoutMarkdownLinks(text)
    .replace(/[<(]?https?:\/\/[^\s<>"'`\])]+[>)]?/g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ([.,;:!?])/g, '$1')
    .trim()
}

/** The words of a link begin at the first `[` after the `]` before them. No part of the text is searched twice. */
export function withoutMarkdownLinks(text: string): string {
  const target = /\(\s*<?https?:\/\//y
  const lastEnd = text.lastIndexOf(')')
  let words = ''
  let copied = 0
  for (let from = 0, close = text.indexOf(']'); close >= 0; close = text.indexOf(']', from)) {
    const open = text.slice(from, close).indexOf('[')
    target.lastIndex = close + 1
    if (open >= 0 && target.test(text) && target.lastIndex <= lastEnd) {
      words += text.slice(copied, from + open) + text.slice(from + open + 1, close)
      copied = text.indexOf(')', target.lastIndex) + 1
    }
    from = Math.max(close + 1, copied)
  }
  return words + text.slice(copied)
}

/** Unicode code points. */
const MAX_CLAIM = 2000
