// Which characters of a page become part of its text. Every function is linear in the length of its input.

/** Removed characters that readers cannot see but programs can: they could carry hidden instructions. */
export interface Unseen {
  /** In UTF-16 units. */
  length: number
}

/**
 * Removes what has no width of its own, and makes every kind of blank a space. Joiners (U+200C, U+200D) stay: Persian,
 * Indic scripts and emoji need them.
 */
export function cleanCharacters(text: string, unseen: Unseen): string {
  return withoutMarks(markCharacters(text, unseen))
}

/**
 * The same, for text that is yet to be laid out. Every blank that does not collapse with those beside it is U+00A0, and
 * U+200B stays: a line break beside it is no blank. `withoutMarks` does the rest.
 */
export function markCharacters(text: string, unseen: Unseen): string {
  if (!special.test(text)) return text
  const legible = text.replace(blanks, '\u00a0').replace(weightless, '')
  const seen = legible.replace(unseeable, '$1')
  unseen.length += legible.length - seen.length
  return seen
}

/**
 * Spaces for U+00A0, nothing for U+200B. By expressions: with a string to look for, the result is a chain of two objects for each
 * place until it is read, which is thirty times the memory.
 */
export function withoutMarks(text: string): string {
  return text.replace(everyNoBreakSpace, ' ').replace(everyZeroWidthSpace, '')
}

const everyNoBreakSpace = /\u00a0/g
const everyZeroWidthSpace = /\u200b/g

/**
 * All characters that are replaced; most texts of most pages have none. U+DB40 is the first unit of all characters of
 * plane 14.
 */
const special =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\0-\x08\x0b\x0e-\x1f\x7f-\x9f\xad\u061c\u1680\u2000-\u200a\u200e\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufeff\uffa0\ufff9-\ufffb\udb40]|[\ufe00-\ufe0f]/

/**
 * All separators but U+0020 and U+00A0, and the vertical tab and next line controls: HTML knows none of these as blanks.
 */
const blanks = /[\v\x85\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/g

/**
 * Common and harmless: soft hyphen, marks and isolates of direction, word joiner, byte order mark.
 */
const weightless = /[\xad\u061c\u200e\u200f\u2060-\u2064\u2066-\u2069\ufeff]/g

/**
 * Controls, overrides of direction, fillers, annotations, tags, and every variation selector but the first in a row.
 */
const unseeable =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2065\u206a-\u206f\u3164\uffa0\ufff9-\ufffb\u{e0000}-\u{e00ff}]|([\ufe00-\ufe0f\u{e0100}-\u{e01ef}])[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]+/gu

/**
 * Normalization form C. Runs of more than 30 combining marks lose the rest first (the limit of Unicode's stream-safe
 * format): putting a run into order takes quadratic time, and no language has such runs.
 */
export function composeCharacters(text: string): string {
  if (!composable.test(text)) return text
  return (mayHoldMarks.test(text) && pileOfMarks.test(text) ? text.replaceAll(topOfPile, '') : text).normalize('NFC')
}

/** Characters below this one are no marks, and are the same in this form. */
const composable = /[\u0300-\uffff]/
/** Scripts with marks of their own, marks for symbols, and all that takes two units. Searched faster than a class. */
const mayHoldMarks = /[\u0300-\u1fff\u20d0-\u20ff\u2c00-\uffff]/
const pileOfMarks = /\p{M}{31}/u
/** In parts, because an expression that repeats a million times has no room to go back. */
const topOfPile = /(?<=\p{M}{30})\p{M}{1,4096}/gu
