// The loop of a batch under random interleavings: rows that end in every way and in any order, a budget that is reached, a service that
// loses its capacity or falls silent, and signals. Time is a fake clock that jumps to the next event; a run that waits for
// nothing would never end, and fails.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { openRunBudget } from '../../client/batch/budget.ts'
import { type Outcome, TermsError } from '../../client/batch/buyer.ts'
import { Pace } from '../../client/batch/pace.ts'
import type { Row } from '../../client/batch/rows.ts'
import { type Run, runRows } from '../../client/batch/run.ts'
import { type Clock, CountersignError } from '../../client/client.ts'
import { rounds } from '../long.ts'
import { rowsOf } from './batch-desk.ts'

const PRICE = 3n

/** The same numbers for the same seed. */
function dice(seed: number) {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let x = Math.imul(state ^ (state >>> 15), 1 | state)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32
  }
  return { chance: (p: number) => next() < p, below: (n: number) => Math.floor(next() * n) }
}

/** A clock that stands still until `pass` lets it jump to its next timer. */
function buildFakeClock() {
  let now = Date.UTC(2026, 10, 20)
  const timers = new Map<object, { at: number; ring: () => void }>()
  const set = (ms: number, ring: () => void) => {
    const key = {}
    timers.set(key, { at: now + ms, ring })
    return key
  }
  const clock: Clock = {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        const stop = () => {
          timers.delete(key)
          reject(signal.reason)
        }
        const key = set(ms, () => {
          signal.removeEventListener('abort', stop)
          resolve()
        })
        signal.addEventListener('abort', stop, { once: true })
      }),
    deadline: () => new AbortController().signal,
  }
  return {
    clock,
    at: set,
    /** Until the work is done. Throws where it waits for nothing, and where it never comes to rest. */
    async pass<T>(work: Promise<T>): Promise<T> {
      let isOver = false
      work.then(
        () => (isOver = true),
        () => (isOver = true),
      )
      for (let jumps = 0; ; jumps++) {
        await new Promise(setImmediate)
        if (isOver) return work
        const [key, timer] = [...timers].sort(([, one], [, other]) => one.at - other.at)[0] ?? []
        if (!key || !timer) throw new Error('the run waits for nothing')
        if (jumps > 20_000) throw new Error('the run does not end')
        timers.delete(key)
        now = Math.max(now, timer.at)
        timer.ring()
      }
    },
  }
}

const error = (status: number | null, code: string) =>
  new CountersignError({ code, message: `about ${code}`, retryable: true, status })

interface World {
  run: Run | null
  thrown: unknown
  completed: string[]
  failed: string[]
  most: number
  spent: bigint
  cap: bigint
  rows: Row[]
  stoppedAt: number | null
  endedAt: number
}

/** One run, with everything that can happen decided by the seed. */
async function live(seed: number): Promise<World> {
  const { chance, below } = dice(seed)
  const { clock, at, pass } = buildFakeClock()
  const rows = rowsOf(1 + below(40))
  const cap = PRICE * BigInt(below(rows.length + 5)) + BigInt(below(3))
  const budget = openRunBudget(cap, new Map())
  const pace = new Pace(1 + below(8), clock)
  const [finish, abort] = [new AbortController(), new AbortController()]
  const world: World = {
    ...{ run: null, thrown: null, completed: [], failed: [], most: 0, spent: 0n, cap, rows },
    ...{ stoppedAt: null, endedAt: 0 },
  }
  // Rare in most runs, and in some of them the rule.
  const often = (usual: number) => (chance(0.15) ? 0.9 : usual)
  const [silent, busy, refused, hurried] = [often(0.03), often(0.05), often(0.1), often(0.4)]
  const paid = new Set<string>()
  let running = 0
  const buy = async (row: Row, signal: AbortSignal): Promise<Outcome> => {
    running++
    world.most = Math.max(world.most, running)
    try {
      if (chance(0.2)) await clock.sleep(below(50), signal)
      if (!paid.has(row.id)) await budget.reserve(row.id, PRICE)
      paid.add(row.id)
      if (!chance(hurried)) await clock.sleep(below(60_000), signal)
      await pace.clear(signal)
      if (chance(busy)) {
        pace.slow(chance(0.02) ? 86_400_000 : below(120_000))
        return { kind: 'unfinished', error: error(503, 'capacity_exceeded') }
      }
      if (chance(silent)) return { kind: 'unfinished', error: error(null, 'network_error') }
      if (chance(0.02)) return { kind: 'unfinished', error: error(null, 'payment_open'), isLater: true }
      if (chance(0.002)) throw new TermsError('other terms')
      if (chance(0.001)) throw new RangeError('a fault')
      if (!chance(refused)) return { kind: 'completed', purchase: {} as never }
      const charged = chance(0.1)
      if (!charged) {
        paid.delete(row.id)
        if (chance(0.5)) await clock.sleep(below(10), signal)
        await budget.release(row.id)
      }
      return { kind: 'failed', error: error(chance(0.5) ? 402 : 422, 'refused'), charged }
    } finally {
      running--
    }
  }
  if (chance(0.2)) at(below(100_000), () => finish.abort())
  if (chance(0.2))
    at(below(200_000), () => {
      finish.abort()
      abort.abort()
      world.stoppedAt = clock.now()
    })
  const files = {
    complete: async ({ id }: Row) => void world.completed.push(id),
    fail: async ({ id }: Row) => void world.failed.push(id),
  }
  const run = runRows({ rows, buyer: { buy }, files, pace, finish: finish.signal, abort: abort.signal })
  await pass(run).then(
    (one) => (world.run = one),
    (thrown: unknown) => (world.thrown = thrown),
  )
  return Object.assign(world, { spent: budget.spent, endedAt: clock.now() })
}

