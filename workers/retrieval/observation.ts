// Makes one observation of a source: fetches the page, extracts its text and states both in the interface's terms.
import { randomUUID } from 'node:crypto'
import { LIMITS } from '../../server/interface/limits.ts'
import { type Observation, observation } from '../../server/interface/observation.ts'
import type { Outbound } from '../../server/outbound/connection.ts'
import type { Lane, Threads } from '../../server/threads/pool.ts'
import { inSpan } from '../../server/tracing/spans.ts'
import { extractText } from '../text/page/extraction.ts'
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
}

/**
 * Observes one URL. Throws AppError `source_...` when there is nothing to observe and OriginBusyError when it is not
 * this job's turn, and a ThreadError when no thread becomes free. An observation that breaks the interface's schema throws
 * too, before anything is charged.
 */
export async function observeSource(
  url: string,
  tools: Observing,
  { signal, jobKey = randomUUID(), lane }: Visit,
): Promise<Observation> {
  // Held until the text is read, because the body is in memory while it waits for a thread.
  using memory = tools.bodies?.open(signal)
  const host = { 'http.request.method': 'GET', 'server.address': new URL(url).hostname }
  const fetched = await inSpan('GET', { kind: 'client', attributes: host }, () =>
    fetchInTurn(url, tools, { signal, memory, jobKey, lane }),
  )
  const { body, contentEncoding, contentType } = fetched
  const read = await inSpan('text.extract', {}, () =>
    extractText(tools.threads, { body, contentEncoding, contentType }, { signal, lane }),
  )
  return observation.parse({
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
}

/** The turn at the origin ends with the last byte; text extraction does not count as a visit. */
async function fetchInTurn(
  url: string,
  { outbound, origins }: Observing,
  { signal, memory, jobKey, lane }: Visit & { jobKey: string; memory: HeldMemory | undefined },
) {
  await using hops = origins?.openHops(jobKey, signal, lane)
  return await fetchSource(url, outbound, { signal, ...(hops && { hops }), ...(memory && { memory }) })
}
