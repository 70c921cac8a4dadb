// Text fragments (https://wicg.github.io/scroll-to-text-fragment/): a link that makes a browser scroll to a passage and
// highlight it. The directive is tried on the page's text as a browser would try it, and gets context until it finds its
// passage.

export interface TextDirective {
  /** Text just before the passage. */
  prefix?: string
  /** The passage; its first words if there is `end`. */
  start: string
  /** The last words of a passage that is long or goes over several blocks. */
  end?: string
  /** Text just after the passage. */
  suffix?: string
}

/**
 * The shortest directive tried that finds the passage and nothing before it. Where equal passages have equal surroundings
 * no directive can tell them apart, and a browser marks the first of them.
 * @param text the page's text, blocks separated by line breaks
 * @param from offset of the passage in Unicode code points
 * @param to its end, exclusive
 */
export function findTextDirective(text: string, from: number, to: number): TextDirective {
  const page = new Page(text)
  const passage = page.passage(from, to)
  const candidates = [...candidatesFor(page, passage)]
  const finding = candidates.map((directive) => ({ directive, found: page.find(directive, 0) }))
  const right = finding.filter(({ found }) => found?.start === passage.start && found.end === passage.end)
  const only = right.find(({ directive }) => page.find(directive, passage.start + 1) === null)
  return (only ?? right[0])?.directive ?? candidates.at(-1) ?? { start: text.slice(passage.start, passage.end) }
}

/** The address with the directive in its fragment; a fragment that is there already stays in front of it. */
export function fragmentUrl(url: string, { prefix, start, end, suffix }: TextDirective): string {
  const [address = ''] = url.split(':~:')
  const parts = [prefix && `${encode(prefix)}-`, encode(start), end && encode(end), suffix && `-${encode(suffix)}`]
  return `${address}${address.includes('#') ? '' : '#'}:~:text=${parts.filter(Boolean).join(',')}`
}

