// Where a span of text may begin and end. All offsets are UTF-16.

/** The span without white space at either end; an empty one if there is nothing else. */
export function trimmed(text: string, from: number, to: number): [start: number, end: number] {
  let start = from
  let end = to
  while (start < end && WHITE_SPACE.test(text.charAt(start))) start++
  while (end > start && WHITE_SPACE.test(text.charAt(end - 1))) end--
  return [start, end]
}

/**
 * The best place to end a span that may not pass `limit`: after a sentence, else after a clause, else between words,
 * else between characters, in its last half. Always greater than `start`, never inside a surrogate pair.
 */
export function sensibleCut(text: string, start: number, limit: number): number {
  const earliest = start + ((limit - start) >> 1)
  const half = text.slice(earliest, limit)
  for (const boundary of CUTS) {
    const at = lastMatchEnd(boundary, half)
    if (at > 0) return earliest + at
  }
  return betweenCharacters(text, start, limit)
}

/** The text, or of one with more than `most` code points the first `most` and an ellipsis. */
export function shortenedTo(text: string, most: number): string {
  if (text.length <= most) return text
  const characters = Array.from(text)
  return characters.length <= most ? text : `${characters.slice(0, most).join('')}…`
}

function lastMatchEnd(pattern: RegExp, text: string): number {
  let end = 0
  for (const match of text.matchAll(pattern)) end = match.index + match[0].length
  return end
}

/** Backs off from the middle of a character with its marks and joiners, unless the character fills the whole span. */
function betweenCharacters(text: string, start: number, limit: number): number {
  let cut = limit
  while (
    cut > start &&
    (insidePair(text, cut) || CONTINUES.test(text.slice(cut, cut + 2)) || text[cut - 1] === '\u200d')
  )
    cut--
  if (cut > start) return cut
  return insidePair(text, limit) ? limit - 1 : limit
}

/** Whether `at` lies between the two halves of a surrogate pair. */
export function insidePair(text: string, at: number): boolean {
  return at > 0 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00
}

const WHITE_SPACE = /\s/
const CUTS = [/[.!?。！？…।؟][\p{Pe}\p{Pf}"']*(?=\s|$)|[。！？]/gu, /[;:,،；：，、](?=\s)|[；：，、]/g, /\S(?=\s)/g]
const CONTINUES = /^[\p{M}\p{Emoji_Modifier}\u200d]/u
