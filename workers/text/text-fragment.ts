// Links to a passage of a page by a text fragment (https://wicg.github.io/scroll-to-text-fragment/): a browser that opens one
// scrolls to the passage and marks it.

/** A longer passage is named by its first and its last words. */
const MAX_WHOLE = 300
/** Words that name the beginning or the end of a long passage, or come before an ambiguous one. */
const SOME_WORDS = 5
/** UTF-16 units that are read to find these words. */
const MAX_SNIPPET = 120

/**
 * The text directive of a passage, `text=...`, percent-encoded. Browsers find whole words only, so a passage that begins or
 * ends inside a word is widened to the whole word. Empty for a passage of white space. Pure.
 * @param start UTF-16 range of the passage in the text
 */
export function textDirective(text: string, start: number, end: number): string {
  const [from, to] = wholeWords(text, start, end)
  const passage = text.slice(from, to).trim()
  if (passage === '') return ''
  const isWhole = passage.length <= MAX_WHOLE && !passage.includes('\n')
  const first = isWhole ? passage : firstWords(firstLine(passage))
  const last = isWhole ? '' : lastWords(passage.slice(Math.max(first.length, passage.lastIndexOf('\n') + 1)))
  const prefix = isEarlier(text, from, first) ? lastWords(lineBefore(text, from)) : ''
  return `text=${prefix && `${encode(prefix)}-,`}${encode(first)}${last && `,${encode(last)}`}`
}

/** The URL with the directive, if there is one. An element that its fragment names stays. */
export function linkTo(url: string, directive: string): string {
  if (directive === '') return url
  const [page = '', fragment = ''] = url.split(/#(.*)/s)
  return `${page}#${fragment.split(':~:', 1)[0]}:~:${directive}`
}

/** `-`, `,` and `&` have a meaning in a directive; the others would end a link in Markdown. */
function encode(text: string): string {
  return encodeURIComponent(text.trim()).replace(/[-!'()*]/g, (character) => `%${hexOf(character)}`)
}

const hexOf = (character: string) => character.charCodeAt(0).toString(16).toUpperCase()

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })
/** UTF-16 units of the line before and after a place that are read to find the edges of its word. */
const CONTEXT = 100

function wholeWords(text: string, start: number, end: number): [number, number] {
  const [before, after] = [wordAt(text, start), wordAt(text, end - 1)]
  return [Math.min(start, before?.start ?? start), Math.max(end, after?.end ?? end)]
}

/** The word that holds this place; null between words. */
function wordAt(text: string, place: number): { start: number; end: number } | null {
  const from = Math.max(text.lastIndexOf('\n', place) + 1, place - CONTEXT)
  const around = firstLine(text.slice(from, place + CONTEXT))
  const found = segmenter.segment(around).containing(place - from)
  if (!found?.isWordLike) return null
  return { start: from + found.index, end: from + found.index + found.segment.length }
}

function firstLine(text: string): string {
  const end = text.indexOf('\n')
  return end < 0 ? text : text.slice(0, end)
}

function firstWords(line: string): string {
  let words = 0
  for (const { index, segment, isWordLike } of segmenter.segment(line.slice(0, MAX_SNIPPET)))
    if (isWordLike && ++words === SOME_WORDS) return line.slice(0, index + segment.length)
  return line.slice(0, MAX_SNIPPET).toWellFormed()
}

function lastWords(line: string): string {
  const read = line.slice(-MAX_SNIPPET)
  const words = [...segmenter.segment(read)].filter(({ isWordLike }) => isWordLike)
  return read.slice(words.at(-SOME_WORDS)?.index ?? 0)
}

/** The text before the place, on its line, or on the line before. */
function lineBefore(text: string, place: number): string {
  return (
    text
      .slice(Math.max(0, place - MAX_SNIPPET), place)
      .trimEnd()
      .split('\n')
      .at(-1) ?? ''
  )
}

/** Whether a browser, which ignores case, may find the words before this place. */
function isEarlier(text: string, place: number, words: string): boolean {
  return text.slice(0, place).toLowerCase().includes(words.toLowerCase())
}
