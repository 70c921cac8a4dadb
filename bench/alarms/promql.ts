// The part of PromQL that the rules of the alarms use, evaluated over scrapes. It refuses everything else, so no rule is
// read differently than by Prometheus. `rate` and `increase` do not extrapolate to the ends of the window.
import type { Scrapes } from './scrapes.ts'

type Labels = Readonly<Record<string, string>>
interface Element {
  labels: Labels
  value: number
}
type Vector = Element[]
type Value = number | Vector
type Evaluate = (scrapes: Scrapes) => Value

/** Whether the expression has any element. Throws for an unsupported expression. */
export function holds(expr: string, scrapes: Scrapes): boolean {
  const value = parse(expr)(scrapes)
  if (typeof value === 'number') throw new Error(`a number is no condition: ${expr}`)
  return value.length > 0
}

const TOKEN = /\s*(\d+(?:\.\d+)?(?:[smh](?=\]))?|"(?:[^"\\]|\\.)*"|[a-zA-Z_:][\w:]*|=~|!~|!=|==|>=|<=|[><=*{}()[\],])/y

/** Throws for an unsupported expression. */
export function parse(expr: string): Evaluate {
  const tokens: string[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < expr.trimEnd().length) {
    const at = TOKEN.lastIndex
    const found = TOKEN.exec(expr)
    if (!found) throw new Error(`not understood: ${expr.slice(at)}`)
    tokens.push(found[1]!)
  }
  const reader = new Reader(tokens)
  const evaluate = reader.both()
  reader.end()
  return evaluate
}

class Reader {
  readonly #tokens: string[]
  #at = 0
  constructor(tokens: string[]) {
    this.#tokens = tokens
  }

