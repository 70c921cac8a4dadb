// The pages about the state of the service: /status shows what works now and in the last 90 days, and /accuracy how well it
// assesses.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import { singleFlight } from '../db/single-flight.ts'
import { STORAGE_FULL } from '../errors.ts'
import { countJobs } from '../operate/jobs.ts'
import type { Check } from '../operate/readiness.ts'
import { readDays } from '../operate/roll-ups.ts'
import { findAccuracy, findOthers } from '../pages/accuracy/accuracy.ts'
import { accuracyPage } from '../pages/accuracy/accuracy-page.ts'
import { openSite } from '../pages/layout.ts'
import { DAYS, type Status, statusPage } from '../pages/status-page.ts'
import { configuredMethodologies } from '../verification/offer/methodology.ts'
import { describeOffer } from '../verification/offer/offer.ts'
import { sendPage } from './page-answers.ts'

/** Milliseconds for which results are reused: the current state, and the days. */
const KEEP_MS = 1000
const KEEP_DAYS_MS = 15_000

export function mountStatus(app: FastifyInstance, api: Api, readiness: () => Promise<Record<string, Check>>) {
  const page = (operation: string) => ({
    config: { operation },
    onRequest: (request: FastifyRequest) => api.limits.spend(request.ip),
  })
  const now = singleFlight(() => readNow(api, readiness), KEEP_MS)
  const days = singleFlight(() => readDays(api.db, DAYS), KEEP_DAYS_MS)
  app.get('/status', page('status_page'), async (_request, reply) => {
    const status = { ...(await now()), days: await days().catch(() => null) }
    return sendPage(reply, statusPage(await openSite(api), status))
  })
  app.get('/accuracy', page('accuracy_page'), async (_request, reply) => {
    const { config } = api
    const inForce = { assessment: describeOffer(config).assessment, methodologies: configuredMethodologies(config) }
    return sendPage(reply, accuracyPage(await openSite(api), await findAccuracy(), inForce, await findOthers()))
  })
}

async function readNow(api: Api, readiness: () => Promise<Record<string, Check>>): Promise<Omit<Status, 'days'>> {
  const { isFull } = api.room
  const checks = { ...(await readiness()), storage: { ok: !isFull } }
  const { closed } = describeOffer(api.config)
  const refusal =
    closed ?? (isFull ? STORAGE_FULL : null) ?? (await api.assessors.requireOne().then(() => null, refusalOf))
  return { at: api.now(), checks, refusal, work: await readWork(api).catch(() => null) }
}

/** The message that a buyer would get. A database that does not answer has its own line. */
function refusalOf(error: unknown): string {
  return error instanceof Error && 'code' in error && error.code === 'provider_unavailable'
    ? error.message
    : 'It is not known whether a worker would take the work.'
}

async function readWork({ db, assessors }: Api): Promise<Status['work']> {
  const { due, oldest_seconds } = await countJobs(db)
  return { workers: await assessors.hasWorker(), due, oldest_seconds }
}
