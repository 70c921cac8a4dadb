// How much of its tier an account uses. Each number is counted by the feature that enforces its limit.
import { z } from 'zod'
import { countApiKeys } from '../accounts/api-keys.ts'
import { countAskedAlerts } from '../alerts/daily-allowance.ts'
import { countWatches } from '../citations/watch.ts'
import type { Tx } from '../db/pool.ts'
import { measureSlots } from '../journal/slots.ts'
import { countActiveLeases } from '../leases/lease.ts'
import { countPagesToday, countPending } from '../quotes/quote-check.ts'
import { findDay } from '../receipts/days.ts'
import { countWatchdogs } from '../watchdogs/watchdog.ts'

export const usage = z.strictObject({
  active_leases: z.int(),
  lease_acts_today: z.int(),
  receipts_today: z.int(),
  watchdogs: z.int(),
  watchdog_alerts_today: z.int(),
  citation_watches: z.int(),
  quote_check_pages_today: z.int(),
  quote_checks_in_flight: z.int(),
  journal_slots: z.int(),
  journal_bytes: z.int(),
  api_keys: z.int(),
})

/** `resetsAt`: the next UTC midnight in RFC 3339. @param nowMs the clock that leases are signed by, in ms since the epoch */
export async function findUsage(
  tx: Tx,
  accountId: string,
  nowMs: number,
): Promise<{ used: z.output<typeof usage>; resetsAt: string }> {
  const day = await findDay(tx, accountId)
  const journal = await measureSlots(tx, accountId)
  const used = {
    active_leases: (await countActiveLeases(tx, [accountId], nowMs)).get(accountId) ?? 0,
    lease_acts_today: day.lease_acts,
    receipts_today: day.receipts,
    watchdogs: await countWatchdogs(tx, accountId),
    watchdog_alerts_today: await countAskedAlerts(tx, accountId),
    citation_watches: await countWatches(tx, accountId),
    quote_check_pages_today: await countPagesToday(tx, accountId),
    quote_checks_in_flight: await countPending(tx, accountId),
    journal_slots: journal.slots,
    journal_bytes: journal.bytes,
    api_keys: await countApiKeys(tx, accountId),
  }
  return { used, resetsAt: day.resets_at }
}
