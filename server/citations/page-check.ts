// Reads a page again and looks for a watched quote in its text. If the quote is gone, it finds the most similar passage.
import type { ObservationCache } from '../../workers/retrieval/cache.ts'
import { type Observing, observeSource } from '../../workers/retrieval/observation.ts'
import { findQuotes } from '../../workers/text/quotes.ts'
import type { Core } from '../context.ts'
import { sha256 } from '../receipts/format.ts'
import { freeLane } from '../verification/lane.ts'
import { type Check, type CitationWatch, watchJob } from './watch.ts'

/** The tools to read and search a page. */
export interface PageTools extends Observing {
  cache: ObservationCache
  config: Pick<Core['config'], 'fixtures'>
}

/** Age in seconds of an observation that is used instead of a new one: a page is often watched for several quotes. */
const MAX_AGE_SECONDS = 60

/** Throws AppError `source_...` when the page cannot be read, OriginBusyError while its origin has no turn for this check. */
export async function checkPage(watch: CitationWatch, tools: PageTools, signal: AbortSignal): Promise<Check> {
  const jobKey = watchJob(watch.id).key
  const url = watch.source_url
  const lane = freeLane(watch.account_id, url, tools)
  const visit = () => observeSource(url, tools, { signal, jobKey, lane })
  const { observation } = await tools.cache.observe(url, MAX_AGE_SECONDS, visit, signal)
  const { content_sha256, text_sha256, normalized_text: text } = observation.source
  const seen = { checked_at: observation.checked_at, content_sha256, text_sha256 }
  const quotes = [{ quote: watch.quote, near: watch.last_seen.start }]
  const [found] = await findQuotes(tools.threads, { text, quotes }, { signal, lane })
  if (!found || found.match === 'absent') return { outcome: 'vanished', ...seen }
  const { text: quote, start, end, similarity } = found.passage
  // A watch compares with the exact bought quote: another spelling is a change too.
  if (found.match === 'exact') return { outcome: 'present', ...seen, start, end }
  return { outcome: 'changed', ...seen, nearest: { quote, quote_sha256: sha256(quote), start, end, similarity } }
}
