// Observes a sample: its text comes with the service and goes through the reading of every page. No
// address leads here, and nothing here leads to the network.

import { OBSERVATION_PROCEDURE } from '../../workers/retrieval/procedure.ts'
import { extractText } from '../../workers/text/page/extraction.ts'
import { AppError } from '../errors.ts'
import { LIMITS } from '../interface/limits.ts'
import type { Observation } from '../interface/observation.ts'
import type { Lane } from '../threads/pool.ts'
import type { VerificationTools } from '../verification/stages/stage-tools.ts'
import { findSample } from './samples.ts'

/** @param url of the page that shows the sample. Throws what the reading of a page throws */
export async function observeSample(
  name: string,
  url: string,
  { threads, now }: Pick<VerificationTools, 'threads' | 'now'>,
  options: { signal: AbortSignal; lane: Lane },
): Promise<Observation> {
  const sample = findSample(name)
  // Another release had it.
  if (!sample) throw new AppError('source_not_found', 'The service has no such sample any more.')
  const contentType = 'text/plain; charset=utf-8'
  const body = new Uint8Array(Buffer.from(sample.paragraphs.join('\n\n')))
  const bytes = body.byteLength
  const read = await extractText(threads, { body, contentEncoding: 'identity', contentType }, options)
  return {
    source: {
      final_url: url,
      http_status: 200,
      content_type: contentType,
      content_sha256: read.contentSha256,
      text_sha256: read.textSha256,
      normalized_text: read.text,
      offset_unit: 'unicode_codepoint',
      redirects: [],
      wire_bytes: bytes,
      decoded_bytes: read.decodedBytes,
    },
    source_identity: { hostname: new URL(url).hostname, tls_verified: false, publisher_identity: 'unknown' },
    limits: { max_text_chars: LIMITS.textChars },
    risk_flags: read.riskFlags.slice(0, LIMITS.riskFlags),
    checked_at: new Date(now()).toISOString(),
    procedure: OBSERVATION_PROCEDURE,
  }
}
