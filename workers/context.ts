// What a worker has beside the core: threads, the way out, the assessor, and the batchers its jobs share.
import type { Core } from '../server/context.ts'
import { openAnnouncements } from '../server/db/announcements.ts'
import { type Batcher, openBatcher } from '../server/db/batch.ts'
import { type Outbound, openOutbound } from '../server/outbound/connection.ts'
import { type Step, type StepOutcome, type Steps, writeSteps } from '../server/verification/request.ts'
import { chooseAssessor } from './assessment/choice.ts'
import { gatedProcedure } from './assessment/page-quality.ts'
import { buildObservationCache, type ObservationCache } from './retrieval/cache.ts'
import { OBSERVATION_PROCEDURE } from './retrieval/observation.ts'
import { postgresObservations } from './retrieval/observation-store-postgres.ts'
import { redisObservations } from './retrieval/observation-store-redis.ts'
import { buildOrigins, type Manners, type Origins } from './retrieval/origins.ts'
import { openThreads, type Threads } from './threads.ts'
import type { Assessor } from './verify.ts'

export interface Work extends Core {
  threads: Threads
  outbound: Outbound
  cache: ObservationCache
  origins: Origins
  assessor: Assessor
  steps: Steps
  announcements: Batcher<string, void>
  /** The `methodology_version` of the results made here. */
  methodology: string
}

const MAX_STEPS = 128

export async function openWork(core: Core, overrides: { assessor?: Assessor; manners?: Manners } = {}): Promise<Work> {
  await using opened = new AsyncDisposableStack()
  const threads = opened.use(openThreads({ onLoss: (error) => core.log.error({ event: 'thread_lost', err: error }) }))
  const outbound = opened.use(
    openOutbound({ fixtures: core.config.fixtures, userAgent: userAgent(core.config.baseUrl) }),
  )
  const store = core.redis ? redisObservations(core.redis) : postgresObservations(core.db)
  const cache = buildObservationCache(store, { secret: core.secrets.observation, log: core.log })
  const assessor = overrides.assessor ?? chooseAssessor(core, threads)
  const steps = opened.use(
    openBatcher<Step, StepOutcome>((batch) => writeSteps(core.db, batch), { batch: MAX_STEPS, queue: 4096 }),
  )
  const announcements = opened.use(openAnnouncements(core.db, core.log))
  const closing = opened.move()
  return {
    ...core,
    threads,
    outbound,
    cache,
    origins: buildOrigins(core.db, overrides.manners),
    assessor,
    steps,
    announcements,
    methodology: `${OBSERVATION_PROCEDURE} ${gatedProcedure(assessor.procedure)}`,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** Who asks, and where its operator can be reached. */
function userAgent(baseUrl: string | undefined) {
  return `Countersign-Source-Verification/1.0${baseUrl ? ` (+${baseUrl}/)` : ''}`
}
