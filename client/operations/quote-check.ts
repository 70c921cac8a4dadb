// Operations on quote checks: whether quotes are in a page, free of charge.
import type { CallOptions } from './call-options.ts'

export interface CheckedQuote {
  quote: string
  /**
   * `exact`: the page's text has the quote. `typographic`: it has it but for white space, quotation marks, dashes and case.
   * `near`: it has a similar passage, in `nearest`. `absent`: none of these.
   */
  match: 'exact' | 'typographic' | 'near' | 'absent'
  /** Offsets in Unicode code points, `end` exclusive; null without a match. */
  start: number | null
  end: number | null
  quote_sha256: string
  /** Link to the match, or to the nearest passage, by a text fragment. */
  fragment_url: string | null
  nearest: { text: string; start: number; end: number; similarity: number } | null
}

export interface QuoteCheck {
  source: {
    requested_url: string
    final_url: string
    content_sha256: string
    text_sha256: string
    checked_at: string
  }
  /** In the order of the request. */
  quotes: CheckedQuote[]
}

export interface QuoteCheckOperations {
  /** Looks for 1 to 20 quotes in one page and waits for the answer. The same input gets the same answer for a day. */
  checkQuotes(input: { source_url: string; quotes: string[] }, options?: CallOptions): Promise<QuoteCheck>
  /** Waits for the answer to a check. */
  getQuoteCheck(input: { check_id: string }, options?: CallOptions): Promise<QuoteCheck>
}
