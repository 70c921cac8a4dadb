// The warnings of the status in the log: when one begins, then at growing intervals, and when it is over. The process that has run
// for longest writes them for all.
import type { Config } from '../config.ts'
import { every } from '../db/interval.ts'
import type { Database } from '../db/pool.ts'
import type { Logger } from '../telemetry.ts'
import { listProcesses, type Presence } from './presence.ts'
import { readWarnings } from './status.ts'
import type { Warning } from './warnings.ts'

const CHECK_MS = 15_000
/**
 * Milliseconds after which a continuing warning is logged again: the first pause, which doubles each time, and the
 * longest pause.
 */
const REMINDERS_MS = [60_000, 3_600_000] as const

interface Tools {
  db: Database
  log: Logger
  config: Pick<Config, 'resultRetentionSeconds' | 'capture'>
}

/** Checks until disposed. While the database is away it reads nothing, and the outage is in the log. */
export function openWarningLog({ db, log, config }: Tools, presence: Pick<Presence, 'id'>): AsyncDisposable {
  const note = openNotes(log)
  const check = async () => {
    const eldest = (await listProcesses(db)).find(({ alive }) => alive)
    if (eldest?.id === presence.id) note(await readWarnings(db, config))
  }
  return every(CHECK_MS, check, (error) => log.warn({ event: 'warnings_unread', err: error }))
}

/**
 * Logs what changed since the call before: `warning`, `warning_remains`, `warning_over`.
 * @param now milliseconds of a monotonic clock
 */
export function openNotes(log: Logger, now: () => number = () => performance.now()): (warnings: Warning[]) => void {
  const known = new Map<string, { since: number; remindAt: number }>()
  return (warnings) => {
    const byName = Map.groupBy(warnings, ({ name }) => name)
    for (const [name, all] of byName) {
      const line = { warning: name, what: all.map(({ what }) => what).join('; '), cure: all[0]?.cure }
      const one = known.get(name)
      if (!one) {
        known.set(name, { since: now(), remindAt: now() + REMINDERS_MS[0] })
        log.warn({ event: 'warning', ...line })
      } else if (now() >= one.remindAt) {
        one.remindAt = now() + Math.min(now() - one.since, REMINDERS_MS[1])
        log.warn({ event: 'warning_remains', ...line, seconds: secondsSince(one.since) })
      }
    }
    for (const [name, { since }] of known) {
      if (byName.has(name)) continue
      known.delete(name)
      log.info({ event: 'warning_over', warning: name, seconds: secondsSince(since) })
    }
  }

  function secondsSince(since: number): number {
    return Math.round((now() - since) / 1000)
  }
}
