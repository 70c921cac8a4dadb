// Finds the regular expressions of a source file, and says of one whether a text can make it slow: whether it can read the same
// characters in several ways (exponential or polynomial time), or begin at every character and fail only far behind it.

/** The literals of a TypeScript file. */
export function expressionsIn(code: string): { source: string; flags: string }[] {
  const found: { source: string; flags: string }[] = []
  const token =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[\w$]+|\/((?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([dgimsuvy]*)|[^\s]/gy
  const templateText = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(`|\$\{)?/gy
  /** For each open template, how many braces are open in its expression. */
  const templates: number[] = []
  let before = ''
  for (let at = 0; at < code.length; ) {
    token.lastIndex = at
    const match = token.exec(code)
    if (!match) {
      at++
      continue
    }
    const [text, source, flags = ''] = match
    const isDivision = /^[\w$)\]]$/.test(before.slice(-1)) && !/^(?:return|typeof|case)$/.test(before)
    if (source !== undefined && isDivision) {
      before = '/'
      at++
      continue
    }
    if (source !== undefined) found.push({ source, flags })
    at = token.lastIndex
    if (/^\/[/*]/.test(text)) continue
    before = source === undefined ? text : ')'
    const closes = text === '}' && templates.at(-1) === 0
    if (text === '{' && templates.length > 0) templates.push(templates.pop()! + 1)
    else if (text === '}' && templates.length > 0 && !closes) templates.push(templates.pop()! - 1)
    if (text !== '`' && !closes) continue
    if (closes) templates.pop()
    templateText.lastIndex = at
    if (templateText.exec(code)?.[1] === '${') templates.push(0)
    at = templateText.lastIndex
    before = templates.length > 0 && code.startsWith('${', at - 2) ? '(' : ')'
  }
  return found
}

/** Characters that stand for all others; two further ones stand for the end and the beginning of the text. */
const ALPHABET = [
  ...Array.from({ length: 128 }, (_, i) => String.fromCharCode(i)),
  ...'éßœ\u00a0\u0085\u200b\u2003\u2028\u0301\ufe0f\ufeff\u3000',
  ...'“”„‟«»‘’‹›「」『』〝〞〟–—―−…·§†‡°€´′',
  ...'中あアก༠ꯍЖא١\ue000\uffff😀𝒜\u{e0100}\u{e0041}',
]
const END = 1n << BigInt(ALPHABET.length)
const START = END << 1n

interface Part {
  nullable: boolean
  /** As `nullable`, but assertions must hold. */
  done: boolean
  first: Set<number>
  last: Set<number>
  /** As `last`, where no assertion follows. */
  ends: Set<number>
}

/** What is wrong with an expression; null for nothing. */
export function weaknessOf(source: string, flags: string): string | null {
  return new Analysis(source, flags).find()
}

class Analysis {
  readonly #source: string
  readonly #flags: string
  readonly #masks: bigint[] = []
  readonly #follow: Set<number>[] = []
  #at = 0
  #twice = false
  #inner: string | null = null
  /** Every character. */
  readonly #any: bigint

  constructor(source: string, flags: string) {
    this.#source = source
    this.#flags = flags
    this.#any = this.#maskOf('[\\s\\S]')
  }

  find(): string | null {
    let whole = this.#alternatives()
    if (this.#at < this.#source.length) throw new Error(`not understood at ${this.#at}: ${this.#source}`)
    if (!this.#flags.includes('y')) whole = this.#sequence(optional(this.#star(this.#atom(this.#any))), whole)
    if (this.#inner) return this.#inner
    if (this.#twice) return 'repeats what is already repeated'
    return this.#exponential() ?? this.#polynomial(whole)
  }

  #alternatives(): Part {
    let part = this.#terms()
    while (this.#eat('|')) {
      const other = this.#terms()
      part = {
        nullable: part.nullable || other.nullable,
        done: part.done || other.done,
        first: both(part.first, other.first),
        last: both(part.last, other.last),
        ends: both(part.ends, other.ends),
      }
    }
    return part
  }

  #terms(): Part {
    let part = empty()
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at]!))
      part = this.#sequence(part, this.#quantified())
    return part
  }

  #quantified(): Part {
    const begin = this.#at
    let part = this.#term()
    const end = this.#at
    const quantifier = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(this.#source.slice(this.#at))
    if (!quantifier) return part
    this.#at += quantifier[0].length
    const [sign, least = '', comma, most = ''] = quantifier
    if (sign.startsWith('?')) return optional(part)
    if (sign.startsWith('*')) return optional(this.#star(part))
    if (sign.startsWith('+')) return this.#star(part)
    const isEndless = comma !== '' && most === ''
    // Two copies show what follows what; more are bounded as well.
    const copies = Math.min(2, Number(most || least))
    const after = this.#at
    for (let i = 1; i < copies; i++) {
      this.#at = begin
      const copy = this.#term()
      part = this.#sequence(part, i >= Number(least) ? optional(copy) : copy)
    }
    this.#at = Math.max(after, end)
    if (isEndless) part = this.#star(part)
    return Number(least) === 0 ? optional(part) : part
  }

  #term(): Part {
    const rest = this.#source.slice(this.#at)
    const look = /^\(\?<?[=!]/.exec(rest)
    if (look) {
      this.#at += look[0].length
      const begin = this.#at
      let depth = 1
      for (let inClass = false; depth > 0; this.#at++) {
        const unit = this.#source[this.#at]
        if (unit === '\\') this.#at++
        else if (unit === '[') inClass = true
        else if (unit === ']') inClass = false
        else if (!inClass && unit === '(') depth++
        else if (!inClass && unit === ')') depth--
      }
      const body = this.#source.slice(begin, this.#at - 1)
      this.#inner ??= /[*+]|,\}/.test(body) ? weaknessOf(`^(?:${body})`, this.#flags) : null
      return assertion()
    }
    if (this.#eat('^')) return this.#flags.includes('m') ? assertion() : this.#atom(START)
    if (this.#eat('\\b') || this.#eat('\\B')) return assertion()
    if (this.#eat('$')) return this.#atom(END)
    const group = /^\((?:\?:|\?<\w+>)?/.exec(rest)
    if (group) {
      this.#at += group[0].length
      const part = this.#alternatives()
      if (!this.#eat(')')) throw new Error(`an open group: ${this.#source}`)
      return part
    }
    const atom =
      /^(?:\[(?:[^\]\\]|\\.)*\]|\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\u[\da-f]{4}|\\x[\da-f]{2}|\\c[A-Z]|\\k<\w+>|\\[\s\S]|[\s\S])/iu.exec(
        rest,
      )![0]
    if (/^\\(?:[1-9]|k)/.test(atom)) throw new Error(`refers back: ${this.#source}`)
    this.#at += atom.length
    return this.#atom(this.#maskOf(atom))
  }

  #maskOf(atom: string): bigint {
    const one = new RegExp(`^(?:${atom})$`, this.#flags.replace(/[gym]/g, ''))
    let mask = 0n
    for (const [i, character] of ALPHABET.entries()) if (one.test(character)) mask |= 1n << BigInt(i)
    return mask
  }

  #atom(mask: bigint): Part {
    const place = this.#masks.push(mask) - 1
    this.#follow.push(new Set())
    const here = new Set([place])
    return { nullable: false, done: false, first: here, last: here, ends: here }
  }

  #link(from: Set<number>, to: Set<number>) {
    for (const one of from)
      for (const other of to) {
        // The same step inside of a repetition and from one round to the next.
        if (this.#follow[one]!.has(other)) this.#twice = true
        this.#follow[one]!.add(other)
      }
  }

  #star(part: Part): Part {
    this.#link(part.last, part.first)
    return part
  }

  #sequence(one: Part, other: Part): Part {
    this.#link(one.last, other.first)
    return {
      nullable: one.nullable && other.nullable,
      done: one.done && other.done,
      first: one.nullable ? both(one.first, other.first) : one.first,
      last: other.nullable ? both(other.last, one.last) : other.last,
      ends: other.done ? both(other.ends, one.ends) : other.ends,
    }
  }

  #eat(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  /** Whether two different ways lead from a place back to it over the same characters. */
  #exponential(): string | null {
    const next = (key: number) => this.#pairs(key)
    const size = this.#masks.length
    for (let place = 0; place < size; place++) {
      if (!this.#follow[place]!.has(place) && !this.#isInLoop(place)) continue
      const start = place * size + place
      const forward = reach([start], next)
      for (const key of forward)
        if (Math.floor(key / size) !== key % size && reach([key], next).has(start)) return 'takes exponential time'
    }
    return null
  }

  #isInLoop(place: number) {
    return reach([...this.#follow[place]!], (one) => this.#follow[one]!).has(place)
  }

  *#pairs(key: number): Generator<number> {
    const size = this.#masks.length
    for (const one of this.#follow[Math.floor(key / size)]!)
      for (const other of this.#follow[key % size]!)
        if (this.#masks[one]! & this.#masks[other]!) yield one * size + other
  }

  /** Whether characters that one loop takes may also lead into a second loop, which takes them too and may fail later. */
  #polynomial({ ends }: Part): string | null {
    const size = this.#masks.length
    const isSafe = (place: number) =>
      ends.has(place) ||
      // It takes everything up to the end, and the end is a match.
      (this.#masks[place] === this.#any &&
        this.#follow[place]!.has(place) &&
        [...this.#follow[place]!].some((next) => this.#masks[next] === END && ends.has(next)))
    const loops = Array.from({ length: size }, (_, place) => place).filter((place) => this.#isInLoop(place))
    const component = (place: number) => {
      const from = reach([place], (one) => this.#follow[one]!)
      return new Set([...from].filter((one) => reach([one], (next) => this.#follow[next]!).has(place)))
    }
    for (const one of loops) {
      const around = component(one)
      const behind = reach([one], (next) => this.#follow[next]!)
      for (const other of loops) {
        if (one === other || !behind.has(other) || isSafe(other)) continue
        // Where a match may end at each round of a loop, the loop cannot fail.
        const within = new Set([...component(other)].filter((place) => !isSafe(place)))
        const key = (a: number, b: number, c: number) => (a * size + b) * size + c
        const follow = this.#follow
        const masks = this.#masks
        const seen = reach([key(one, one, other)], function* (state) {
          const [a, b, c] = [Math.floor(state / size / size), Math.floor(state / size) % size, state % size]
          for (const x of follow[a]!)
            if (around.has(x))
              for (const z of follow[c]!)
                if (within.has(z) && masks[x]! & masks[z]!)
                  for (const y of follow[b]!) if (masks[x]! & masks[y]! & masks[z]!) yield key(x, y, z)
        })
        if (seen.has(key(one, other, other))) return 'takes the square of the time'
      }
    }
    return null
  }
}

const both = (one: Set<number>, other: Set<number>) => new Set([...one, ...other])
const empty = (): Part => ({ nullable: true, done: true, first: new Set(), last: new Set(), ends: new Set() })
const assertion = (): Part => ({ ...empty(), done: false })
const optional = (part: Part): Part => ({ ...part, nullable: true, done: true })

/** What can be reached in one step or more, and the starts. */
function reach(starts: readonly number[], next: (one: number) => Iterable<number>): Set<number> {
  const found = new Set(starts)
  for (const one of found) for (const other of next(one)) found.add(other)
  return found
}
