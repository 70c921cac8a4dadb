// Cancellation of a request by its caller, as long as no work has been done for it (see `cancelRequest`).
import type { Api } from '../context.ts'
import { transact } from '../db/pool.ts'
import { cancelRequest } from './request.ts'

/** The caller must have checked the recovery token. A request that has come too far is not changed. */
export async function withdrawRequest(id: string, api: Api): Promise<void> {
  if (!(await transact(api.db, (tx) => cancelRequest(tx, id, api.config.maxInFlightPerPayer)))) return
  api.metrics.moves.inc({ state: 'failed' })
  api.metrics.failures.inc({ code: 'cancelled' })
  api.log.info({ event: 'verification_failed', request_id: id, code: 'cancelled' })
}