  end() {
    if (this.#at < this.#tokens.length) throw new Error(`not understood: ${this.#tokens.slice(this.#at).join(' ')}`)
  }

  both(): Evaluate {
    const left = this.comparison()
    if (!this.#takes('and')) return left
    const right = this.both()
    return (scrapes) => {
      const others = new Set(vector(right(scrapes)).map(({ labels }) => keyOf(labels)))
      return vector(left(scrapes)).filter(({ labels }) => others.has(keyOf(labels)))
    }
  }

  comparison(): Evaluate {
    const left = this.product()
    const operator = this.#peek()
    if (operator !== '>' && operator !== '==') return left
    this.#next()
    const right = this.product()
    const test = (one: number, other: number) => (operator === '>' ? one > other : one === other)
    return (scrapes) => {
      const bound = right(scrapes)
      return vector(left(scrapes)).filter(({ labels, value }) => {
        if (typeof bound === 'number') return test(value, bound)
        const other = bound.find((one) => keyOf(one.labels) === keyOf(labels))
        return other !== undefined && test(value, other.value)
      })
    }
  }

  product(): Evaluate {
    const left = this.operand()
    if (!this.#takes('*')) return left
    const right = this.operand()
    return (scrapes) => {
      const factor = left(scrapes)
      if (typeof factor !== 'number') throw new Error('only a number is multiplied with')
      return vector(right(scrapes)).map(({ labels, value }) => ({ labels, value: factor * value }))
    }
  }

  operand(): Evaluate {
    const word = this.#next()
    if (/^\d/.test(word)) return () => Number(word)
    if (word === 'absent') return this.#inBrackets((given) => (given.length > 0 ? [] : [{ labels: {}, value: 1 }]))
    if (word === 'sum' || word === 'min' || word === 'max') return this.aggregation(word)
    if (word === 'rate' || word === 'increase') return this.change(word)
    if (word === 'histogram_quantile') return this.quantile()
    return this.selector(word)
  }

  aggregation(name: 'sum' | 'min' | 'max'): Evaluate {
    const by: string[] = []
    if (this.#takes('by')) {
      this.#expect('(')
      do by.push(this.#next())
      while (this.#takes(','))
      this.#expect(')')
    }
    return this.#inBrackets((given) => {
      const groups = Map.groupBy(given, ({ labels }) => keyOf(pick(labels, by)))
      return [...groups.values()].map((group) => ({
        labels: pick(group[0]!.labels, by),
        value: AGGREGATES[name](group.map(({ value }) => value)),
      }))
    })
  }

  change(name: 'rate' | 'increase'): Evaluate {
    this.#expect('(')
    const { metric, matches } = this.#series(this.#next())
    this.#expect('[')
    const seconds = secondsOf(this.#next())
    this.#expect(']')
    this.#expect(')')
    return (scrapes) =>
      scrapes.range(metric, seconds).flatMap(({ labels, points }) => {
        const [first, last] = [points[0], points.at(-1)]
        if (!first || !last || points.length < 2 || !matches(labels)) return []
        const value = increaseOf(points.map((point) => point.value))
        return [{ labels, value: name === 'rate' ? value / (last.at - first.at) : value }]
      })
  }

  quantile(): Evaluate {
    this.#expect('(')
    const share = Number(this.#next())
    this.#expect(',')
    const inner = this.both()
    this.#expect(')')
    return (scrapes) => {
      const groups = Map.groupBy(vector(inner(scrapes)), ({ labels }) => keyOf(without(labels, 'le')))
      return [...groups.values()].map((group) => ({
        labels: without(group[0]!.labels, 'le'),
        value: quantileOf(group, share),
      }))
    }
  }

  selector(word: string): Evaluate {
    const { metric, matches } = this.#series(word)
    return (scrapes) => scrapes.instant(metric).filter(({ labels }) => matches(labels))
  }

  #series(metric: string): { metric: string; matches: (labels: Labels) => boolean } {
    if (!/^[a-zA-Z_:]/.test(metric)) throw new Error(`${metric} is no metric`)
    const matchers: ((labels: Labels) => boolean)[] = []
    if (this.#takes('{'))
      while (!this.#takes('}')) {
        const label = this.#next()
        const operator = this.#next()
        matchers.push(matcherOf(label, operator, JSON.parse(this.#next()) as string))
        this.#takes(',')
      }
    return { metric, matches: (labels) => matchers.every((one) => one(labels)) }
  }

  #inBrackets(of: (given: Vector) => Vector): Evaluate {
    this.#expect('(')
    const inner = this.both()
    this.#expect(')')
    return (scrapes) => of(vector(inner(scrapes)))
  }

  #peek() {
    return this.#tokens[this.#at]
  }

  #next(): string {
    const token = this.#tokens[this.#at++]
    if (token === undefined) throw new Error('the expression ends early')
    return token
  }

  #takes(token: string): boolean {
    if (this.#peek() !== token) return false
    this.#at++
    return true
  }

  #expect(token: string) {
    const found = this.#next()
    if (found !== token) throw new Error(`${token} is expected, and ${found} is there`)
  }
}

const AGGREGATES = {
  sum: (values: number[]) => values.reduce((sum, value) => sum + value, 0),
  min: (values: number[]) => Math.min(...values),
  max: (values: number[]) => Math.max(...values),
}

function vector(value: Value): Vector {
  if (typeof value === 'number') throw new Error('a number stands where series are expected')
  return value
}

function matcherOf(label: string, operator: string, text: string): (labels: Labels) => boolean {
  const whole = new RegExp(`^(?:${text})$`)
  const found = (labels: Labels) => labels[label] ?? ''
  if (operator === '=') return (labels) => found(labels) === text
  if (operator === '!=') return (labels) => found(labels) !== text
  if (operator === '=~') return (labels) => whole.test(found(labels))
  if (operator === '!~') return (labels) => !whole.test(found(labels))
  throw new Error(`${operator} is no matcher`)
}

function secondsOf(duration: string): number {
  const [, count = '', unit = ''] = /^(\d+)([smh])$/.exec(duration) ?? []
  const seconds = { s: 1, m: 60, h: 3600 }[unit]
  if (seconds === undefined) throw new Error(`${duration} is no duration`)
  return Number(count) * seconds
}

/** A counter was reset if its value is smaller than the one before. */
function increaseOf(values: number[]): number {
  return values.slice(1).reduce((sum, value, n) => sum + (value < values[n]! ? value : value - values[n]!), 0)
}

/** As Prometheus does it: linear within a bucket, the highest bound for what is beyond it, NaN where nothing was observed. */
function quantileOf(buckets: Vector, share: number): number {
  const sorted = buckets
    .map(({ labels, value }) => ({ bound: labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le), value }))
    .sort((one, other) => one.bound - other.bound)
  const rank = share * (sorted.at(-1)?.value ?? 0)
  if (rank === 0) return Number.NaN
  const at = sorted.findIndex(({ value }) => value >= rank)
  const below = sorted[at - 1] ?? { bound: 0, value: 0 }
  const bucket = sorted[at]!
  if (bucket.bound === Number.POSITIVE_INFINITY) return below.bound
  return below.bound + ((bucket.bound - below.bound) * (rank - below.value)) / (bucket.value - below.value)
}

function pick(labels: Labels, names: string[]): Labels {
  return Object.fromEntries(names.flatMap((name) => (labels[name] === undefined ? [] : [[name, labels[name]]])))
}

function without({ ...labels }: Record<string, string>, name: string): Labels {
  delete labels[name]
  return labels
}

function keyOf(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1)))
}
