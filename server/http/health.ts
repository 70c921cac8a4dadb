// Liveness (/healthz), readiness (/readyz) and metrics (/metrics). Pages in browsers may not read them. However often they are
// called, the database is queried at most once a second.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import { singleFlight } from '../db/single-flight.ts'
import { measureCaptures } from '../evidence/store.ts'
import { addFigures, readFigures, renderFigures, renderOwnFigures, takeFigures } from '../operate/figures.ts'
import { countJobs } from '../operate/jobs.ts'
import { listProcesses, processKinds } from '../operate/presence.ts'
import { measurePruneLags } from '../operate/prune-lags.ts'
import { type Check, checkReadiness } from '../operate/readiness.ts'
import { within } from '../payments/timeout.ts'
import { findHead } from '../receipts/head.ts'
import { findFailingAuthorities } from '../receipts/timestamping.ts'
import { measureBacklog } from '../verification/lookup.ts'
import { measureScanAge } from '../watchdogs/intake-clock.ts'
import { isOperatorToken } from './operator-session.ts'

/** Milliseconds for which a result is reused. */
const KEEP_MS = 1000

/** The state of this process for `/readyz` and `/status`: its probes by name, and whether it is shutting down. */
export function openReadiness(api: Api): () => Promise<Record<string, Check>> {
  const probes = singleFlight(async () => ({ ...(await checkReadiness(api)), ...(await checkVerifier(api)) }), KEEP_MS)
  return async () => {
    const draining: Check = api.draining.aborted ? { ok: false, detail: 'shutting down' } : { ok: true }
    return { process: draining, ...(await probes()) }
  }
}

/** Only for the local verifier, which is always there a moment after the start: until then nothing is sold. */
async function checkVerifier({ assessors, config }: Api): Promise<Record<string, Check>> {
  if (config.assessment.kind !== 'local') return {}
  const pause = await assessors.pause().catch(() => null)
  return { verifier: pause ? { ok: false, detail: pause.reason } : { ok: true } }
}

export function mountHealth(app: FastifyInstance, api: Api, readiness: () => Promise<Record<string, Check>>) {
  const figures = singleFlight(() => readMetrics(api), KEEP_MS)
  if (!api.config.operatorToken && isPublic(api))
    api.log.warn({ event: 'metrics_closed', reason: 'OPERATOR_TOKEN is not set' })

  app.get('/healthz', { config: { operation: 'healthz', cors: false } }, async () => ({ status: 'ok' }))

  app.get('/readyz', { config: { operation: 'readyz', cors: false } }, async (_request, reply) => {
    const { assessors } = api
    const [checks, hasWorker, problems] = await Promise.all([
      readiness(),
      within(WARNING_MS, assessors.hasWorker()),
      within(
        WARNING_MS,
        assessors.problems().catch(() => []),
      ),
    ])
    const ready = Object.values(checks).every((check) => check.ok)
    // Without a worker or a model this process can still serve callers what they bought, so it stays ready.
    const warnings = [
      ...(ready && hasWorker === false ? [NO_WORKER] : []),
      ...(ready && api.config.assessment.kind === 'semantic'
        ? (problems ?? []).map((one) => `${MODEL_AWAY} ${one}.`)
        : []),
    ]
    return reply
      .code(ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ status: ready ? 'ready' : 'not_ready', checks, warnings })
  })

  const limited = (request: FastifyRequest) => api.limits.spend(request.ip)
  app.get('/metrics', { config: { operation: 'metrics', cors: false }, onRequest: limited }, async (request, reply) => {
    const { operatorToken: token } = api.config
    if (!token && isPublic(api)) return reply.code(404).send('Metrics are closed here: OPERATOR_TOKEN is not set.\n')
    if (token && !isOperatorToken(givenToken(request), token))
      return reply
        .code(401)
        .header('www-authenticate', 'Bearer')
        .send('Send the operator token as Authorization: Bearer.\n')
    return reply.type(api.metrics.registry.contentType).send(await figures())
  })
}

/** Longest wait in milliseconds for the data of a warning. */
const WARNING_MS = 500
const MODEL_AWAY = 'The model that assesses does not answer:'
const NO_WORKER = 'No worker is alive: paid verifications wait for one.'

function isPublic({ config }: Api): boolean {
  return config.paymentMode !== 'offline' || config.offlinePublic
}

/** An operator's token may have any characters. */
function givenToken({ headers }: FastifyRequest): string {
  return headers.authorization?.match(/^bearer +(.+)$/i)?.[1] ?? ''
}

/**
 * The metrics of all processes, as text for Prometheus. While the database is away, only metrics of this process, without
 * sums: a sum without the other processes would look like a counter reset.
 */
async function readMetrics(api: Api): Promise<string> {
  try {
    await api.presence?.publish()
    const published = await readFigures(api.db)
    await measureDatabase(api)
    // A process without presence has no other processes to add; tests open such processes.
    const own = api.presence ? [] : [await takeFigures(api.metrics)]
    return await renderFigures(await addFigures([published, ...own]), api.metrics)
  } catch (error) {
    api.log.warn({ event: 'metrics_incomplete', err: error })
    return renderOwnFigures(api.metrics, api.presence?.label ?? 'web')
  }
}

/** Sets the gauges whose values are in the database. */
async function measureDatabase({ db, metrics, config }: Api) {
  metrics.databaseUp.set(1)
  const living = (await listProcesses(db)).filter(({ alive }) => alive)
  for (const kind of processKinds) metrics.processes.set({ kind }, living.filter((one) => one.kind === kind).length)
  metrics.processesDrained.set(living.filter(({ drain }) => drain !== null).length)
  const { oldest_seconds, ...jobs } = await countJobs(db)
  for (const [state, count] of Object.entries(jobs)) metrics.queueJobs.set({ state }, count)
  metrics.queueOldestSeconds.set(oldest_seconds)
  const backlog = await measureBacklog(db)
  metrics.working.set(backlog.count)
  metrics.oldestWorkingSeconds.set(backlog.oldestSeconds)
  metrics.watchdogScanAge.set(await measureScanAge(db))
  for (const { table, seconds } of await measurePruneLags(db, config)) metrics.pruneLag.set({ table }, seconds)
  const captures = await measureCaptures(db)
  metrics.captureBytes.set(captures.bytes)
  metrics.captureRows.set(captures.rows)
  metrics.captureMaxBytes.set(config.capture.enabled ? config.capture.maxBytes : 0)
  metrics.failingAuthorities.set((await findFailingAuthorities(db)).length)
  metrics.chainSerial.set((await findHead(db)).serial)
}
