// Readiness: whether a web process could serve. `/readyz` answers it, and each web process probes itself for the record.
import type { Core } from '../context.ts'
import { findPendingMigrations } from '../db/migrate.ts'
import { hasActiveReceiptKey } from '../receipts/keys.ts'

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

export async function isReady(core: Pick<Core, 'db' | 'log'>): Promise<boolean> {
  return Object.values(await checkReadiness(core)).every(({ ok }) => ok)
}
