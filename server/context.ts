// What the processes are made of: opened in order, closed in reverse, nothing made at import. Tests open the same.
import { createSecretKey, type KeyObject } from 'node:crypto'
import { Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { type KnownCallers, openKnownCallers } from './accounts/api-keys.ts'
import { buildRateLimits, type RateLimits } from './accounts/rate-limit.ts'
import { CALLER_LIMITS } from './accounts/tiers.ts'
import { openBillingProvider } from './billing/choice.ts'
import type { BillingProvider } from './billing/provider.ts'
import type { Config } from './config.ts'
import type { Batcher } from './db/batch.ts'
import { openWaiting, type Waiting } from './db/change-events.ts'
import { type Database, openDatabase } from './db/pool.ts'
import { openSlotReads, type SlotReads } from './journal/slots.ts'
import { openOfflineFacilitator } from './payments/offline-facilitator.ts'
import type { Facilitator } from './payments/x402.ts'
import { checkTail } from './receipts/audit.ts'
import { type Chain, openChain } from './receipts/chain.ts'
import { logOrigin } from './receipts/checkpoint.ts'
import { deriveSecret, keptSeed } from './receipts/keys.ts'
import { openReader, type Reader } from './receipts/reader.ts'
import { type HeldKeys, openSigner } from './receipts/signer.ts'
import { openVerifier, type Verifier } from './receipts/verifier.ts'
import { openWitnessing } from './receipts/witness.ts'
import { type Logger, type Metrics, openLog, openMetrics } from './telemetry.ts'
import { type Admission, type Admitted, openAdmissions } from './verification/admission.ts'
import { type Assessors, buildAssessors } from './verification/assessors.ts'
import { openSeats, type Seats } from './verification/waiting-seats.ts'
import { type Heartbeats, openHeartbeats } from './watchdogs/heartbeats.ts'
import { openAttendance } from './watchdogs/intake-clock.ts'

/** Shared by the API and the worker process. */
export interface Core extends AsyncDisposable {
  config: Config
  log: Logger
  metrics: Metrics
  databaseUrl: string
  db: Database
  /** Milliseconds since the epoch. */
  now: () => number
  chain: Chain
  /** To be looked up at each use: a rotation changes them. */
  keys: HeldKeys
  facilitator: Facilitator
  /** Who bills subscriptions; undefined where nobody does. */
  billing: BillingProvider | undefined
  /** Shared counts and observations; undefined when none is configured. */
  redis: Redis | undefined
  secrets: {
    /** Recovery tokens are made from it. */
    recovery: KeyObject
    /** Seals payment payloads at rest. */
    payload: KeyObject
    /** Seals cached observations. */
    observation: Buffer
    /** Secrets of webhooks are made from it. */
    webhook: KeyObject
    /** Keys the digests under which callers' addresses are counted. */
    address: KeyObject
  }
}

/** What tests and the one-process start put in the place of the real thing. */
export interface Overrides {
  log?: Logger
  now?: () => number
  facilitator?: Facilitator
  maxConnections?: number
}

const DEFAULT_CONNECTIONS = 10

/** Opens database, keys, chain and facilitator. Throws with the reason when one of them is not fit to start with. */
export async function openCore(config: Config, databaseUrl: string, overrides: Overrides = {}): Promise<Core> {
  await using opened = new AsyncDisposableStack()
  const log = overrides.log ?? openLog(config.logLevel)
  const now = overrides.now ?? Date.now
  const seed = config.signingSeed ?? keptSeed(config.dataDir)
  const db = await openDatabase(databaseUrl, { maxConnections: overrides.maxConnections ?? DEFAULT_CONNECTIONS })
  opened.defer(() => db.end())
  db.on('error', (error) => log.error({ event: 'database_error', err: error }))
  const signer = await openSigner(db, seed)
  await checkTail(db)
  const chain = opened.use(openChain(db, signer, { origin: logOrigin(config.baseUrl), now }))
  const facilitator = opened.use(overrides.facilitator ?? (await openFacilitator(config, log)))
  const billing = await openBillingProvider({
    config,
    db,
    log,
    now,
    secret: deriveSecret(seed, 'simulated checkout'),
  })
  const redis = config.redisUrl ? openRedis(config.redisUrl, log) : undefined
  if (redis) opened.defer(() => redis.disconnect())
  const closing = opened.move()
  return {
    config,
    log,
    metrics: openMetrics({ process: true }),
    databaseUrl,
    db,
    now,
    chain,
    keys: signer.held,
    facilitator,
    billing,
    redis,
    secrets: {
      // Made once: from raw bytes every use would make them anew, at ten times the cost.
      recovery: createSecretKey(deriveSecret(seed, 'recovery token')),
      payload: createSecretKey(deriveSecret(seed, 'payment payload')),
      observation: deriveSecret(seed, 'observation'),
      webhook: createSecretKey(deriveSecret(seed, 'webhook secret')),
      address: createSecretKey(deriveSecret(seed, 'caller address')),
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

async function openFacilitator(config: Config, log: Logger): Promise<Facilitator> {
  if (config.paymentMode === 'offline') return openOfflineFacilitator({ payTo: config.payToEvm })
  const { openLiveFacilitator } = await import('./payments/live-setup.ts')
  return openLiveFacilitator(config, log)
}

/** A completed result as it is served. */
export interface ServedResult {
  bytes: Buffer
  settlementHeader: string | null
  /** Kept with it: making the token anew would be the dearest part of serving the result. */
  recoveryToken: string
  expiresAt: number
}

/** What answering callers takes, beside the core. */
export interface Api extends Core {
  limits: RateLimits
  /** What is known of API keys. */
  callers: KnownCallers
  /** For calls that wait for a result. */
  seats: Seats
  admissions: Batcher<Admission, Admitted>
  heartbeats: Heartbeats
  /** The chain as callers read it. */
  reader: Reader
  verifier: Verifier
  slots: SlotReads
  waiting: Waiting
  /** Whether any worker can assess, and as it is offered. */
  assessors: Assessors
  /** Results never change, so what was read once need not be read again until it expires. */
  results: LRUCache<string, ServedResult>
  /** Where callers find us; set once the address is known. */
  baseUrl: string
  /** Aborts when the process is told to stop: whoever is being held back is answered at once. */
  draining: AbortSignal
  drain(): void
}

const RESULT_CACHE_BYTES = 64 * 1024 * 1024

export async function openApi(core: Core): Promise<Api> {
  await using opened = new AsyncDisposableStack()
  const admissions = opened.use(openAdmissions(core.db, core.config.maxInFlightPerPayer))
  const heartbeats = opened.use(openHeartbeats(core.db))
  opened.use(await openAttendance(core.db, core.log))
  const reader = opened.use(openReader(core.db))
  const verifier = opened.use(openVerifier())
  const slots = opened.use(openSlotReads(core.db))
  const waiting = opened.use(openWaiting(core.databaseUrl, core.log))
  if (core.config.witnesses.length > 0) opened.use(openWitnessing(core.db, core.config.witnesses, core.log))
  const callers = await openKnownCallers(core.db)
  const draining = new AbortController()
  const closing = opened.move()
  const api: Api = {
    ...core,
    limits: buildRateLimits(core.config.rateLimitPerMinute, core.redis),
    callers,
    seats: openSeats({ each: CALLER_LIMITS.waiting_calls, all: CALLER_LIMITS.waiting_calls_per_process }),
    admissions,
    heartbeats,
    reader,
    verifier,
    slots,
    waiting,
    assessors: buildAssessors({ db: () => api.db, log: core.log, offered: core.config.assessment.kind }),
    results: new LRUCache({ maxSize: RESULT_CACHE_BYTES, sizeCalculation: (result) => result.bytes.length + 200 }),
    baseUrl: core.config.baseUrl ?? `http://${core.config.host}:${core.config.port}`,
    draining: draining.signal,
    drain: () => draining.abort(),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
  return api
}

function openRedis(url: string, log: Logger): Redis {
  // A request must not hang on a Redis that is away: commands fail at once and the limiter counts by itself.
  const redis = new Redis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1, connectTimeout: 5000 })
  redis.on('error', (error) => log.warn({ event: 'redis_error', err: error }))
  return redis
}
