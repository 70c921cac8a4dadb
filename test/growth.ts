// Counts work, and says how it grows with what is read. The count depends on neither machine nor load: every block of code that
// runs counts one, and every built-in that reads a text or a list counts what it reads.
import { Session } from 'node:inspector'

/** Exponent of the size with which the work of a reader may grow. */
export const MOST_EXPONENT = 1.15
/** Less work says nothing about growth: in all, or for each character, which longer texts may cost more of. */
const LITTLE = { all: 100_000, each: 16 }
const leastFor = (size: number) => Math.max(LITTLE.all, LITTLE.each * size)
/** How much smaller than the largest size a size may be that is looked at: a budget that is spent ends the growth. */
const SPAN = 64
/** Most work: for each character, and for an input of any size, because budgets do not depend on it. */
const MOST = { each: 2500, anyway: 40_000_000 }
/** The smallest size. */
export const FIRST = 1024
const STEP = 8

/** The slope of the line through the points (log size, log work). */
export function exponentOf(points: readonly (readonly [size: number, work: number])[]): number {
  const logs = points.map(([size, work]) => [Math.log(size), Math.log(work)] as const)
  const mean = (of: 0 | 1) => logs.reduce((sum, one) => sum + one[of], 0) / logs.length
  const [x, y] = [mean(0), mean(1)]
  const part = logs.reduce((sum, one) => sum + (one[0] - x) * (one[1] - y), 0)
  return part / logs.reduce((sum, one) => sum + (one[0] - x) ** 2, 0)
}

/** From 1 kB to the limit. */
export function sizesUpTo(limit: number): number[] {
  const sizes: number[] = []
  for (let size = FIRST; size < limit; size *= STEP) sizes.push(size)
  return [...sizes, limit]
}

/**
 * The exponent with which the work grows at the largest sizes. Takes larger ones, up to the limit, until the work is enough to tell or
 * in proportion to the size, and as long as it seems to grow too fast. What is kept between calls must be made before.
 * @param options `isWhole` takes all sizes; `isApart` leaves out the work that is the same for each size, which may be so much that it
 * hides the rest
 */
export async function growthOf(
  meter: WorkMeter,
  work: (size: number) => unknown,
  limit: number,
  { isWhole = false, isApart = false } = {},
): Promise<number> {
  const fixed = isApart ? await meter.count(() => work(1)) : 0
  const points: [number, number][] = []
  const counts: number[] = []
  let exponent = 0
  for (const size of sizesUpTo(limit)) {
    const count = (await meter.count(() => work(size))) - fixed
    if (count > MOST.anyway + MOST.each * size) return Number.POSITIVE_INFINITY
    counts.push(count)
    points.push([size, Math.max(leastFor(size), count)])
    if (points.length === 1) continue
    exponent = exponentOf(points.filter(([one]) => one >= size / SPAN))
    // Two counts that both say something are enough to tell.
    const isTold = points.slice(-2).every(([one, work]) => work > leastFor(one))
    if (!isWhole && exponent <= MOST_EXPONENT && (isTold || isInProportion(counts))) break
  }
  return exponent
}

/** Whether the last step to a larger size added no more than its share. Work that each size takes does not hide growth. */
function isInProportion(counts: readonly number[]): boolean {
  const [before, middle, last] = counts.slice(-3)
  return last !== undefined && last - middle! <= STEP ** MOST_EXPONENT * Math.max(1, middle! - before!)
}

export interface WorkMeter extends Disposable {
  /** How much work something is. Nothing else may run meanwhile, nor much since the count before. */
  count(work: () => unknown): Promise<number>
}

interface Coverage {
  result: { functions: { ranges: { count: number }[] }[] }[]
}

/** One in a process, opened before anything runs: code that was compiled before is not counted. */
export function openWorkMeter(): WorkMeter {
  const opened = new DisposableStack()
  const session = opened.adopt(new Session(), (session) => session.disconnect())
  session.connect()
  const post = <T>(method: string, options: object = {}): T => {
    let answer: unknown
    session.post(method, options, (error, result) => {
      if (error) throw error
      answer = result
    })
    return answer as T
  }
  post('Profiler.enable')
  post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  let read = 0
  meterBuiltIns(opened, (units) => {
    read += units
  })
  return {
    async count(work) {
      await work()
      const units = read
      read = 0
      const { result } = post<Coverage>('Profiler.takePreciseCoverage')
      let blocks = 0
      for (const { functions } of result)
        for (const { ranges } of functions) for (const { count } of ranges) blocks += count
      return Math.round(blocks + units / UNITS_PER_BLOCK)
    },
    [Symbol.dispose]: () => opened.dispose(),
  }
}

/** What a built-in does with a character or an entry is far less than a block of code. */
const UNITS_PER_BLOCK = 16

const WHOLE_TEXT = ['split', 'toLowerCase', 'toUpperCase', 'normalize', 'trim', 'trimEnd', 'trimStart'] as const
const SEARCHES = ['indexOf', 'includes', 'lastIndexOf'] as const
const COPIES = ['slice', 'concat'] as const
const WHOLE_LIST = ['join', 'unshift', 'reverse', 'sort'] as const

interface BuiltInCall {
  self: unknown
  /** Where it began to read: its second argument, or the place of an expression. */
  from: number
  first: unknown
  answer: unknown
}

/** Counts what the built-ins read. How expressions go back over a text is held by test/expressions.test.ts. */
function meterBuiltIns(opened: DisposableStack, add: (units: number) => void): void {
  const wrap = <T extends object, K extends keyof T>(owner: T, name: K, cost: (call: BuiltInCall) => number) => {
    const original = owner[name] as (...args: unknown[]) => unknown
    owner[name] = function (this: unknown, ...args: unknown[]) {
      const from = this instanceof RegExp ? this.lastIndex : Number(args[1] ?? 0)
      const answer = original.apply(this, args)
      add(1 + cost({ self: this, from, first: args[0], answer }))
      return answer
    } as T[K]
    opened.defer(() => {
      owner[name] = original as T[K]
    })
  }
  const length = (value: unknown) => (value as string | unknown[]).length
  for (const name of WHOLE_TEXT) wrap(String.prototype, name, ({ self }) => length(self))
  for (const name of WHOLE_LIST) wrap(Array.prototype, name, ({ self }) => length(self))
  const searched = ({ self, from, answer }: BuiltInCall) =>
    typeof answer === 'number' && answer >= 0 ? Math.abs(answer - from) : Math.max(0, length(self) - from)
  for (const name of SEARCHES) {
    wrap(String.prototype, name, searched)
    wrap(Array.prototype, name, searched)
  }
  for (const name of COPIES) wrap(Array.prototype, name, ({ answer }) => length(answer))
  wrap(Array.prototype, 'splice', ({ self, first }) => Math.max(0, length(self) - Math.abs(Number(first))))
  wrap(RegExp.prototype, 'exec', ({ self, from, first, answer }) => {
    const { global, sticky } = self as RegExp
    const found = answer as RegExpExecArray | null
    const begin = global || sticky ? from : 0
    if (found) return found.index + found[0].length - begin
    return sticky ? 0 : Math.max(0, length(first) - begin)
  })
  wrap(Intl.Segmenter.prototype, 'segment', ({ first }) => UNITS_PER_BLOCK * length(first))
}
