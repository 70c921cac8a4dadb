// The context of the worker process, in addition to the core: threads, outbound connections, the assessor, and the batchers
// that its jobs share.
import { randomUUID } from 'node:crypto'
import type { Core } from '../server/context.ts'
import { type Batcher, openBatcher } from '../server/db/batch.ts'
import { openChangeNotifier } from '../server/db/change-events.ts'
import { type Captures, openCaptures } from '../server/evidence/store.ts'
import { assessment } from '../server/interface/assessment.ts'
import { type Outbound, openOutbound } from '../server/outbound/connection.ts'
import { openTimestamping } from '../server/receipts/timestamping.ts'
import { openThreads, type Threads } from '../server/threads/pool.ts'
import { type Claim, type Claims, claimRequests } from '../server/verification/request.ts'
import { buildCompletions, type Completions } from '../server/verification/stages/completion.ts'
import { openSlowWork, type SlowWork } from '../server/verification/stages/slow-work.ts'
import { type Step, type StepOutcome, type Steps, writeSteps } from '../server/verification/stages/steps.ts'
import type { Assessor } from './assessment/assessor.ts'
import { chooseAssessor, openConfiguredVerifier } from './assessment/choice.ts'
import type { LocalAssessor } from './assessment/local.ts'
import { buildObservationCache, type ObservationCache } from './retrieval/cache.ts'
import { type BodyMemory, buildBodyMemory } from './retrieval/memory.ts'
import { postgresObservations } from './retrieval/observation-store-postgres.ts'
import { redisObservations } from './retrieval/observation-store-redis.ts'
import { buildOrigins, type OriginLimits, type Origins } from './retrieval/origins.ts'
import { gatedProcedure, OBSERVATION_PROCEDURE } from './retrieval/procedure.ts'

export interface Work extends Core {
  id: WorkerId
  liveness: Liveness
  threads: Threads
  outbound: Outbound
  cache: ObservationCache
  origins: Origins
  /** Limits the page bodies in memory. */
  bodies: BodyMemory
  slowWork: SlowWork
  /** Keeps what a page was made of; undefined where nothing is kept. */
  captures: Captures | undefined
  assessor: Assessor
  claims: Claims
  steps: Steps
  completions: Completions
  /** Announces the ids of requests that were completed or failed. */
  changeEvents: Batcher<string, void>
  /** Seconds that a settlement usually takes; its result is that much older when it is served. */
  settleSeconds: number
  /** The `methodology_version` of this worker's results. */
  methodology: string
}

const MAX_STEPS = 128
/** Most pages take a few dozen milliseconds. A page that takes longer must not keep others waiting. */
const QUICK_MS = 500
/** Page bodies of all fetches of a process: about two dozen of the maximal size. */
const BODY_BYTES = 96 * 1024 * 1024
/** Two blocks of the slower chain. */
const LIVE_SETTLE_SECONDS = 4

/** Values that tests and the demo replace. */
export interface WorkOverrides {
  /** That of `openConfiguredVerifier`, opened before and closed after this by the caller. */
  verifier?: LocalAssessor | undefined
  assessor?: Assessor
  originLimits?: OriginLimits
  /** Milliseconds after which a fetch, or a settlement, leaves its job. */
  slowMs?: number
}

