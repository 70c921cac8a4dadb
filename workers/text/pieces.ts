// Cuts long texts into pieces. What replaces characters takes many times the memory of the text until it is done, so it gets
// one piece at a time.

/**
 * The pieces of a text, in order. Each but the last ends with a visible character, if there is one within the length of a piece: no run of
 * blanks, marks or unseen characters is cut, nor a surrogate pair. Where there is none, a run of blanks that collapse and a run of
 * variation selectors are not cut, because each becomes one character or none.
 */
export function* piecesOf(text: string): Generator<string, void> {
  let start = 0
  while (text.length - start > pieceLength) {
    let end = start + pieceLength
    const late = end + pieceLength
    while (end < text.length && !endsVisibly(text, end) && !(end >= late && !isInRun(text, end))) end++
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

/** Whether the characters before and after a place are of one run, or of one pair. */
function isInRun(text: string, at: number) {
  const [before, after] = [text.charCodeAt(at - 1), text.charCodeAt(at)]
  if (collapsing.has(before) && collapsing.has(after)) return true
  // Selectors beyond U+FFFF are in plane 14, as all other characters whose first unit is U+DB40.
  return isIn(before, 0xd800, 0xdbff) || isIn(after, 0xfe00, 0xfe0f) || after === 0xdb40
}

const isIn = (unit: number, first: number, last: number) => unit >= first && unit <= last

/** A carriage return and the line feed after it are one end of a line. */
const collapsing = new Set([0x09, 0x0a, 0x0c, 0x0d, 0x20])

const visible = /[\p{L}\p{N}\p{P}\p{S}]/u

/** UTF-16 units. */
export const pieceLength = 65_536
