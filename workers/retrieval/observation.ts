// One observation of a source: fetched, read, and written down in the interface's terms.

import type { Outbound } from '../../server/outbound/connection.ts'
import { type Observation, observation } from '../../server/verification/observation.ts'
import { LIMITS } from '../../server/verification/result.ts'
import { extractText } from '../text/extraction.ts'
import type { Threads } from '../threads.ts'
import { fetchSource } from './fetch.ts'
import { OBSERVATION_PROCEDURE } from './procedure.ts'

/**
 * Observes one URL. Throws AppError `source_...` when there is nothing to observe; a result that is not of the
 * interface's form is a fault of ours and throws too, before anything is paid.
 */
export async function observeSource(
  url: string,
  tools: { outbound: Outbound; threads: Threads },
  signal: AbortSignal,
): Promise<Observation> {
  const fetched = await fetchSource(url, tools.outbound, { signal })
  const { body, contentEncoding, contentType } = fetched
  const read = await extractText(tools.threads, { body, contentEncoding, contentType }, { signal })
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
