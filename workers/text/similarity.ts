// Finds the passage most similar to a quote that is not in the text, and its similarity. Words and their order count;
// punctuation, white space and case do not.
import { unspaced } from './scripts.ts'

/** A text with its words, read once for all quotes. */
export interface Words {
  text: string
  /** A number for each word; equal words have the same. */
  ids: readonly number[]
  /** UTF-16 ranges of the words. */
  starts: readonly number[]
  ends: readonly number[]
  known: Map<string, number>
}

/** A passage by its UTF-16 range. */
export interface Passage {
  start: number
  end: number
  similarity: number
}

/** Reads the words of a text. In scripts without spaces each character is a word. Linear. */
export function wordsOf(text: string, known = new Map<string, number>()): Words {
  const words: Words & { ids: number[]; starts: number[]; ends: number[] } = {
    ...{ text, known, ids: [], starts: [], ends: [] },
  }
  for (const { 0: word, index } of text.matchAll(WORD)) {
    const folded = word.toLowerCase()
    const id = known.get(folded) ?? known.size
    known.set(folded, id)
    words.ids.push(id)
    words.starts.push(index)
    words.ends.push(index + word.length)
  }
  return words
}

const WORD = new RegExp(`${unspaced.source}|(?:(?!${unspaced.source})[\\p{L}\\p{N}\\p{M}])+`, 'gu')

/** Dice's coefficient (0 to 1) over words and pairs of neighbouring words, so that the words and their order count. */
export function similarityOf(one: string, other: string): number {
  const first = wordsOf(one)
  return compare(first.ids, wordsOf(other, first.known).ids)
}

function compare(one: readonly number[], other: readonly number[]): number {
  const a = countGrams(one)
  let common = 0
  for (const gram of gramsOf(other)) {
    const left = a.get(gram) ?? 0
    if (left === 0) continue
    a.set(gram, left - 1)
    common++
  }
  const total = gramCount(one.length) + gramCount(other.length)
  return total === 0 ? 0 : Math.round((2000 * common) / total) / 1000
}

const gramCount = (words: number) => Math.max(0, 2 * words - 1)

/** A number larger than the count of words of any text. */
const PAIR = 2 ** 24
/** A word and the pair that it ends, as numbers. */
const pairOf = (before: number, word: number) => (before + 1) * PAIR + word

function* gramsOf(ids: readonly number[]) {
  let before: number | null = null
  for (const id of ids) {
    yield id
    if (before !== null) yield pairOf(before, id)
    before = id
  }
}

function countGrams(ids: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const gram of gramsOf(ids)) counts.set(gram, (counts.get(gram) ?? 0) + 1)
  return counts
}

/** A passage less similar than this is another passage, not a changed quote. */
export const MIN_SIMILARITY = 0.5
/** Places of the text that are compared with a quote word by word. */
const PLACES = 3
/** UTF-16 units of a passage. */
const MAX_PASSAGE = 1000

/**
 * The passage most like the quote; null if none reaches MIN_SIMILARITY. A window of the quote's length finds the places that
 * share most words with it. Only there the words are aligned, which takes the square of the quote's length.
 */
export function findNearest(quote: string, words: Words): Passage | null {
  const { ids } = wordsOf(quote, words.known)
  let best: Passage | null = null
  for (const [from, to] of likelyPlaces(ids, words.ids)) {
    const [first, last] = align(ids, words.ids, from, to)
    const passage = passageOf(quote, words, first, last)
    const similarity = compare(ids, words.ids.slice(first, passage.last + 1))
    if (similarity >= MIN_SIMILARITY && similarity > (best?.similarity ?? 0))
      best = { start: passage.start, end: passage.end, similarity }
  }
  return best
}

/** Ranges of words (end exclusive), the likeliest first. Linear in the text. */
function likelyPlaces(quote: readonly number[], text: readonly number[]): [number, number][] {
  const length = Math.min(quote.length, text.length)
  if (length === 0) return []
  const shared = countShared(quote, text, length)
  const margin = Math.ceil(length / 2) + 2
  const places: [number, number][] = []
  while (places.length < PLACES) {
    let most = 0
    for (const count of shared) if (count > most) most = count
    if (most === 0) break
    const best = shared.indexOf(most)
    places.push([Math.max(0, best - margin), Math.min(text.length, best + length + margin)])
    shared.fill(0, Math.max(0, best - margin), best + margin)
  }
  return places
}

