// Cuts long texts into pieces. What replaces characters takes many times the memory of the text until it is done, so it gets
// one piece at a time.

/**
 * The pieces of a text, in order. Each but the last ends with a visible character: no run of blanks, marks or unseen
 * characters is cut, nor a surrogate pair.
 */
export function* piecesOf(text: string): Generator<string, void> {
  let start = 0
  while (text.length - start > pieceLength) {
    let end = start + pieceLength
    while (end < text.length && !endsVisibly(text, end)) end++
    yield text.slice(start, end)
    start = end
  }
  yield text.slice(start)
}

function endsVisibly(text: string, end: number) {
  const point = text.codePointAt(end - 1) ?? 0
  // A high surrogate has its code point from the unit after it, and a low one has none without the unit before it.
  if (point > 0xffff) return false
  const isLow = point >= 0xdc00 && point <= 0xdfff
  return visible.test(isLow ? text.slice(end - 2, end) : String.fromCharCode(point))
}

const visible = /[\p{L}\p{N}\p{P}\p{S}]/u

/** UTF-16 units. */
export const pieceLength = 65_536
