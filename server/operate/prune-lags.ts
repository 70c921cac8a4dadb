// The prune lag of every pruned table: for how long rows have been due for deletion.
import { measurePruneLag } from '../accounts/pruning.ts'
import { alertPruneLag } from '../alerts/outbox.ts'
import type { Config } from '../config.ts'
import type { Database } from '../db/pool.ts'
import { measureCaptureLag } from '../evidence/pruning.ts'
import { measureLedgerLag } from '../payments/ledger.ts'
import { measurePruneLag as measureRequestLag } from '../verification/pruning.ts'

export interface PruneLag {
  table: string
  /** Seconds for which the oldest row has been due; 0 for a table without one. */
  seconds: number
}

/**
 * @param config `resultRetentionSeconds` decides when results are due, `capture.retentionSeconds` when captures are
 * @param options `isMigrated`: the database has the tables of this release; by default it has
 */
export async function measurePruneLags(
  db: Database,
  { resultRetentionSeconds, capture }: Pick<Config, 'resultRetentionSeconds' | 'capture'>,
  { isMigrated = true }: { isMigrated?: boolean } = {},
): Promise<PruneLag[]> {
  return [
    ...(await measurePruneLag(db)),
    { table: 'alerts', seconds: await alertPruneLag(db) },
    { table: 'verification_requests', seconds: await measureRequestLag(db, resultRetentionSeconds) },
    ...(isMigrated ? [{ table: 'captures', seconds: await measureCaptureLag(db, capture.retentionSeconds) }] : []),
    { table: 'payment_ledger', seconds: await measureLedgerLag(db) },
  ]
}
