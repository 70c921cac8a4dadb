// `node bench/fidelity.ts`: how close extracted text comes to what a browser shows. Each set is counted with the case of letters and
// without it, because `text-transform` does not change the text of a page here; and lines with runs of blanks as one blank and as they
// are, because only no-break spaces stay as many as Chromium shows.
import { hash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { composeCharacters } from '../workers/text/characters.ts'
import { Lines } from '../workers/text/page/lines.ts'
import { addVisibleText } from '../workers/text/page/visible-text.ts'
import { readCall, refuse } from './program.ts'

interface Sample {
  id: string
  html: string
  gold: string
}

const NAME = 'node bench/fidelity.ts'
const HALVES = ['look', 'report']
const { options: values } = await readCall(NAME, {
  summary: 'measure how close extracted text comes to what a browser shows',
  operands: [],
  usage: '--data PATH... [--diff] [--half look|report]',
  about:
    'PATH is a .jsonl or .jsonl.gz file, or a folder of such files. Rows are pages with the `document.body.innerText` of Chromium,\n' +
    '{id, html, chromium_innertext}, or small cases, {id, html, chromium_body_innertext}; other files are passed over.',
  examples: ['node bench/fidelity.ts --data pages.jsonl.gz --half report'],
  exitStatus: '0 good, 2 wrong usage.',
  options: {
    data: { type: 'string', value: 'PATH', multiple: true, help: 'a file, or a folder of files; repeatable' },
    diff: { type: 'boolean', default: false, help: 'prints what differs' },
    half: {
      type: 'string',
      value: 'HALF',
      help: 'one half of the pages, by the digest of their id: failures are looked at in `look`, and reported of `report`',
    },
  },
})
if (values.half !== undefined && !HALVES.includes(values.half))
  refuse(NAME, `--half ${values.half} is none of ${HALVES.join(', ')}.`)
if (!values.data) refuse(NAME, 'Without --data there are no pages.')
const files = values.data.flatMap((path) =>
  statSync(path).isDirectory() ? readdirSync(path).map((name) => join(path, name)) : path,
)

for (const file of files.filter((name) => /\.jsonl(?:\.gz)?$/.test(name))) {
  const bytes = readFileSync(file)
  const found = rows(file.endsWith('.gz') ? gunzipSync(bytes) : bytes)
  const [first = {}] = found
  if ('chromium_body_innertext' in first) {
    measureSmallCases(found.map(({ id, html, chromium_body_innertext: gold }) => ({ id, html, gold })))
  } else if ('chromium_innertext' in first) {
    const pages = found.map(({ id, html, chromium_innertext: gold }) => ({ id, html, gold }))
    measurePages(basename(file), values.half ? pages.filter(({ id }) => halfOf(id) === values.half) : pages)
  }
}

function halfOf(id: string) {
  return Number.parseInt(hash('sha256', id).slice(0, 1), 16) % 2 === 0 ? 'look' : 'report'
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

function measurePages(name: string, pages: Sample[]) {
  console.log(`${name}: ${pages.length} pages`)
  for (const [how, cased] of [
    ['with case', (text: string) => text],
    ['case folded', (text: string) => text.toLowerCase()],
  ] as const) {
    const total = { common: 0, words: 0, goldWords: 0, lines: 0, exact: 0, kept: 0, keptLines: 0, same: 0, perfect: 0 }
    for (const { id, html, gold } of pages) {
      const extracted = extract(html)
      const text = cased(fold(extracted))
      const expected = cased(fold(gold))
      const own = countWords(text)
      const theirs = countWords(expected)
      const lines = longLines(expected)
      const ownLines = new Set(text.split('\n'))
      const missed = lines.filter((line) => !ownLines.has(line))
      const ownRuns = new Set(longLines(cased(withSpaces(extracted))))
      const runs = longLines(cased(withSpaces(gold)))
      const common = [...own].reduce((n, [word, times]) => n + Math.min(times, theirs.get(word) ?? 0), 0)
      total.common += common
      total.words += sum(own)
      total.goldWords += sum(theirs)
      total.lines += lines.length
      total.exact += lines.length - missed.length
      total.keptLines += runs.length
      total.kept += runs.filter((line) => ownRuns.has(line)).length
      total.same += text === expected ? 1 : 0
      total.perfect += common === sum(own) && common === sum(theirs) && missed.length === 0 ? 1 : 0
      if (values.diff && how === 'case folded') printDifferences(id, own, theirs, missed)
    }
    console.log(
      `  ${how}: words P ${percent(total.common, total.words)}, R ${percent(total.common, total.goldWords)} of ${total.goldWords}; ` +
        `lines of 25 characters or more ${percent(total.exact, total.lines)} exact, with runs of blanks kept ` +
        `${percent(total.kept, total.keptLines)}; ${total.perfect} pages without a difference in these, ${total.same} with all lines the same`,
    )
  }
}

/** Before it is cut to 100,000 code points, which is not a question of fidelity. */
function extract(html: string) {
  const lines = new Lines()
  addVisibleText(html, lines, { length: 0 }, { length: 0 })
  return composeCharacters(lines.toString())
}

/** What normalization makes of blanks and of characters without width is made of the browser's text too. */
function fold(text: string) {
  return withSpaces(text)
    .replace(/[ \t]+/g, ' ')
    .replace(/\s*\n\s*/g, '\n')
    .trim()
}

function withSpaces(text: string) {
  return text
    .normalize('NFC')
    .replace(/[\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, '')
    .replace(/[\xa0\u2000-\u200a\u202f\u3000]/g, ' ')
}

function longLines(text: string) {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.length >= 25)
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
