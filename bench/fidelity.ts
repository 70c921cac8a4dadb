// How close extracted text comes to what a browser shows:  node bench/fidelity.ts --data DIR [--diff]
//
// DIR holds innertext-wpt.jsonl (rows {id, html, chromium_body_innertext}) and pages30.jsonl.gz (rows {id, html,
// chromium_innertext}): pages with the `document.body.innerText` of Chromium. The data stay outside the repository.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { composeCharacters } from '../workers/text/characters.ts'
import { Lines } from '../workers/text/lines.ts'
import { addVisibleText } from '../workers/text/visible-text.ts'

interface Sample {
  id: string
  html: string
  gold: string
}

const { values } = parseArgs({ options: { data: { type: 'string' }, diff: { type: 'boolean', default: false } } })
if (!values.data) throw new Error('Usage: node bench/fidelity.ts --data DIR [--diff]')

measureSmallCases(readCases(`${values.data}/innertext-wpt.jsonl`))
measurePages(readPages(`${values.data}/pages30.jsonl.gz`))

function readCases(file: string): Sample[] {
  return rows(readFileSync(file)).map(({ id, html, chromium_body_innertext: gold }) => ({ id, html, gold }))
}

function readPages(file: string): Sample[] {
  return rows(gunzipSync(readFileSync(file))).map(({ id, html, chromium_innertext: gold }) => ({ id, html, gold }))
}

function rows(jsonLines: Buffer) {
  return jsonLines
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

function measureSmallCases(cases: Sample[]) {
  let strict = 0
  let folded = 0
  for (const { html, gold } of cases) {
    const text = extract(html)
    if (text === gold) strict++
    if (fold(text) === fold(gold)) folded++
    if (values.diff && text !== gold) {
      console.log(fold(text) === fold(gold) ? '  folded' : '! differs', JSON.stringify({ html, gold, text }))
    }
  }
  console.log(`small cases: ${strict} of ${cases.length} exact, ${folded} with blanks and line breaks folded`)
}

function measurePages(pages: Sample[]) {
  const total = { common: 0, words: 0, goldWords: 0, lines: 0, exact: 0, within: 0, same: 0 }
  for (const { id, html, gold } of pages) {
    const text = fold(extract(html))
    const expected = fold(gold)
    const own = countWords(text)
    const theirs = countWords(expected)
    const lines = expected.split('\n').filter((line) => line.length >= 25)
    const ownLines = new Set(text.split('\n'))
    const missed = lines.filter((line) => !ownLines.has(line))
    const flat = text.replaceAll('\n', ' ')
    total.common += [...own].reduce((n, [word, times]) => n + Math.min(times, theirs.get(word) ?? 0), 0)
    total.words += sum(own)
    total.goldWords += sum(theirs)
    total.lines += lines.length
    total.exact += lines.length - missed.length
    total.within += lines.filter((line) => flat.includes(line)).length
    total.same += text === expected ? 1 : 0
    if (values.diff) printDifferences(id, own, theirs, missed)
  }
  console.log(`pages: ${pages.length}, ${total.goldWords} words, ${total.same} pages with all lines the same`)
  console.log(
    `words: precision ${percent(total.common, total.words)}, recall ${percent(total.common, total.goldWords)}`,
  )
  console.log(
    `lines of 25 characters or more: ${percent(total.exact, total.lines)} exact, ` +
      `${percent(total.within, total.lines)} found within the text`,
  )
}

/** Before it is cut to 100,000 code points, which is not a question of fidelity. */
function extract(html: string) {
  const lines = new Lines()
  addVisibleText(html, lines, { length: 0 }, { length: 0 })
  return composeCharacters(lines.toString())
}

/** What normalization makes of blanks and of characters without width is made of the browser's text too. */
function fold(text: string) {
  return text
    .normalize('NFC')
    .replace(/[\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, '')
    .replace(/[ \t\xa0\u2000-\u200a\u202f\u3000]+/g, ' ')
    .replace(/\s*\n\s*/g, '\n')
    .trim()
}

function countWords(text: string) {
  const words = new Map<string, number>()
  for (const word of text.match(/[\p{L}\p{N}]+/gu) ?? []) words.set(word, (words.get(word) ?? 0) + 1)
  return words
}

function sum(words: Map<string, number>) {
  return [...words.values()].reduce((total, n) => total + n, 0)
}

function percent(part: number, whole: number) {
  return `${((100 * part) / whole).toFixed(2)} %`
}

function printDifferences(id: string, own: Map<string, number>, gold: Map<string, number>, missed: string[]) {
  const beyond = (a: Map<string, number>, b: Map<string, number>) =>
    [...a].filter(([word, n]) => n > (b.get(word) ?? 0)).map(([word, n]) => `${word}×${n - (b.get(word) ?? 0)}`)
  const extra = beyond(own, gold)
  const lost = beyond(gold, own)
  if (extra.length + lost.length + missed.length === 0) return
  console.log(`${id}: extra ${extra.join(' ') || '-'} | missing ${lost.join(' ') || '-'}`)
  for (const line of missed) console.log(`  line missing: ${JSON.stringify(line)}`)
}