t.test('every run ends, accounts for every row once, and keeps to its budget', async (t) => {
  const stops = new Map<string, number>()
  for (let seed = 1; seed <= rounds(400); seed++) {
    const { run, thrown, completed, failed, most, spent, cap, rows, stoppedAt, endedAt } = await live(seed)
    const faults: string[] = []
    if (spent > cap) faults.push(`spent ${spent} of ${cap}`)
    if (most > 8) faults.push(`${most} rows at once`)
    if (new Set([...completed, ...failed]).size !== completed.length + failed.length) faults.push('a row has two lines')
    if (thrown !== null && !(thrown instanceof RangeError)) faults.push(`it throws ${thrown}`)
    if (stoppedAt !== null && endedAt > stoppedAt)
      faults.push(`it lasts ${endedAt - stoppedAt} ms after it was aborted`)
    if (run) {
      const unfinished = run.unfinished.map(({ row }) => row.id)
      const known = new Set([...completed, ...failed, ...unfinished])
      if (known.size !== completed.length + failed.length + unfinished.length) faults.push('a row has two outcomes')
      if (known.size + run.untouched !== rows.length)
        faults.push(`${known.size} and ${run.untouched} of ${rows.length}`)
      if (run.stop === null && run.untouched > 0) faults.push('rows are left without a reason')
      if (run.stop?.kind === 'budget' && cap - spent >= PRICE) faults.push(`${cap - spent} are left of the budget`)
      if (run.stop?.kind === 'budget' && run.untouched === 0) faults.push('the budget stopped nothing')
    }
    const kind = thrown ? 'fault' : (run?.stop?.kind ?? 'none')
    stops.set(kind, (stops.get(kind) ?? 0) + 1)
    t.same(faults, [], `seed ${seed}`)
  }
  for (const kind of ['none', 'budget', 'interrupted', 'busy', 'terms', 'payments_refused', 'unreachable', 'fault'])
    t.ok((stops.get(kind) ?? 0) > 0, `${kind}: ${stops.get(kind)}`)
})

t.test('a budget smaller than the rows ends the run when no row is under way', async (t) => {
  const budget = openRunBudget(30n, new Map())
  const { clock, pass } = buildFakeClock()
  const bought: string[] = []
  const run = runRows({
    rows: rowsOf(40),
    buyer: {
      async buy({ id }) {
        await budget.reserve(id, PRICE)
        return { kind: 'completed', purchase: {} as never }
      },
    },
    files: { complete: async ({ id }) => void bought.push(id), fail: async () => {} },
    pace: new Pace(8, clock),
    finish: new AbortController().signal,
    abort: new AbortController().signal,
  })
  t.match(await pass(run), { stop: { kind: 'budget' }, untouched: 30, unfinished: [] })
  t.same(
    bought,
    rowsOf(10).map(({ id }) => id),
    'in the order of the input',
  )
})

t.test('memory does not grow with the rows that end beside one that does not', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const rows = rowsOf(100_000)
  const slow = Promise.withResolvers<void>()
  let done = 0
  let before = 0
  let after = 0
  const run = await runRows({
    rows,
    buyer: {
      async buy({ id }) {
        if (id === 'row0') await slow.promise
        return { kind: 'completed', purchase: {} as never }
      },
    },
    files: {
      async complete() {
        if (++done === 5000) before = used()
        if (done !== rows.length - 1) return
        after = used()
        slow.resolve()
      },
      fail: async () => {},
    },
    pace: new Pace(2, buildFakeClock().clock),
    finish: new AbortController().signal,
    abort: new AbortController().signal,
  })
  t.match(run, { stop: null, untouched: 0, unfinished: [] })
  t.ok(after - before < 4_000_000, `${after - before} bytes more for 95,000 rows`)
})
