// The context of the worker process, in addition to the core: threads, outbound connections, the assessor, and the batchers
// that its jobs share.
import type { Core } from '../server/context.ts'
import { type Batcher, openBatcher } from '../server/db/batch.ts'
import { openChangeNotifier } from '../server/db/change-events.ts'
import { assessment } from '../server/interface/assessment.ts'
import { type Outbound, openOutbound } from '../server/outbound/connection.ts'
import { openThreads, type Threads } from '../server/threads/pool.ts'
import { buildCompletions, type Completions } from '../server/verification/completion.ts'
import { type Claim, type Claims, claimRequests } from '../server/verification/request.ts'
import { type Step, type StepOutcome, type Steps, writeSteps } from '../server/verification/steps.ts'
import type { Assessor } from './assessment/assessor.ts'
import { chooseAssessor } from './assessment/choice.ts'
import { gatedProcedure } from './assessment/procedure.ts'
import { type Liveness, openLiveness } from './liveness.ts'
import { buildObservationCache, type ObservationCache } from './retrieval/cache.ts'
import { type BodyMemory, buildBodyMemory } from './retrieval/memory.ts'
import { postgresObservations } from './retrieval/observation-store-postgres.ts'
import { redisObservations } from './retrieval/observation-store-redis.ts'
import { buildOrigins, type OriginLimits, type Origins } from './retrieval/origins.ts'
import { OBSERVATION_PROCEDURE } from './retrieval/procedure.ts'
import { openSlowFetches, type SlowFetches } from './slow-fetches.ts'
import { makeWorkerId, type WorkerId } from './worker-id.ts'

export interface Work extends Core {
  id: WorkerId
  liveness: Liveness
  threads: Threads
  outbound: Outbound
  cache: ObservationCache
  origins: Origins
  /** Limits the page bodies in memory. */
  bodies: BodyMemory
  slowFetches: SlowFetches
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
/** Page bodies of all fetches of a process: about two dozen of the maximal size. */
const BODY_BYTES = 96 * 1024 * 1024
/** Two blocks of the slower chain. */
const LIVE_SETTLE_SECONDS = 4

/** Replacements for tests. */
export interface WorkOverrides {
  assessor?: Assessor
  originLimits?: OriginLimits
  /** Milliseconds after which a fetch leaves its job. */
  slowMs?: number
}

export async function openWork(core: Core, overrides: WorkOverrides = {}): Promise<Work> {
  await using opened = new AsyncDisposableStack()
  const id = makeWorkerId()
  const onLoss = (error: unknown) => core.log.error({ event: 'thread_lost', err: error })
  const threads = core.threads ?? opened.use(openThreads({ onLoss }))
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
  const assessor = overrides.assessor ?? (await chooseAssessor(core, threads))
  const steps = opened.use(
    openBatcher<Step, StepOutcome>((batch) => writeSteps(core.db, batch, core.config.maxInFlightPerPayer), {
      batch: MAX_STEPS,
      queue: 4096,
    }),
  )
  const claims = opened.use(openBatcher((batch: Claim[]) => claimRequests(core.db, batch), { batch: 64, queue: 4096 }))
  const changeEvents = opened.use(openChangeNotifier(core.db, core.log))
  const origins = opened.use(buildOrigins(core.db, { limits: overrides.originLimits, log: core.log, makeId: id.make }))
  const slowFetches = opened.use(
    openSlowFetches({
      db: core.db,
      log: core.log,
      room: core.config.workerFetches,
      ...(overrides.slowMs !== undefined && { slowMs: overrides.slowMs }),
    }),
  )
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
    slowFetches,
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
