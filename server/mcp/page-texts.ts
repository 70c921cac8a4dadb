// The texts of checked pages, by which the page for chat hosts proves each quote. They are in the metadata of an answer, which hosts
// show to no model: a few as they are, the others as addresses to read. The id in an address cannot be guessed.
import { z } from 'zod'
import { findPageText, type QuoteCheckResult } from '../quotes/quote-check.ts'
import type { LinkedResource } from './resources.ts'
import type { CallToolResult, ToolCall } from './tool.ts'

/** Member of `_meta` in results: a list of PageText. */
const PAGE_TEXTS = 'service/page-texts'

/** UTF-16 units of the texts that one answer holds: those of the longest page, in any script. */
const MAX_UNITS = 200_000

const ADDRESS = 'service://page-texts/'

/** A finished check of one page. */
export interface AnsweredCheck {
  id: string
  answer: QuoteCheckResult
}

interface PageText {
  /** Of the text in UTF-8. */
  text_sha256: string
  /** Reads it, as long as the check is kept. */
  uri: string
  /** Left out where the answer would become too long. */
  text?: string
}

/** The result with the texts of the pages, each once. */
export async function withPageTexts(
  result: CallToolResult,
  checks: readonly AnsweredCheck[],
  { api }: Pick<ToolCall, 'api'>,
): Promise<CallToolResult> {
  const byDigest = new Map(checks.map((check) => [check.answer.source.text_sha256, check]))
  const texts: PageText[] = []
  let left = MAX_UNITS
  for (const [text_sha256, { id }] of byDigest) {
    const entry = { text_sha256, uri: ADDRESS + id }
    const text = left > 0 ? await findPageText(api.db, id) : null
    if (text === null || text.length > left) texts.push(entry)
    else {
      left -= text.length
      texts.push({ ...entry, text })
    }
  }
  return texts.length === 0 ? result : { ...result, _meta: { ...result._meta, [PAGE_TEXTS]: texts } }
}

export const pageTextResource: LinkedResource = {
  mimeType: 'text/plain',
  async read(uri, { api }) {
    const id = uri.startsWith(ADDRESS) ? uri.slice(ADDRESS.length) : ''
    return z.uuid().safeParse(id).success ? findPageText(api.db, id) : null
  },
}
