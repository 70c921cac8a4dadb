// Converts offsets between code points and UTF-16 units.
/** Translates between UTF-16 indices, which JavaScript counts in, and code points, which the interface counts in. */
export interface CodePointIndex {
  /** The code point that begins at this UTF-16 index, by number. An index inside a surrogate pair is a RangeError. */
  toCodePoint(utf16: number): number
  /** The UTF-16 index at which this code point begins. */
  toUtf16(codePoint: number): number
  /** Code points in the text. Both functions accept the end of the text too. */
  readonly length: number
}

/**
 * Reads the text once and stores the positions of surrogate pairs, of which most texts have none. Every lookup is then a
 * binary search. The text must be well formed, else a TypeError: a lone surrogate has no code point and no UTF-8.
 */
export function codePointIndex(text: string): CodePointIndex {
  if (!text.isWellFormed()) throw new TypeError('The text holds a lone surrogate.')
  const pairs = pairPositions(text)
  const length = text.length - pairs.length

  return {
    length,
    toCodePoint(utf16) {
      requireWithin(utf16, text.length)
      const before = countBelow(pairs, utf16, 0)
      if (before > 0 && pairs[before - 1] === utf16 - 1) throw new RangeError(`${utf16} is inside a surrogate pair.`)
      return utf16 - before
    },
    toUtf16(codePoint) {
      requireWithin(codePoint, length)
      return codePoint + countBelow(pairs, codePoint, 1)
    },
  }
}

/** UTF-16 indices of the high surrogates, ascending. */
function pairPositions(text: string): Uint32Array {
  const first = text.search(/[\ud800-\udbff]/)
  if (first < 0) return new Uint32Array(0)
  const positions: number[] = []
  for (let i = first; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0xd800 && unit <= 0xdbff) positions.push(i++)
  }
  return Uint32Array.from(positions)
}

/**
 * How many pairs begin before a place. Counted in UTF-16 (`drift` 0) pair i begins at its position; counted in code
 * points (`drift` 1) at its position less the i pairs before it.
 */
function countBelow(positions: Uint32Array, place: number, drift: 0 | 1): number {
  let low = 0
  let high = positions.length
  while (low < high) {
    // At least `low` and below `high`, so there is a position.
    const middle = (low + high) >>> 1
    if (positions[middle]! - drift * middle < place) low = middle + 1
    else high = middle
  }
  return low
}

function requireWithin(place: number, end: number) {
  if (!Number.isInteger(place) || place < 0 || place > end) throw new RangeError(`${place} is not within 0 to ${end}.`)
}
