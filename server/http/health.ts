// Whether the process lives (/healthz), whether it can do its work (/readyz), and how it does (/metrics). No page in a browser
// may read these, and however often they are asked, the database is asked about once a second.
import { timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { measurePruneLag } from '../accounts/pruning.ts'
import { alertPruneLag } from '../alerts/outbox.ts'
import type { Api } from '../context.ts'
import { pendingMigrations } from '../db/migrate.ts'
import { sql } from '../db/pool.ts'
import { singleFlight } from '../db/single-flight.ts'
import { findHead } from '../receipts/head.ts'
import { measurePruneLag as measureRequestLag } from '../verification/pruning.ts'

const KEEP_MS = 1000

export function mountHealth(app: FastifyInstance, api: Api) {
  const readiness = singleFlight(() => checkReadiness(api), KEEP_MS)
  const gauges = singleFlight(() => measureQueue(api), KEEP_MS)
  if (!api.config.operatorToken && isLive(api))
    api.log.warn({ event: 'metrics_closed', reason: 'OPERATOR_TOKEN is not set' })

  app.get('/healthz', { config: { operation: 'healthz', cors: false } }, async () => ({ status: 'ok' }))

  app.get('/readyz', { config: { operation: 'readyz', cors: false } }, async (_request, reply) => {
    const draining: Check = api.draining.aborted ? { ok: false, detail: 'shutting down' } : { ok: true }
    const checks = { process: draining, ...(await readiness()) }
    const ready = Object.values(checks).every((check) => check.ok)
    return reply
      .code(ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ status: ready ? 'ready' : 'not_ready', checks })
  })

  const limited = (request: FastifyRequest) => api.limits.spend(request.ip)
  app.get('/metrics', { config: { operation: 'metrics', cors: false }, onRequest: limited }, async (request, reply) => {
    const { operatorToken: token } = api.config
    if (!token && isLive(api)) return reply.code(404).send('Metrics are closed here: OPERATOR_TOKEN is not set.\n')
    if (token && !isBearer(request.headers.authorization, token))
      return reply.code(401).header('www-authenticate', 'Bearer').send('The operator token is needed.\n')
    await gauges()
    return reply.type(api.metrics.registry.contentType).send(await api.metrics.registry.metrics())
  })
}

function isLive({ config }: Api): boolean {
  return config.paymentMode !== 'offline'
}

type Check = { ok: boolean; detail?: string }

async function checkReadiness(api: Api): Promise<Record<string, Check>> {
  try {
    const pending = await pendingMigrations(async () => [
      ...(await api.db.any(sql.type(z.object({ name: z.string() }))`select name from schema_migrations`)),
    ])
    const keys = await api.db.oneFirst(sql.type(z.object({ n: z.number() }))`
      select count(*) n from signing_keys where use = 'receipt' and status = 'active'`)
    return {
      database: { ok: true },
      migrations: pending.length === 0 ? { ok: true } : { ok: false, detail: `pending: ${pending.join(', ')}` },
      keys: keys === 1 ? { ok: true } : { ok: false, detail: 'no active receipt key' },
    }
  } catch (error) {
    api.log.warn({ event: 'not_ready', err: error })
    return { database: { ok: false, detail: 'does not answer, or is not migrated' } }
  }
}

function isBearer(header: string | undefined, token: string): boolean {
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
  for (const { table, seconds } of await measurePruneLag(db)) metrics.pruneLag.set({ table }, seconds)
  metrics.pruneLag.set({ table: 'alerts' }, await alertPruneLag(db))
  metrics.pruneLag.set({ table: 'verification_requests' }, await measureRequestLag(db, config.resultRetentionSeconds))
  metrics.chainSerial.set((await findHead(db)).serial)
}
