// Every source file opens with a comment that says what the file is for. The entries, which are named after what they start,
// are excepted.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..')
const files = globSync('{server,workers,client,bench}/**/*.ts', { cwd: root }).sort()
const entries = /^(server\/(main|dev|demo|cli)|workers\/main|client\/cli|bench\/(main|chaos|eval))\.ts$/

/** A first comment of fewer words says no more than the file's name. */
const FEWEST_WORDS = 4

/** The first comment of a source, without its marks; empty when the source opens with code or with a directive. */
function headerOf(source: string): string {
  const [opening = ''] =
    source.replace(/^#!.*\n/, '').match(/^(?:\/\/(?! biome-ignore| @ts-).*\n)+|^\/\*[\s\S]*?\*\//) ?? []
  return opening
    .replace(/^\/\*+|\*\/$/g, '')
    .replace(/^ *(?:\/\/|\*)/gm, '')
    .replace(/\s+/g, ' ')
    .trim()
}

/** A header that says something: some words, and a sentence's end. */
function isHeader(text: string): boolean {
  return text.split(' ').length >= FEWEST_WORDS && /[.:?]/.test(text)
}

t.test('every file says what it is for', async (t) => {
  const silent = files.filter(
    (file) => !entries.test(file) && !isHeader(headerOf(readFileSync(join(root, file), 'utf8'))),
  )
  t.same(silent, [], `${silent.length} of ${files.length} files`)
})

t.test('a file header is distinguished from code, directives and labels', async (t) => {
  t.ok(isHeader(headerOf('// The end of the chain: one row.\nimport x from "x"\n')))
  t.ok(isHeader(headerOf('#!/usr/bin/env node\n// The command line of the client, for people.\n')))
  t.ok(isHeader(headerOf('/**\n * The end of the chain,\n * as one row.\n */\n')))
  for (const source of [
    "import t from 'tap'\n// Not the first thing in this file.\n",
    '\n// Not the first line of this file.\n',
    '// biome-ignore lint/a/b: it is needed here.\n',
    '// chain.ts\n',
    '',
  ])
    t.notOk(isHeader(headerOf(source)), source)
})
