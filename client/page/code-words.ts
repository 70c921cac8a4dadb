// Code among words: which of it stays on one line in the narrowest window. Browsers break at hyphens and other
// marks, also between the two hyphens of an option.

/** Characters of code that stay on one line as a whole. */
const LONGEST_WHOLE = 26

export interface CodeWords {
  /** It wraps between its words. */
  isLong: boolean
  /** In order, with the spaces between them. Those that are whole are not broken at a mark. */
  words: { text: string; isWhole: boolean }[]
}

/** The words of a short code are one: it stays on one line anyway. */
export function codeWords(text: string): CodeWords {
  if (text.length <= LONGEST_WHOLE) return { isLong: false, words: [{ text, isWhole: false }] }
  const parts = text.split(/(?<=\s)(?=\S)|(?<=\S)(?=\s)/)
  const words: CodeWords['words'] = []
  for (const part of parts) {
    const isWhole = part.length <= LONGEST_WHOLE && /[^\w.\s]/.test(part)
    const last = words.at(-1)
    if (last && !isWhole && !last.isWhole) last.text += part
    else words.push({ text: part, isWhole })
  }
  return { isLong: true, words }
}
