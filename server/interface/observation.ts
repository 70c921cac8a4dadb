// One observation of a source: the part of a result that later claims on the same page may share.
import { z } from 'zod'
import { limits, riskFlags, source, sourceIdentity } from './result.ts'
import { timestamp } from './scalars.ts'

export const observation = z.strictObject({
  /** The result's `source` without `requested_url`, which belongs to the request. */
  source: source.omit({ requested_url: true }),
  source_identity: sourceIdentity,
  limits,
  risk_flags: riskFlags,
  /** When the final response was received, by the worker's clock. */
  checked_at: timestamp,
  /** Names the retrieval and normalization procedure; becomes part of `methodology_version`. */
  procedure: z.string().min(1).max(128),
})
export type Observation = z.output<typeof observation>
