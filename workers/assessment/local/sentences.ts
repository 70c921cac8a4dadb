// Cuts a text into sentences, the unit in which the verifier chooses, reads and quotes.

/** A sentence without the blanks around it. Offsets are UTF-16 units of the text. */
export interface Sentence {
  text: string
  start: number
  end: number
}

/** Blanks after `.`, `!` or `?` that stand before a capital, a digit or an opening mark. */
const BREAK = /(?<=[.!?])\s+(?=["“([]?[A-Z0-9])/g

/** The sentences of a text in its order: its lines, each cut at every BREAK. Empty ones are left out. */
export function sentencesOf(text: string): Sentence[] {
  const found: Sentence[] = []
  let lineStart = 0
  for (const line of text.split('\n')) {
    let from = 0
    for (const gap of line.matchAll(BREAK)) {
      add(found, line, lineStart, from, gap.index)
      from = gap.index + gap[0].length
    }
    add(found, line, lineStart, from, line.length)
    lineStart += line.length + 1
  }
  return found
}

function add(found: Sentence[], line: string, lineStart: number, from: number, to: number) {
  const piece = line.slice(from, to)
  const text = piece.trim()
  if (text === '') return
  const start = lineStart + from + piece.length - piece.trimStart().length
  found.push({ text, start, end: start + text.length })
}
