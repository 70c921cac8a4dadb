// The evidence package of a result, fetched with its recovery token.
import { CountersignError } from '../client.ts'
import type { PurchaseResult } from '../result.ts'
import { openClient } from './patience.ts'

/** Throws a CountersignError, with the status 404 where the service has no package of this result. Pays nothing. */
export async function fetchEvidence(
  baseUrl: string,
  { request_id, verification_type }: Pick<PurchaseResult, 'request_id' | 'verification_type'>,
  recoveryToken: string,
): Promise<Uint8Array> {
  const service = openClient({ baseUrl })
  const { data } = await (verification_type === 'source_claims'
    ? service.getClaimsEvidence({ request_id }, { recoveryToken })
    : service.getEvidence({ request_id }, { recoveryToken }))
  return data
}

/** Whether there is no package, and never will be: none was kept, or it was dropped. */
export function isWithoutEvidence(error: unknown): boolean {
  return error instanceof CountersignError && (error.status === 404 || error.status === 410)
}