/** Dashes, commas and ampersands are the syntax of the directive; brackets and quotes would end a link in other texts. */
function encode(text: string): string {
  const percent = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`
  return encodeURIComponent(text.toWellFormed().replace(/\s+/gu, ' ').trim()).replace(/[-!'()*~]/g, percent)
}

interface Span {
  start: number
  end: number
}

interface Bounds {
  /** A word begins where the match begins. */
  startsWord: boolean
  endsWord: boolean
}

function* candidatesFor(page: Page, { start, end }: Span): Generator<TextDirective> {
  const blocks = page.blocksOf({ start, end })
  const first = blocks[0] ?? { start, end }
  const last = blocks.at(-1) ?? first
  const isWhole = blocks.length === 1 && end - start <= MAX_EXACT
  for (const size of CONTEXT) {
    const context = { prefix: page.before(start, size), suffix: page.after(end, size) }
    if (isWhole) yield { ...context, start: page.slice(first) }
    else for (const ends of RANGE) yield { ...context, ...page.ends(first, last, ends) }
  }
}

/** In UTF-16 units: a longer passage is named by its first and last words. */
const MAX_EXACT = 300
/** How much context is tried, and how much of the first and the last block, in UTF-16 units up to the end of a word. */
const CONTEXT = [0, 12, 24, 48, 96, 192]
const RANGE = [24, 48, 96]

/** The text of a page, searched as browsers do: without regard to case, accents, forms of quotes and width of spaces. */
class Page {
  readonly #text: string
  readonly #folded: string
  /** For each unit of the folded text, the unit of the text that it came from. */
  readonly #origins: number[] = []
  /** What is known of places: whether a word goes on over them. */
  readonly #boundaries = new Map<number, boolean>()
  /** Terms that were folded, because each is compared with many places. */
  readonly #terms = new Map<string, string>()
  #attempts = 0

  constructor(text: string) {
    this.#text = text
    const folded: string[] = []
    let at = 0
    let space = true
    for (const char of text) {
      const fold: string = BREAK.test(char) ? '\n' : SPACE.test(char) ? (space ? '' : ' ') : foldChar(char)
      space = fold === '' ? space : fold === ' ' || fold === '\n'
      folded.push(fold)
      for (let i = 0; i < fold.length; i++) this.#origins.push(at)
      at += char.length
    }
    this.#folded = folded.join('')
  }

  slice({ start, end }: Span): string {
    return this.#text.slice(start, end)
  }

  /** Code points to UTF-16 units, without the white space at both ends. */
  passage(from: number, to: number): Span {
    let units = 0
    let points = 0
    const ends: number[] = []
    for (const char of this.#text) {
      if (points === from || points === to) ends.push(units)
      points++
      units += char.length
    }
    const [start = units, end = units] = ends
    return this.#trim({ start, end })
  }

  #trim({ start, end }: Span): Span {
    const passage = this.#text.slice(start, end)
    const trimmed = passage.trimStart()
    return { start: end - trimmed.length, end: end - trimmed.length + trimmed.trimEnd().length }
  }

  /** The parts of a span that lie in one block each. */
  blocksOf({ start, end }: Span): Span[] {
    const blocks: Span[] = []
    for (const { index, 0: line } of this.#text.slice(start, end).matchAll(/[^\n\r\v\f\u2028\u2029]+/g)) {
      const block = this.#trim({ start: start + index, end: start + index + line.length })
      if (block.end > block.start) blocks.push(block)
    }
    return blocks
  }

  /** The first words of one block and the last words of another; of one and the same block, words that do not overlap. */
  ends(first: Span, last: Span, size: number): { start: string; end: string } {
    const half = first.start === last.start ? Math.floor((first.end - first.start) / 2) : Number.POSITIVE_INFINITY
    const length = Math.min(size, half)
    const start = this.#forward(first, length)
    const end = this.#backward(last, length)
    return { start: this.slice(start), end: this.slice(end) }
  }

  /** About so much text before a place, from the same block or else the one before; the rest of a cut word in any case. */
  before(place: number, size: number): string | undefined {
    if (size === 0 && this.#isBoundary(place)) return undefined
    const block = this.blocksOf({ start: Math.max(0, place - WINDOW), end: place }).at(-1)
    return block && this.slice(this.#backward(block, size))
  }

  after(place: number, size: number): string | undefined {
    if (size === 0 && this.#isBoundary(place)) return undefined
    const block = this.blocksOf({ start: place, end: place + WINDOW })[0]
    return block && this.slice(this.#forward(block, size))
  }

  #forward({ start, end }: Span, size: number): Span {
    let to = Math.min(start + Math.max(size, 1), end)
    while (to < end && !this.#isBoundary(to)) to++
    return this.#trim({ start, end: to })
  }

  #backward({ start, end }: Span, size: number): Span {
    let from = Math.max(end - Math.max(size, 1), start)
    while (from > start && !this.#isBoundary(from)) from--
    return this.#trim({ start: from, end })
  }

  /** Whether no word goes on over this place. */
  #isBoundary(place: number): boolean {
    if (place <= 0 || place >= this.#text.length) return true
    const known = this.#boundaries.get(place)
    if (known !== undefined) return known
    const from = Math.max(0, place - WINDOW)
    const segment = words.segment(this.#text.slice(from, place + WINDOW)).containing(place - from)
    const isBoundary = segment?.index === place - from
    this.#boundaries.set(place, isBoundary)
    return isBoundary
  }

  /** The first passage that a browser would mark, from an offset on; null also after too many attempts. */
  find({ prefix, start, end, suffix }: TextDirective, from: number): Span | null {
    for (let at = this.#foldedFrom(from); ; ) {
      const before = prefix === undefined ? null : this.#next(prefix, at, { startsWord: true, endsWord: false })
      if (prefix !== undefined && !before) return null
      const bounds = { startsWord: !before, endsWord: end !== undefined || suffix === undefined }
      const first = before ? this.#match(start, this.#skipSpace(before.end), bounds) : this.#next(start, at, bounds)
      if (!before && !first) return null
      const found = first && this.#complete(first, end, suffix)
      if (found) return { start: this.#origin(found.start), end: this.#endOrigin(found.end) }
      at = (before ?? first)!.start + 1
    }
  }

  #complete(first: Span, end: string | undefined, suffix: string | undefined): Span | null {
    const isFollowed = ({ end }: Span) =>
      suffix === undefined || this.#match(suffix, this.#skipSpace(end), { startsWord: false, endsWord: true }) !== null
    if (end === undefined) return isFollowed(first) ? first : null
    const bounds = { startsWord: true, endsWord: suffix === undefined }
    let last = this.#next(end, first.end, bounds)
    while (last && !isFollowed(last)) last = this.#next(end, last.start + 1, bounds)
    return last && { start: first.start, end: last.end }
  }

  /** The next match of a term, in folded units. */
  #next(term: string, from: number, bounds: Bounds): Span | null {
    const sought = this.#fold(term)
    for (let at = this.#folded.indexOf(sought, from); at >= 0; at = this.#folded.indexOf(sought, at + 1)) {
      if (sought === '' || ++this.#attempts > MAX_ATTEMPTS) return null
      const found = this.#match(term, at, bounds)
      if (found) return found
    }
    return null
  }

  /** A term at one place. It cannot go over the end of a block, because a folded term has no line break. */
  #match(term: string, at: number, { startsWord, endsWord }: Bounds): Span | null {
    const sought = this.#fold(term)
    const end = at + sought.length
    if (!this.#folded.startsWith(sought, at)) return null
    if (startsWord && !this.#isBoundary(this.#origin(at))) return null
    return endsWord && !this.#isBoundary(this.#endOrigin(end)) ? null : { start: at, end }
  }

  #fold(term: string): string {
    const known = this.#terms.get(term)
    if (known !== undefined) return known
    const folded = foldTerm(term)
    this.#terms.set(term, folded)
    return folded
  }

  #skipSpace(place: number): number {
    let at = place
    while (this.#folded[at] === ' ' || this.#folded[at] === '\n') at++
    return at
  }

  #origin(folded: number): number {
    return this.#origins[folded] ?? this.#text.length
  }

  #endOrigin(folded: number): number {
    const last = this.#origins[folded - 1] ?? 0
    return last + String.fromCodePoint(this.#text.codePointAt(last) ?? 0).length
  }

  #foldedFrom(place: number): number {
    const at = this.#origins.findIndex((origin) => origin >= place)
    return at < 0 ? this.#folded.length : at
  }
}

const foldChar = (char: string) =>
  char
    .normalize('NFKD')
    .replace(/[\p{M}\u00ad]/gu, '')
    .replace(/[\u2018\u2019\u201a\u201b]/g, "'")
    .replace(/[\u201c\u201d\u201e\u201f]/g, '"')
    .toLowerCase()

const foldTerm = (term: string) => Array.from(term.trim().replace(/\s+/gu, ' '), foldChar).join('')

/** Most attempts in all searches for one passage, so that a very repetitive page does not take unlimited time. */
const MAX_ATTEMPTS = 2000
const words = new Intl.Segmenter('en', { granularity: 'word' })
/** In UTF-16 units: more than any word, and than the longest context. */
const WINDOW = 400
const BREAK = /[\n\r\v\f\u2028\u2029]/
const SPACE = /\s/u
