// A worker process like workers/main.ts, but without threads, that stops at a named place: it kills itself with SIGKILL, or waits
// there until its test releases it. Tests send it messages (`do`), and it answers with messages (`type`).
//
//   type: ready                    everything is open; no job is taken yet
//   do: run, order, aim, costly    takes jobs from now on, and stops once at the place of `aim`; a later aim replaces it.
//                                  `costly`: its assessments cost money, so that `observed` and `assessed` are committed
//   type: running, order
//   type: held, at                 it waits at the place (how: hold)
//   do: go                         releases it
//   type: committed, to, taken     whether a step, or the receipt, was accepted
import { readConfig } from '../server/config.ts'
import { openCore } from '../server/context.ts'
import type { Batcher } from '../server/db/batch.ts'
import { runProcess } from '../server/process.ts'
import { type Append, type Chain, type Participant, Refused } from '../server/receipts/chain.ts'
import { assessClaims } from '../workers/assessment/assessor.ts'
import { rescue } from '../workers/beat.ts'
import { openWork, type Work } from '../workers/context.ts'
import { openRunner, type Runner } from '../workers/runner.ts'
import { openLedger, openLedgerFacilitator } from './ledger.ts'
import { NO_THREADS } from './no-threads.ts'

/** The places in the course of a verification, in order. */
export type Place =
  | `${'before' | 'after'} ${'observed' | 'assessed' | 'settling' | 'charge' | 'settled' | 'receipt'}`
  /** Inside the assessor, which obeys its signal. */
  | 'in assessment'
  /** Inside the transaction that completes: before anything is written, and before the commit. */
  | 'head locked'
  | 'receipt written'
  /** The same of the manifest of a capture, where captures are kept. */
  | 'capture locked'
  | 'manifest written'
  /** The capture is stored, and no request refers to it yet. */
  | 'capture kept'
  /** The request is completed and its callers know; the job is still in the queue. */
  | 'after notification'

export interface Aim {
  at: Place
  how: 'kill' | 'hold'
  /** It does not learn that it was taken for dead, and goes on as a worker does that has not had its beat yet. */
  isDeaf?: boolean
}

export type Order = { do: 'run'; order: string; aim?: Aim; costly?: boolean } | { do: 'go' }

interface Watch {
  readonly costly: boolean
  readonly isDeaf: boolean
  pass(place: string): Promise<void>
  report(type: string, about?: object): void
}

function openWatch(run: () => Promise<void>): Watch {
  let aim: Aim | undefined
  let costly = false
  let isDeaf = false
  let release = () => {}
  const report = (type: string, about: object = {}) => void process.send?.({ type, ...about })
  const pass = async (place: string) => {
    if (aim?.at !== place) return
    const { how } = aim
    aim = undefined
    if (how === 'kill') process.kill(process.pid, 'SIGKILL')
    const { promise, resolve } = Promise.withResolvers<void>()
    release = resolve
    report('held', { at: place })
    await promise
  }
  process.on('message', (order: Order) => {
    if (order.do === 'go') return release()
    aim = order.aim
    costly = order.costly ?? false
    isDeaf = aim?.isDeaf ?? false
    void run().then(() => report('running', { order: order.order }))
  })
  return {
    get costly() {
      return costly
    },
    get isDeaf() {
      return isDeaf
    },
    pass,
    report,
  }
}

function watchBatcher<I, O>(
  batcher: Batcher<I, O>,
  nameOf: (item: I) => string,
  { pass, report }: Watch,
): Batcher<I, O> {
  return {
    async add(item) {
      await pass(`before ${nameOf(item)}`)
      const outcome = await batcher.add(item)
      report('committed', { to: nameOf(item), taken: outcome !== 'stale' })
      await pass(`after ${nameOf(item)}`)
      return outcome
    },
    get size() {
      return batcher.size
    },
    [Symbol.asyncDispose]: () => batcher[Symbol.asyncDispose](),
  }
}

function watchChain(chain: Chain, { pass, report }: Watch): Chain {
  const inside = <Item, Refusal>(
    kind: Participant<Item, Refusal>,
    places: [Place, Place] = ['head locked', 'receipt written'],
  ): Participant<Item, Refusal> => ({
    async check(tx, items) {
      await pass(places[0])
      return kind.check(tx, items)
    },
    async apply(tx, entries) {
      await kind.apply(tx, entries)
      await pass(places[1])
    },
  })
  return {
    ...chain,
    async append<Item, Refusal>(entry: Append<Item, Refusal>) {
      await pass('before receipt')
      const { participant, companion } = entry
      const watched = participant && { kind: inside(participant.kind), item: participant.item }
      const beside = companion && {
        ...companion,
        participant: {
          kind: inside(companion.participant.kind, ['capture locked', 'manifest written']),
          item: companion.participant.item,
        },
      }
      const outcome = await chain.append({
        ...entry,
        ...(watched && { participant: watched }),
        ...(beside && { companion: beside }),
      })
      report('committed', { to: 'completed', taken: !(outcome instanceof Refused) })
      await pass('after receipt')
      return outcome
    },
  }
}

async function watchWork(work: Work, watch: Watch, opened: AsyncDisposableStack): Promise<Work> {
  const ledger = opened.use(await openLedger(work.databaseUrl))
  const facilitator = opened.use(openLedgerFacilitator(ledger))
  return {
    ...work,
    chain: watchChain(work.chain, watch),
    captures: work.captures && {
      ...work.captures,
      async keep(hops) {
        const kept = await work.captures?.keep(hops)
        await watch.pass('capture kept')
        return kept ?? null
      },
    },
    steps: watchBatcher(work.steps, (step) => step.to, watch),
    changeEvents: watchBatcher(work.changeEvents, () => 'notification', watch),
    liveness: { ...work.liveness, lose: () => watch.isDeaf || work.liveness.lose() },
    assessor: {
      ...work.assessor,
      get isRepeatable() {
        return !watch.costly
      },
      async assess(input) {
        await ledger.note('assess', input.claim)
        await Promise.race([watch.pass('in assessment'), aborted(input.signal)])
        return work.assessor.assess(input)
      },
      async assessAll(input) {
        await ledger.note('assess', input.claims[0] ?? '')
        await Promise.race([watch.pass('in assessment'), aborted(input.signal)])
        return assessClaims(work.assessor, input)
      },
    },
    facilitator: {
      ...facilitator,
      async settle(offer, intent) {
        await watch.pass('before charge')
        const outcome = await facilitator.settle(offer, intent)
        await watch.pass('after charge')
        return outcome
      },
    },
  }
}

/** Rejects when the signal does. */
function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
}

await runProcess(async (opened) => {
  const config = readConfig()
  const core = opened.use(await openCore(config, config.databaseUrl ?? '', { threads: NO_THREADS }))
  let runner: Runner | undefined
  const watch = openWatch(async () => {
    if (runner) return
    // The pulse does this every few seconds; here it is done at once.
    await rescue(work)
    runner = opened.use(await openRunner(work))
  })
  const work = await watchWork(opened.use(await openWork(core)), watch, opened)
  watch.report('ready')
  return { log: core.log, stopping: () => process.disconnect() }
})
