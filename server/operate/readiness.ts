// Readiness: whether a web process could serve. `/readyz` answers it, and each web process probes itself for the
// statistics.
import type { Core } from '../context.ts'
import { findPendingMigrations } from '../db/migrate.ts'
import { hasActiveReceiptKey } from '../receipts/keys.ts'
import { openNotes } from './warning-log.ts'

export type Check = { ok: boolean; detail?: string }

/** Database, migrations and keys. Never rejects: a database that does not answer is a check that is not ok. */
export async function checkReadiness({ db, log }: Pick<Core, 'db' | 'log'>): Promise<Record<string, Check>> {
  try {
    const pending = await findPendingMigrations(db)
    const signs = await hasActiveReceiptKey(db)
    return {
      database: { ok: true },
      migrations: pending.length === 0 ? { ok: true } : { ok: false, detail: `pending: ${pending.join(', ')}` },
      keys: signs ? { ok: true } : { ok: false, detail: 'no active receipt key' },
    }
  } catch (error) {
    log.warn({ event: 'not_ready', err: error })
    return { database: { ok: false, detail: 'does not answer, or is not migrated' } }
  }
}

/**
 * A probe of readiness for a process that serves. While the disk of the database is full nothing can be bought, so the probe fails;
 * `/readyz` does not say so, because such a process still serves what was bought. Missing migrations or keys are logged as the warning `not_ready`; the
 * outage of the database logs a database that is away.
 */
export function buildProbe(core: Pick<Core, 'db' | 'log' | 'room'>): () => Promise<boolean> {
  const note = openNotes(core.log)
  return async () => {
    const { database, ...others } = await checkReadiness(core)
    if (!database?.ok) return false
    const failed = Object.entries(others).filter(([, { ok }]) => !ok)
    const what = failed.map(([name, { detail }]) => `${name}: ${detail}`).join('; ')
    note(failed.length > 0 ? [{ name: 'not_ready', what, cure: 'run `npm run cli -- migrate`' }] : [])
    return failed.length === 0 && !core.room.isFull
  }
}
