// Requests taken back by their callers. Only for as long as nothing has been spent on one (see cancelRequest).
import type { Api } from '../context.ts'
import { transact } from '../db/pool.ts'
import { cancelRequest } from './request.ts'

/** Whoever calls this has seen the request's recovery token. Does nothing to a request that has come too far. */
export async function withdrawRequest(id: string, api: Api): Promise<void> {
  if (!(await transact(api.db, (tx) => cancelRequest(tx, id, api.config.maxInFlightPerPayer)))) return
  api.metrics.moves.inc({ state: 'failed' })
  api.metrics.failures.inc({ code: 'cancelled' })
  api.log.info({ event: 'verification_failed', request_id: id, code: 'cancelled' })
}
