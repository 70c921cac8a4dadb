// Whether the process lives (/healthz), whether it can do its work (/readyz), and how it does (/metrics).
import { timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Api } from '../context.ts'
import { pendingMigrations } from '../db/migrate.ts'
import { sql } from '../db/pool.ts'
import { findHead } from '../receipts/chain.ts'
import { measurePruneLag } from '../verification/pruning.ts'

export function mountHealth(app: FastifyInstance, api: Api) {
  app.get('/healthz', { config: { operation: 'healthz' } }, async () => ({ status: 'ok' }))

  app.get('/readyz', { config: { operation: 'readyz' } }, async (_request, reply) => {
    const checks = await checkReadiness(api)
    const ready = Object.values(checks).every((check) => check.ok)
    return reply
      .code(ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ status: ready ? 'ready' : 'not_ready', checks })
  })

  app.get('/metrics', { config: { operation: 'metrics' } }, async (request, reply) => {
    if (!mayReadMetrics(request.headers.authorization, api.config.operatorToken))
      return reply.code(401).header('www-authenticate', 'Bearer').send('The operator token is needed.\n')
    await measureQueue(api)
    return reply.type(api.metrics.registry.contentType).send(await api.metrics.registry.metrics())
  })
}

type Check = { ok: boolean; detail?: string }

async function checkReadiness(api: Api): Promise<Record<string, Check>> {
  const draining: Check = api.draining.aborted ? { ok: false, detail: 'shutting down' } : { ok: true }
  try {
    const pending = await pendingMigrations(async () => [
      ...(await api.db.any(sql.type(z.object({ name: z.string() }))`select name from schema_migrations`)),
    ])
    const keys = await api.db.oneFirst(sql.type(z.object({ n: z.number() }))`
      select count(*) n from signing_keys where use = 'receipt' and status = 'active'`)
    return {
      process: draining,
      database: { ok: true },
      migrations: pending.length === 0 ? { ok: true } : { ok: false, detail: `pending: ${pending.join(', ')}` },
      keys: keys === 1 ? { ok: true } : { ok: false, detail: 'no active receipt key' },
    }
  } catch (error) {
    api.log.warn({ event: 'not_ready', err: error })
    return { process: draining, database: { ok: false, detail: 'does not answer, or is not migrated' } }
  }
}

function mayReadMetrics(header: string | undefined, token: string | undefined): boolean {
  if (!token) return true
  const given = Buffer.from(header?.match(/^bearer +(.+)$/i)?.[1] ?? '')
  const expected = Buffer.from(token)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** Gauges that are the database's to know are read when they are asked for. */
async function measureQueue({ db, metrics, config }: Api) {
  const work = await db.one(sql.type(z.object({ n: z.number(), oldest: z.number() }))`
    select count(*) n, coalesce(extract(epoch from now() - min(changed_at)), 0)::float8 oldest
    from verification_requests where state in ('accepted', 'observed', 'assessed', 'settling', 'settled')`)
  metrics.working.set(work.n)
  metrics.oldestWorkingSeconds.set(work.oldest)
  const scanned = sql.type(z.object({ age: z.number() }))`
    select extract(epoch from now() - seen_at)::float8 age from watchdog_scans`
  metrics.watchdogScanAge.set(await db.oneFirst(scanned))
  metrics.pruneLag.set(await measurePruneLag(db, config.resultRetentionSeconds))
  metrics.chainSerial.set((await findHead(db)).serial)
}