export async function openWork(core: Core, overrides: WorkOverrides = {}): Promise<Work> {
  await using opened = new AsyncDisposableStack()
  const id = makeWorkerId()
  const onLoss = (error: unknown) => core.log.error({ event: 'thread_lost', err: error })
  const threads = core.threads ?? opened.use(openThreads({ quickMs: QUICK_MS, onLoss }))
  const outbound = opened.use(
    openOutbound({ fixtures: core.config.fixtures, userAgent: userAgent(core.config.baseUrl) }),
  )
  const store = core.redis ? redisObservations(core.redis) : postgresObservations(core.db)
  const cache = buildObservationCache(store, {
    secret: core.secrets.observation,
    log: core.log,
    now: core.now,
    makeId: id.make,
  })
  const assessor =
    overrides.assessor ??
    (await chooseAssessor(core, threads, overrides.verifier ?? opened.use(openConfiguredVerifier(core))))
  const steps = opened.use(
    openBatcher<Step, StepOutcome>((batch) => writeSteps(core.db, batch, core.config.maxInFlightPerPayer), {
      batch: MAX_STEPS,
      queue: 4096,
    }),
  )
  const claims = opened.use(openBatcher((batch: Claim[]) => claimRequests(core.db, batch), { batch: 64, queue: 4096 }))
  const changeEvents = opened.use(openChangeNotifier(core.db, core.log))
  const origins = opened.use(buildOrigins(core.db, { limits: overrides.originLimits, log: core.log, makeId: id.make }))
  const slowWork = opened.use(
    openSlowWork({
      db: core.db,
      log: core.log,
      room: core.config.workerFetches,
      ...(overrides.slowMs !== undefined && { slowMs: overrides.slowMs }),
    }),
  )
  const { timestamps } = core.config
  if (timestamps) opened.use(openTimestamping({ ...core, config: { ...core.config, timestamps } }))
  const { db, log, metrics, config, secrets } = core
  const captures = config.capture.enabled
    ? opened.use(openCaptures({ db, log, metrics, key: secrets.capture, maxBytes: config.capture.maxBytes }))
    : undefined
  const closing = opened.move()
  return {
    ...core,
    id,
    liveness: openLiveness(),
    threads,
    outbound,
    cache,
    origins,
    bodies: buildBodyMemory(BODY_BYTES),
    slowWork,
    captures,
    assessor,
    claims,
    steps,
    completions: buildCompletions(core.config.maxInFlightPerPayer),
    changeEvents,
    settleSeconds: core.config.paymentMode === 'offline' ? 0 : LIVE_SETTLE_SECONDS,
    methodology: methodologyOf(assessor),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** Throws if the procedure is too long for a result, so that this fails at the start and not in a request. */
function methodologyOf({ procedure }: Assessor): string {
  const gated = gatedProcedure(procedure)
  const fits = assessment.shape.procedure.safeParse(gated).success
  if (!fits) throw new Error(`the name of the assessor's procedure is too long for a result: ${gated}`)
  return `${OBSERVATION_PROCEDURE} ${gated}`
}

/** Names the service and the address at which its operator can be reached. */
function userAgent(baseUrl: string | undefined) {
  return `Countersign-Source-Verification/1.0${baseUrl ? ` (+${baseUrl}/)` : ''}`
}

/** Characters of a UUID that name the worker: the first 60 random bits. */
const LENGTH = 18

/**
 * The identity of a worker process. The ids of what it holds (attempts, visits to origins, turns to fetch a page) begin with its
 * prefix, so a worker that rescues it can find them.
 */
export interface WorkerId {
  /** The common beginning of its ids. */
  readonly prefix: string
  /** A new UUID, which begins with the prefix. */
  make(): string
}

export function makeWorkerId(): WorkerId {
  const prefix = randomUUID().slice(0, LENGTH)
  return { prefix, make: () => prefix + randomUUID().slice(LENGTH) }
}

/** The lowest and the highest id of a worker. */
export function idsOf(prefix: string): { from: string; to: string } {
  return { from: `${prefix}-0000-000000000000`, to: `${prefix}-ffff-ffffffffffff` }
}

/** Whether other workers consider this worker alive. If not, its jobs run elsewhere, so it must abort its work. */
export interface Liveness {
  /** A signal for work that begins now: aborted when this worker was taken for dead, or by `signal`. */
  limit(signal: AbortSignal | undefined): AbortSignal
  /** Aborts current work. Work that begins later gets a new signal. */
  lose(): void
}

export function openLiveness(): Liveness {
  let current = new AbortController()
  return {
    limit: (signal) => (signal ? AbortSignal.any([current.signal, signal]) : current.signal),
    lose() {
      const lost = current
      current = new AbortController()
      lost.abort(new Error('This worker was taken for dead, and its jobs run elsewhere.'))
    },
  }
}
