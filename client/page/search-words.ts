// The words of a text as the search compares them: those of its index, and those that are sought.

/** They are in every text, and find nothing. */
const COMMON = new Set(
  'a all an and any are as at be but by can for from has have how if in is it its no not of on one or so that the then there they this to was what when where which who will with you your'.split(
    ' ',
  ),
)

/** In lower case, each once. Those that every text has are left out, unless there is no other. */
export function wordsOf(text: string): string[] {
  const all = [...new Set(text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [])]
  const telling = all.filter((word) => !COMMON.has(word))
  return telling.length > 0 ? telling : all
}