/** For each window of `length` words, by its first word, how many words and pairs it shares with the quote. */
function countShared(quote: readonly number[], text: readonly number[], length: number): Uint16Array {
  const wanted = countGrams(quote)
  const shared = new Uint16Array(text.length - length + 1)
  let common = 0
  // `wanted` has how many more of a word or pair the quote has than the window; below 0 the window has more.
  const add = (gram: number) => {
    const left = wanted.get(gram)
    if (left === undefined) return
    if (left > 0) common++
    wanted.set(gram, left - 1)
  }
  const remove = (gram: number) => {
    const left = wanted.get(gram)
    if (left === undefined) return
    if (left >= 0) common--
    wanted.set(gram, left + 1)
  }
  let before: number | null = null
  for (const [i, word] of text.entries()) {
    add(word)
    if (before !== null && length > 1) add(pairOf(before, word))
    before = word
    const gone = i - length
    if (gone >= 0) {
      // `gone` and the word after it are before `i` or at it.
      const first = text[gone]!
      remove(first)
      if (length > 1) remove(pairOf(first, text[gone + 1]!))
    }
    if (gone >= -1) shared[gone + 1] = common
  }
  return shared
}

/** Cheaper than an insertion or a deletion, so that a changed word at an edge is part of the passage. */
const CHANGED = 9
const ADDED = 10

/**
 * The first and the last word of the part of the text that takes the fewest changes to become the quote: Sellers' algorithm,
 * with the place at which each alignment begins.
 */
function align(quote: readonly number[], text: readonly number[], from: number, to: number): [number, number] {
  const rows = quote.length
  const cost = Uint32Array.from({ length: rows + 1 }, (_, row) => row * ADDED)
  const begin = new Uint32Array(rows + 1).fill(from)
  let least = Number.POSITIVE_INFINITY
  let found: [number, number] = [from, from]
  for (let i = from; i < to; i++) {
    let diagonal = 0
    let diagonalBegin = i
    let above = 0
    let aboveBegin = i + 1
    for (let row = 1; row <= rows; row++) {
      // Both have a number for each row. No loop of a quote check runs more often than this one, so it does not test that.
      const left = cost[row]!
      const leftBegin = begin[row]!
      let next = diagonal + (quote[row - 1] === text[i] ? 0 : CHANGED)
      let nextBegin = diagonalBegin
      if (left + ADDED < next) {
        next = left + ADDED
        nextBegin = leftBegin
      }
      if (above + ADDED < next) {
        next = above + ADDED
        nextBegin = aboveBegin
      }
      diagonal = left
      diagonalBegin = leftBegin
      above = cost[row] = next
      aboveBegin = begin[row] = nextBegin
    }
    if (above >= least || aboveBegin > i) continue
    least = above
    found = [aboveBegin, i]
  }
  return found
}

/**
 * The UTF-16 range of these words, with the punctuation around them where the quote has some too. `first` and `last` are numbers
 * of words of the text, so both have a range.
 */
function passageOf(quote: string, { text, starts, ends }: Words, first: number, last: number) {
  const own = wordsOf(quote)
  let start = starts[first]!
  for (let room = quote.slice(0, own.starts[0]).trim().length; room > 0; room--)
    if (isPunctuation(text[start - 1])) start--
  while (last > first && ends[last]! - start > MAX_PASSAGE) last--
  let end = Math.min(ends[last]!, safeEnd(text, start + MAX_PASSAGE))
  for (let room = quote.slice(own.ends.at(-1)).trim().length; room > 0; room--)
    if (isPunctuation(text[end]) && end - start < MAX_PASSAGE) end++
  return { start, end, last }
}

/** Does not cut a surrogate pair. */
function safeEnd(text: string, end: number): number {
  return /[\ud800-\udbff]/.test(text[end - 1] ?? '') ? end - 1 : end
}

/** Not a surrogate, so that no pair is cut. */
const isPunctuation = (unit: string | undefined) => unit !== undefined && /[\p{P}\p{S}]/u.test(unit)
