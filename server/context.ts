// The parts of the processes, opened in order and closed in reverse. Nothing is made at import. Tests open the same parts.
import { createSecretKey, type KeyObject } from 'node:crypto'
import { hostname } from 'node:os'
import type { Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { type CallerCache, openCallerCache } from './accounts/authentication.ts'
import { buildRateLimits, type RateLimits } from './accounts/rate-limit.ts'
import { ADDRESS_LIMITS, CALLER_LIMITS } from './accounts/tiers.ts'
import { openBillingProvider } from './billing/configured-provider.ts'
import type { BillingProvider } from './billing/provider.ts'
import type { Config } from './config.ts'
import type { Batcher } from './db/batch.ts'
import { type ChangeListener, openChangeListener } from './db/change-events.ts'
import { type AvailabilityChange, type Database, openDatabase } from './db/pool.ts'
import { isStorageFull } from './errors.ts'
import { openSlotReads, type SlotReads } from './journal/slots.ts'
import type { Presence } from './operate/presence.ts'
import { openOfflineFacilitator } from './payments/facilitators/offline-facilitator.ts'
import { type BindingReads, openBindingReads } from './payments/known-payments.ts'
import type { Facilitator } from './payments/x402.ts'
import { checkTail } from './receipts/audit.ts'
import { type Chain, openChain } from './receipts/chain.ts'
import { logOrigin } from './receipts/checkpoint.ts'
import { deriveSecret, keptSeed } from './receipts/keys.ts'
import { openReader, type Reader } from './receipts/reader.ts'
import { openVerifier, type Verifier } from './receipts/signatures.ts'
import { type HeldKeys, openSigner } from './receipts/signer.ts'
import { openWitnessing } from './receipts/witnessing.ts'
import { type Logger, type Metrics, openLog, openMetrics, openOutage } from './telemetry.ts'
import { openThreads, type Threads } from './threads/pool.ts'
import { NO_TRACING, type Tracing } from './tracing/spans.ts'
import { type Admission, type Admitted, openAdmissions } from './verification/admission/admission.ts'
import { buildQueueWait, type QueueWait } from './verification/admission/queue-wait.ts'
import { openSeats, type Seats } from './verification/admission/waiting-seats.ts'
import { type KeyReads, openKeyReads } from './verification/lookup.ts'
import { type Assessors, buildAssessors } from './verification/offer/assessors.ts'
import { type Heartbeats, openHeartbeats } from './watchdogs/heartbeats.ts'
import { openIntakeClock } from './watchdogs/intake-clock.ts'

/** The parts that the API process and the worker process share. */
export interface Core extends AsyncDisposable {
  config: Config
  log: Logger
  metrics: Metrics
  /** Begins the spans of calls and jobs. */
  tracing: Tracing
  databaseUrl: string
  /** The URL of the database without a pooler, for sessions that listen or hold a lock. */
  directUrl: string
  db: Database
  /** Read it at each use: whether the disk of the database was full at the last writes of this process. */
  room: { isFull: boolean }
  /** Milliseconds since the epoch. */
  now: () => number
  chain: Chain
  /** Read them at each use, because a rotation changes them. */
  keys: HeldKeys
  facilitator: Facilitator
  /** Threads that continue after this core is closed. If they are given, its parts use them and open no threads. */
  threads: Threads | undefined
  /** Undefined where no provider bills subscriptions. */
  billing: BillingProvider | undefined
  /** Shared counts and observations; undefined without REDIS_URL. */
  redis: Redis | undefined
  secrets: {
    /** Recovery tokens are derived from it. */
    recovery: KeyObject
    /** Encrypts stored payment payloads. */
    payload: KeyObject
    /** Encrypts captures. */
    capture: KeyObject
    /** Encrypts cached observations. */
    observation: Buffer
    /** Secrets of webhooks are derived from it. */
    webhook: KeyObject
    /** Keys the digests under which callers' addresses are counted. */
    address: KeyObject
    /** Sessions of the operator's dashboard are signed with a key from it. */
    operator: KeyObject
  }
}

/** Values that tests and `npm start` replace. */
export interface Overrides {
  log?: Logger
  metrics?: Metrics
  now?: () => number
  facilitator?: Facilitator
  threads?: Threads
  maxConnections?: number
  /** Longest wait of a call for a database connection, in milliseconds; default: without limit. */
  acquireTimeoutMs?: number
}

/** Opens database, keys, chain and facilitator. Throws with the reason when one of them cannot be used. */
export async function openCore(config: Config, databaseUrl: string, overrides: Overrides = {}): Promise<Core> {
  await using opened = new AsyncDisposableStack()
  const log = overrides.log ?? openLog(config.logLevel, undefined, config.logFormat)
  const now = overrides.now ?? Date.now
  // Closed last, so that it exports what the others do until they are closed.
  const tracing = opened.use(await openTracing(config, log))
  const seed = config.signingSeed ?? keptSeed(config.dataDir)
  const room: Core['room'] = { isFull: false }
  const reportRoom = reportDatabase(log, 'room of the database')
  const db = await openDatabase(databaseUrl, {
    maxConnections: overrides.maxConnections ?? config.databaseConnections,
    pooled: config.databaseDirectUrl !== undefined,
    // The history of a request names it.
    name: `${hostname()}:${process.pid}`,
    ...(overrides.acquireTimeoutMs !== undefined && { acquireTimeoutMs: overrides.acquireTimeoutMs }),
    onChange: reportDatabase(log, 'database'),
    onRoom: (change) => {
      room.isFull = change.away && isStorageFull(change.reason)
      reportRoom(change)
    },
  })
  opened.defer(() => db.end())
  db.on('error', (error) => log.error({ event: 'database_error', err: error }))
  const signer = await openSigner(db, seed)
  await checkTail(db)
  const chain = opened.use(openChain(db, signer, { origin: logOrigin(config.baseUrl), now }))
  const metrics = overrides.metrics ?? openMetrics({ process: true })
  const facilitator = opened.use(
    overrides.facilitator ?? (await openFacilitator(config, log, { threads: overrides.threads, metrics })),
  )
  const billing = await openBillingProvider({
    config,
    db,
    log,
    now,
    secret: deriveSecret(seed, 'simulated checkout'),
  })
  const redis = config.redisUrl ? (await import('./redis.ts')).openRedis(config.redisUrl, log) : undefined
  if (redis) opened.defer(() => redis.disconnect())
  const closing = opened.move()
  return {
    config,
    log,
    metrics,
    tracing,
    databaseUrl,
    directUrl: config.databaseDirectUrl ?? databaseUrl,
    db,
    room,
    now,
    chain,
    keys: signer.held,
    facilitator,
    threads: overrides.threads,
    billing,
    redis,
    secrets: {
      // Key objects, because crypto would make one from raw bytes at each use, at ten times the cost.
      recovery: createSecretKey(deriveSecret(seed, 'recovery token')),
      payload: createSecretKey(deriveSecret(seed, 'payment payload')),
      capture: createSecretKey(deriveSecret(seed, 'capture')),
      observation: deriveSecret(seed, 'observation'),
      webhook: createSecretKey(deriveSecret(seed, 'webhook secret')),
      address: createSecretKey(deriveSecret(seed, 'caller address')),
      operator: createSecretKey(deriveSecret(seed, 'operator session')),
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/**
 * Logs that the database is away or has no space. The errors that follow from this have level `debug` (see
 * telemetry.ts).
 */
function reportDatabase(log: Logger, dependency: string) {
  const outage = openOutage(log, dependency)
  return (change: AvailabilityChange) => (change.away ? outage.failed(change.reason) : outage.worked())
}

/** OpenTelemetry's SDK is loaded only where traces are exported. */
async function openTracing({ tracing }: Config, log: Logger): Promise<Tracing> {
  if (!tracing) return NO_TRACING
  const { openExport } = await import('./tracing/exporter.ts')
  return openExport(tracing, log)
}

async function openFacilitator(
  config: Config,
  log: Logger,
  tools: { threads: Threads | undefined; metrics: Metrics },
): Promise<Facilitator> {
  if (config.paymentMode === 'offline')
    return openOfflineFacilitator({ payTo: config.payToEvm, threads: tools.threads })
  const { openLiveFacilitator } = await import('./payments/facilitators/live-setup.ts')
  return openLiveFacilitator(config, log, tools)
}

/** A completed result as it is served. */
export interface ServedResult {
  bytes: Buffer
  settlementHeader: string | null
  /** Kept because deriving the token again would be the most expensive part of serving the result. */
  recoveryToken: string
  expiresAt: number
}

/** The parts of the API process. */
export interface Api extends Core {
  /** Undefined if this process does not record its presence. */
  presence: Presence | undefined
  limits: RateLimits
  callers: CallerCache
  /** Limit calls that wait for a result. */
  seats: Seats
  admissions: Batcher<Admission, Admitted>
  heartbeats: Heartbeats
  /** Reads the chain for callers. */
  reader: Reader
  verifier: Verifier
  /** Threads that parse what callers send and build evidence packages, and the places of the parsing there. */
  parsing: { threads: Threads; ofAddress: Seats; ofNetwork: Seats }
  slots: SlotReads
  keyReads: KeyReads
  bindingReads: BindingReads
  changeEvents: ChangeListener
  /** Whether a live worker can assess by the method that is offered. */
  assessors: Assessors
  queueWait: QueueWait
  /** Results never change, so a cached one is valid until it expires. */
  results: LRUCache<string, ServedResult>
  /** Public address; set when the server listens, where BASE_URL is not set. */
  baseUrl: string
  /** Aborts when the process is asked to stop: calls that wait are answered at once. */
  draining: AbortSignal
  drain(): void
}

const RESULT_CACHE_BYTES = 64 * 1024 * 1024
/** Bytes of memory for the objects around a result and its cache entry. */
const RESULT_OVERHEAD_BYTES = 600

/** The limit counts all memory that it uses, on the heap and outside it. */
export function openResultCache(): LRUCache<string, ServedResult> {
  return new LRUCache({
    maxSize: RESULT_CACHE_BYTES,
    sizeCalculation: ({ bytes, settlementHeader, recoveryToken }) =>
      bytes.length + (settlementHeader?.length ?? 0) + recoveryToken.length + RESULT_OVERHEAD_BYTES,
  })
}

/** Half of the threads are kept for what is done quickly. */
const PARSING = { minThreads: 0, maxThreads: 2, maxWaiting: 64, quickMs: 500 } as const

export async function openApi(core: Core, presence?: Presence): Promise<Api> {
  await using opened = new AsyncDisposableStack()
  const admissions = opened.use(openAdmissions(core.db, core.config.maxInFlightPerPayer))
  const heartbeats = opened.use(openHeartbeats(core.db))
  opened.use(await openIntakeClock(core.db, core.log))
  const reader = opened.use(openReader(core.db))
  const verifier = opened.use(openVerifier())
  const parsers = core.threads ?? opened.use(openThreads(PARSING))
  const slots = opened.use(openSlotReads(core.db))
  const keyReads = opened.use(openKeyReads(core.db))
  const bindingReads = opened.use(openBindingReads(core.db))
  const changeEvents = opened.use(openChangeListener(core.directUrl, core.log))
  if (core.config.witnesses.length > 0) opened.use(openWitnessing(core.db, core.config.witnesses, core.log))
  const callers = await openCallerCache(core.db)
  const sharedCounts = core.redis && (await import('./redis.ts')).redisCounts(core.redis)
  const draining = new AbortController()
  const closing = opened.move()
  const api: Api = {
    ...core,
    presence,
    limits: buildRateLimits(core.config.rateLimitPerMinute, sharedCounts),
    callers,
    seats: openSeats({ each: CALLER_LIMITS.waiting_calls, all: CALLER_LIMITS.waiting_calls_per_process }),
    admissions,
    heartbeats,
    reader,
    verifier,
    parsing: {
      threads: parsers,
      ofAddress: openSeats({ each: ADDRESS_LIMITS.readings_in_flight, all: Number.POSITIVE_INFINITY }),
      ofNetwork: openSeats({ each: ADDRESS_LIMITS.readings_in_flight_per_network, all: Number.POSITIVE_INFINITY }),
    },
    slots,
    keyReads,
    bindingReads,
    changeEvents,
    queueWait: buildQueueWait({
      db: () => api.db,
      maxSeconds: core.config.maxQueueSeconds,
      quoteTtlSeconds: core.config.quoteTtlSeconds,
      hasWorker: () => api.assessors.hasWorker(),
    }),
    assessors: buildAssessors({ db: () => api.db, log: core.log, offered: core.config.assessment.kind }),
    results: openResultCache(),
    baseUrl: core.config.baseUrl ?? `http://${core.config.host}:${core.config.port}`,
    draining: draining.signal,
    drain: () => draining.abort(),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
  return api
}
