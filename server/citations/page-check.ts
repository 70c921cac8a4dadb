// Reads a page again and looks for a watched quote in its text. Where the quote is gone, finds the passage most like it.
import { literalAssessor } from '../../workers/assessment/literal.ts'
import type { ObservationCache } from '../../workers/retrieval/cache.ts'
import { type Observing, observeSource } from '../../workers/retrieval/observation.ts'
import { codePointIndex } from '../../workers/text/offsets.ts'
import type { Observation } from '../interface/observation.ts'
import { sha256 } from '../receipts/format.ts'
import { type Check, type CitationWatch, type Nearest, watchJob } from './watch.ts'

/** What a page is read and searched with. */
export interface PageTools extends Observing {
  cache: ObservationCache
}

/** Age in seconds of an observation that is used instead of a new one: a page is often watched for several quotes. */
const MAX_AGE_SECONDS = 60

/** Throws AppError `source_...` when the page cannot be read, OriginBusyError while its origin has no turn for this check. */
export async function checkPage(watch: CitationWatch, tools: PageTools, signal: AbortSignal): Promise<Check> {
  const jobKey = watchJob(watch.id).key
  const url = watch.source_url
  const visit = () => observeSource(url, tools, signal, jobKey)
  const { observation } = await tools.cache.observe(url, MAX_AGE_SECONDS, visit, signal)
  const { content_sha256, text_sha256, normalized_text: text } = observation.source
  const seen = { checked_at: observation.checked_at, content_sha256, text_sha256 }
  const place = placeOf(watch.quote, text, watch.last_seen.start)
  if (place) return { outcome: 'present', ...seen, ...place }
  const nearest = await findNearest(watch.quote, observation, tools, signal)
  return nearest ? { outcome: 'changed', ...seen, nearest } : { outcome: 'vanished', ...seen }
}

/** Where the quote is, in code points. Of several places, the one closest to where it was before. */
export function placeOf(quote: string, text: string, formerStart: number): { start: number; end: number } | null {
  const index = codePointIndex(text)
  const former = index.toUtf16(Math.min(formerStart, index.length))
  const before = text.lastIndexOf(quote, former)
  const after = text.indexOf(quote, former)
  if (before < 0 && after < 0) return null
  const found = before >= 0 && (after < 0 || former - before <= after - former) ? before : after
  return { start: index.toCodePoint(found), end: index.toCodePoint(found + quote.length) }
}

/** A passage less similar than this is another passage, not a changed quote. */
const MIN_SIMILARITY = 0.5

async function findNearest(
  quote: string,
  observation: Observation,
  { threads }: Pick<PageTools, 'threads'>,
  signal: AbortSignal,
) {
  const { evidence } = await literalAssessor(threads).assess({ claim: quote, observation, signal })
  const passages = evidence.map((item): Nearest => {
    const { quote: passage, start, end } = item
    return { quote: passage, quote_sha256: sha256(passage), start, end, similarity: similarityOf(quote, passage) }
  })
  const [best] = passages.sort((a, b) => b.similarity - a.similarity)
  return best && best.similarity >= MIN_SIMILARITY ? best : null
}

/** Dice's coefficient (0 to 1) over words and pairs of neighbouring words, so that the words and their order count. */
export function similarityOf(one: string, other: string): number {
  const [a, b] = [countGrams(one), countGrams(other)]
  let common = 0
  for (const [gram, count] of a) common += Math.min(count, b.get(gram) ?? 0)
  const total = sum(a) + sum(b)
  return total === 0 ? 0 : Math.round((2000 * common) / total) / 1000
}

function countGrams(text: string): Map<string, number> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  const grams = new Map<string, number>()
  for (const [n, word] of words.entries())
    for (const gram of n === 0 ? [word] : [word, `${words[n - 1]} ${word}`]) grams.set(gram, (grams.get(gram) ?? 0) + 1)
  return grams
}

const sum = (grams: Map<string, number>) => [...grams.values()].reduce((total, count) => total + count, 0)
