// No regular expression that reads what strangers send can be made slow by it: pages, reports, packages, calls, and files that a
// person drops.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withoutBlanks } from '../client/evidence/warc.ts'
import { linksIn, withoutMarkdownLinks } from '../client/wrappers/grading.ts'
import { expressionsIn, weaknessOf } from './expressions.ts'

const root = join(import.meta.dirname, '..')
const READERS = ['workers/**/*.ts', 'client/**/*.ts', 'server/**/*.ts']

/** What reads nothing of strangers. */
const OWN: Record<string, string> = {
  'server/demo.ts': 'reads what this program prints on the machine of a developer',
  'server/pages/guide/*.ts': "reads this project's own documents",
}

const CONFIGURED = 'runs over an address that is configured'
const ONCE = 'begins once in each run of what it repeats'

/** Expressions whose input cannot be what makes them slow: what bounds it, by file and source. */
const HELD: Record<string, Record<string, string>> = {
  'client/batch/log-file.ts': { '\\0+$': "runs over the end of the program's own file" },
  'client/client.ts': { '\\/*$': CONFIGURED },
  'client/commands/answers.ts': { '\\W+$': "runs over the names of this file's own table" },
  'client/commands/files.ts': { ", [a-z]+(?: '.*')?$": 'runs over what Node says of a file that the caller names' },
  'client/outside-time.ts': { '\\/*$': CONFIGURED },
  'client/wallet.ts': { '\\s*\\n\\s*': "runs over the caller's own wallet file" },
  'server/accounts/address-key.ts': { '%.*$': 'runs over an address in a header, which holds no line break' },
  'server/config/addresses.ts': { '\\/+$': CONFIGURED },
  'server/http/health.ts': { '^bearer +(.+)$': 'runs over a header, which holds no line break' },
  'server/interface/price.ts': { '0+$': 'runs over four digits' },
  'server/operate/result-audit.ts': { '(?<!\\\\)(?:\\\\\\\\)*\\\\ud[89a-f]': ONCE },
  'server/receipts/witness-list.ts': { '\\/+$': CONFIGURED },
  'server/verification/claim-reading.ts': {
    '\\n|(?<=[\\p{L}\\p{N}]{3}[.!?])\\s+(?=\\p{Lu})': ONCE,
    '[.,;:!?)\\]]+$': 'a context has 1,000 characters at most',
  },
  'workers/assessment/local/windows.ts': { '(?<=[.!?])\\s+(?=["“([]?[A-Z0-9])': ONCE },
  'workers/assessment/semantic/injection.ts': {
    '(?<!\\p{L})(?:\\p{L}[\\s.\\-·|/_]){4,}\\p{L}(?!\\p{L})': 'matches wherever it has repeated five times',
    '\\p{L}[\\p{L}\\p{Nd}$@!|]*|[\\p{Nd}$@!|]+\\p{L}[\\p{L}\\p{Nd}$@!|]*':
      'a line has 1,000 UTF-16 units and a claim 2,000 characters at most',
  },
  'workers/assessment/semantic/withdrawal.ts': {
    '\\s*(?:\\[?(?:\\.{3}|…)\\]?|\\[[^\\]]*\\])\\s*': 'a claim has 2,000 characters at most',
  },
  'workers/retrieval/page-quality.ts': {
    '\\p{Nd}.*\\p{L}|\\p{L}.*\\p{Nd}|\\t|\\p{L}\\s?[:：]\\s?[\\p{L}\\p{Nd}]':
      'a suspect page has 6,000 UTF-16 units at most',
  },
}

function expressionsOf(file: string) {
  return expressionsIn(readFileSync(join(root, file), 'utf8'))
}

t.test('no expression over what strangers send repeats ambiguously', async (t) => {
  for (const glob of [...READERS, ...Object.keys(OWN)]) t.ok(globSync(glob, { cwd: root }).length > 0, glob)
  const weak: string[] = []
  const held = new Set<string>()
  for (const file of globSync(READERS, { cwd: root, exclude: Object.keys(OWN) }))
    for (const { source, flags } of expressionsOf(file)) {
      const weakness = weaknessOf(source, flags)
      if (weakness && HELD[file]?.[source]) held.add(`${file}: ${source}`)
      else if (weakness) weak.push(`${file}: /${source}/${flags} ${weakness}`)
    }
  t.same(weak, [])
  const listed = Object.entries(HELD).flatMap(([file, of]) => Object.keys(of).map((source) => `${file}: ${source}`))
  t.same([...held].sort(), listed.sort(), 'each expression that is held is there, and would be weak')
})

t.test('expressions are judged as they run', async (t) => {
  const slow: [RegExp, string][] = [
    [/^((?:[A-Za-z0-9-]+:[^\n]*\r?\n)+)\r?\n([\s\S]*)$/, 'exponential'],
    [/(a+)+$/, 'already repeated'],
    [/(?:a|b+)*c/, 'already repeated'],
    [/^(?:a|a)*b/, 'exponential'],
    [/\s+$/u, 'square'],
    [/\/\*[\s\S]*?\*\//g, 'square'],
    [/^\s*\(?\s*x/, 'square'],
    [/x(?=(?:a|a)*b)/, 'exponential'],
  ]
  for (const [{ source, flags }, weakness] of slow) t.match(weaknessOf(source, flags), weakness, source)
  for (const { source, flags } of [
    /\s+/g,
    /^a+b/,
    /"(?:[^"\\]|\\.)*"?/g,
    /[\s\S]*?(?:\*\/|$)/g,
    /^(?:a+,)*b/,
    /[a-z]{2,}/,
  ])
    t.equal(weaknessOf(source, flags), null, source)
})

t.test('the literals of a file are found, and nothing else', async (t) => {
  const code = 'const a = b / c / d // /x/\nconst e = "/y/"; f(/[/"]z/g, `/t/\u0024{g(/u/)}/v/`)\nreturn /w/.test(h)'
  t.same(
    expressionsIn(code).map(({ source, flags }) => `/${source}/${flags}`),
    ['/[/"]z/g', '/u/', '/w/'],
  )
})

/** All texts of at most so many of the parts. */
function* textsOf(parts: readonly string[], most: number): Generator<string> {
  yield ''
  if (most > 0) for (const text of textsOf(parts, most - 1)) for (const part of parts) yield text + part
}

t.test('what is read in linear time without an expression is what the square one finds', async (t) => {
  const differ = (parts: readonly string[], most: number, one: (text: string) => string, other: typeof one) =>
    [...textsOf(parts, most)].filter((text) => one(text) !== other(text))
  const trimmed = (text: string) => text.replace(/^[ \t]+|[ \t]+$/g, '')
  t.same(differ([' ', '\t', 'a', '\n', '\u00a0'], 5, withoutBlanks, trimmed), [])

  const words = (text: string) => text.replace(/\[([^\]]*)\]\(\s*<?https?:\/\/[^)]*\)/g, '$1')
  const parts = ['[', '](', '](https://', '](<http://', ']', ')', 'a']
  t.same(differ(parts, 6, withoutMarkdownLinks, words), [])

  const links = (text: string) =>
    (text.match(/https:\/\/[^\s<>"'`\])]+/g) ?? []).map((link) => link.replace(/[.,;:!?*_]+$/, ''))
  t.same(
    differ(
      ['https://', 'a', '.', '*', ' ', '/'],
      5,
      (text) => String(linksIn(text)),
      (text) => String([...new Set(links(text))]),
    ),
    [],
  )
})
