// The limit of alerts of an account and day. Each alert costs a receipt and a row, and callers can cause them at will.
import { z } from 'zod'
import { LIMITS, secondsToMidnightUtc, TIERS } from '../accounts/tiers.ts'
import { column, nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'

/**
 * `asked`: caused by the account (a `fail` heartbeat, a test, a reminder), limited by `watchdog_alerts_per_day`.
 * `found`: found by the service (a missed deadline, a quote that changed). Its limit is what all watchdogs of the account can
 * reach within their own allowances, so only accounts that delete and make watchdogs again and again reach it.
 */
export type AlertCause = 'asked' | 'found'

export interface CountedAlert {
  accountId: string
  cause: AlertCause
}

/**
 * Outages of one watchdog that are alerted: OUTAGE_BURST at once, and one more every OUTAGE_SPACING_SECONDS. Each has two
 * alerts, because the end of an outage that was alerted is always alerted too.
 */
export const OUTAGE_BURST = 12
export const OUTAGE_SPACING_SECONDS = 300
const OUTAGES_PER_DAY = OUTAGE_BURST + 86_400 / OUTAGE_SPACING_SECONDS

const today = sql.fragment`(now() at time zone 'utc')::date`

const dayRow = z.object({
  id: z.string(),
  tier: z.enum(TIERS),
  watchdogs: z.number(),
  asked: z.number(),
  found: z.number(),
})

/**
 * Counts alerts, as far as the limits of the day allow; null is an alert that is not counted. Answers for each whether it may
 * be made. To be called under the lock of the chain's head, so that no other transaction counts meanwhile.
 */
export async function countAlerts(tx: Tx, alerts: readonly (CountedAlert | null)[]): Promise<boolean[]> {
  const counted = alerts.filter((alert) => alert !== null)
  if (counted.length === 0) return alerts.map(() => true)
  const days = new Map((await findDays(tx, counted)).map((row) => [row.id, row]))
  const admitted: CountedAlert[] = []
  const answers = alerts.map((alert) => {
    if (!alert) return true
    const day = days.get(alert.accountId)
    if (!day || day[alert.cause] >= limitOf(day, alert.cause)) return false
    day[alert.cause]++
    admitted.push(alert)
    return true
  })
  await addToDays(tx, admitted)
  return answers
}

function limitOf({ tier, watchdogs }: z.output<typeof dayRow>, cause: AlertCause): number {
  const limits = LIMITS[tier]
  // After a higher tier ends, its watchdogs stay, with their allowances.
  return cause === 'asked' ? limits.watchdog_alerts_per_day : OUTAGES_PER_DAY * Math.max(limits.watchdogs, watchdogs)
}

function findDays(tx: Tx, counted: Pick<CountedAlert, 'accountId'>[]) {
  return tx.any(sql.prepared('find_alert_days', dayRow)`
    select a.id::text, a.tier, coalesce(d.asked, 0) asked, coalesce(d.found, 0) found,
           (select count(*) from watchdogs w where w.account_id = a.id) watchdogs
    from accounts a left join alert_days d on d.account_id = a.id and d.day = ${today}
    where a.id = any(${column(counted, 'uuid', ({ accountId }) => accountId)})`)
}

/** The account's alerts of this UTC day that its own acts caused. */
export async function countAskedAlerts(tx: Tx, accountId: string): Promise<number> {
  const [day] = await findDays(tx, [{ accountId }])
  return day?.asked ?? 0
}

async function addToDays(tx: Tx, counted: CountedAlert[]) {
  if (counted.length === 0) return
  await tx.query(sql.prepared('count_alerts', nothing)`
    insert into alert_days as d (day, account_id, asked, found)
    select ${today}, account_id, count(*) filter (where cause = 'asked'), count(*) filter (where cause = 'found')
    from unnest(${column(counted, 'uuid', ({ accountId }) => accountId)}, ${column(counted, 'text', ({ cause }) => cause)})
      as t (account_id, cause)
    group by account_id
    on conflict (day, account_id) do update set asked = d.asked + excluded.asked, found = d.found + excluded.found`)
}

/** The error of a test alert when the limit of the day is reached. */
export function noAlertsLeft(): AppError {
  return new AppError('daily_limit', 'watchdog_alerts_per_day: the account has used up its alerts of this day (UTC).', {
    headers: { 'retry-after': String(secondsToMidnightUtc(new Date())) },
  })
}
