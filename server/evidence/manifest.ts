// The manifest of a capture: the digests of everything that an evidence package proves, in the exact bytes that the chain has a receipt of.
import type { CaptureDigests } from '../../workers/retrieval/capture.ts'
import type { UnsignedClaimsResult } from '../interface/claims.ts'
import type { Observation } from '../interface/observation.ts'
import type { UnsignedResult } from '../interface/result.ts'
import { canonicalJson, sha256 } from '../receipts/format.ts'

/** `requested_by` of the receipts of manifests. The chain is public, so it names the service's role and no page. */
export const CAPTURE_REQUESTED_BY = 'source-capture'

/**
 * RFC 8785 JSON of the manifest. It belongs to the observation; the request names only the first result that was made of it.
 * @param resultSha256 `result_sha256` of that result's envelope
 */
export function composeManifest(
  { hops, connections_sha256, certificates_sha256 }: CaptureDigests,
  { source: { requested_url, ...source }, source_identity, limits, checked_at }: UnsignedResult | UnsignedClaimsResult,
  { procedure }: Pick<Observation, 'procedure'>,
  resultSha256: string,
): Buffer {
  const shared = canonicalJson({ source, source_identity, limits, checked_at })
  return Buffer.from(
    canonicalJson({
      type: 'countersign.source-capture',
      version: 1,
      requested_url,
      final_url: source.final_url,
      checked_at,
      extraction: procedure,
      hops,
      connections_sha256,
      certificates_sha256,
      content_sha256: source.content_sha256,
      text_sha256: source.text_sha256,
      wire_bytes: source.wire_bytes,
      decoded_bytes: source.decoded_bytes,
      observation_sha256: sha256(shared),
      result_sha256: resultSha256,
    }),
  )
}
