// Makes one observation of a source: fetches the page, extracts its text and states both in the interface's terms.
import { randomUUID } from 'node:crypto'
import { LIMITS } from '../../server/interface/limits.ts'
import { type Observation, observation } from '../../server/interface/observation.ts'
import type { Outbound } from '../../server/outbound/connection.ts'
import type { Lane, Threads } from '../../server/threads/pool.ts'
import { inSpan } from '../../server/tracing/spans.ts'
import { extractText } from '../text/page/extraction.ts'
import type { Observed } from './cache.ts'
import type { CaptureDigests, CapturedHop } from './capture.ts'
import { fetchSource } from './fetch.ts'
import type { BodyMemory, HeldMemory } from './memory.ts'
import type { Origins } from './origins.ts'
import { OBSERVATION_PROCEDURE } from './procedure.ts'

/** The tools that make an observation. */
export interface Observing {
  outbound: Outbound
  threads: Threads
  /** Turns at the origins. Without them the page is fetched at once. */
  origins?: Origins
  /** Limits the memory of all page bodies. */
  bodies?: BodyMemory
}

/** One reading of a page. */
export interface Visit {
  signal: AbortSignal
  /** The job that observes. */
  jobKey?: string
  /** For whom it observes. */
  lane?: Lane
  /** Keeps every hop as it crossed the connection; null where it was not kept. Without it nothing is recorded. */
  keep?: ((hops: readonly CapturedHop[]) => Promise<CaptureDigests | null>) | undefined
}

/**
 * Observes one URL. Throws AppError `source_...` when there is nothing to observe and OriginBusyError when it is not
 * this job's turn, and a ThreadError when no thread becomes free. An observation that breaks the interface's schema throws
 * too, before anything is charged.
 */
export async function observeSource(
  url: string,
  tools: Observing,
  { signal, jobKey = randomUUID(), lane, keep }: Visit,
): Promise<Observed> {
  // Held until the text is read, because the body is in memory while it waits for a thread.
  using memory = tools.bodies?.open(signal)
  const host = { 'http.request.method': 'GET', 'server.address': new URL(url).hostname }
  const fetched = await inSpan('GET', { kind: 'client', attributes: host }, () =>
    fetchInTurn(url, tools, { signal, memory, jobKey, lane, capture: keep !== undefined }),
  )
  const { body, contentEncoding, contentType } = fetched
  const read = await inSpan('text.extract', {}, () =>
    extractText(tools.threads, { body, contentEncoding, contentType }, { signal, lane }),
  )
  const observed = observation.parse({
    source: {
      final_url: fetched.finalUrl,
      http_status: 200,
      content_type: contentType,
      content_sha256: read.contentSha256,
      text_sha256: read.textSha256,
      normalized_text: read.text,
      offset_unit: 'unicode_codepoint',
      redirects: fetched.redirects,
      wire_bytes: fetched.wireBytes,
      decoded_bytes: read.decodedBytes,
    },
    source_identity: { hostname: fetched.hostname, tls_verified: fetched.tlsVerified, publisher_identity: 'unknown' },
    limits: fetched.limits,
    risk_flags: [...new Set<string>([...fetched.riskFlags, ...read.riskFlags])].sort().slice(0, LIMITS.riskFlags),
    checked_at: fetched.checkedAt.toISOString(),
    procedure: OBSERVATION_PROCEDURE,
  } satisfies Observation)
  // After the text was read: of a page that cannot be read nothing is kept.
  const capture = keep && fetched.capture ? await keep(fetched.capture) : null
  return capture ? { ...observed, capture } : observed
}

/** The turn at the origin ends with the last byte; text extraction does not count as a visit. */
async function fetchInTurn(
  url: string,
  { outbound, origins }: Observing,
  {
    signal,
    memory,
    jobKey,
    lane,
    capture,
  }: Omit<Visit, 'keep'> & { jobKey: string; memory: HeldMemory | undefined; capture: boolean },
) {
  await using hops = origins?.openHops(jobKey, signal, lane)
  return await fetchSource(url, outbound, { signal, capture, ...(hops && { hops }), ...(memory && { memory }) })
}
