// Pruning in a running system, whose worker prunes too, each full minute.
import { pruneRequests } from '../server/verification/pruning.ts'
import type { System } from './system.ts'

const RETENTION_SECONDS = 86_400

/**
 * Prunes until a request that is due has lost its contents, or its row. One run is not enough: it skips a row that the
 * worker's own run holds, and finds none that the worker's run has pruned.
 */
export async function pruneRequest(
  { service, sql }: System,
  id: string | undefined,
  until: 'emptied' | 'deleted' = 'emptied',
): Promise<void> {
  for (;;) {
    await pruneRequests(service.api.db, RETENTION_SECONDS)
    const [row] = await sql('select body from verification_requests where id = $1', [id])
    if (!row || (until === 'emptied' && row.body === null)) return
  }
}
