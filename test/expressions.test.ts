// No regular expression that reads what strangers send can be made slow by it: pages, reports, and files that a person drops.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { expressionsIn, weaknessOf } from './expressions.ts'

const root = join(import.meta.dirname, '..')
const READERS = ['workers/text/*.ts', 'client/report/*.ts', 'client/page/**/*.ts', 'client/*.ts']

/** Expressions whose input cannot be what makes them slow. */
const HELD: Record<string, string> = {
  '"[^"\\\\]*(?:\\\\.[^"\\\\]*)*"(\\s*:)?': 'runs over valid JSON alone, where each string ends',
  '\\/*$': 'runs over an address that the caller configures',
  '\\s*\\n\\s*': "runs over the caller's own wallet file",
}

t.test('no expression over what strangers send repeats ambiguously', async (t) => {
  const weak: string[] = []
  let count = 0
  for (const file of globSync(READERS, { cwd: root }))
    for (const { source, flags } of expressionsIn(readFileSync(join(root, file), 'utf8'))) {
      count++
      const weakness = source in HELD ? null : weaknessOf(source, flags)
      if (weakness) weak.push(`${file}: /${source}/${flags} ${weakness}`)
    }
  t.same(weak, [])
  t.ok(count > 150, `${count} expressions`)
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
