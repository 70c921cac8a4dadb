// `countersign check` through the whole service: a report of 60 citations with planted faults, in Markdown and in HTML.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { micromark } from 'micromark'
import { gfm, gfmHtml } from 'micromark-extension-gfm'
import t from 'tap'
import { register } from '../quotes/harness.ts'
import { startSystem } from '../system.ts'
import { buildReport, PAGES } from './check-report.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')

async function run(args: string[], { input = '', env = {} }: { input?: string; env?: Record<string, string> } = {}) {
  const child = spawn(process.execPath, [CLI, ...args], { env: { PATH: process.env.PATH, ...env } })
  child.stdin.end(input)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, stdout, stderr }
}

interface Found {
  kind: string
  status: string
  source_url: string
  line: number
  column: number
}

t.test('a report of 60 citations', async (t) => {
  await using system = await startSystem({ pages: PAGES })
  const reader = await register(system, 'pro')
  const folder = t.testdir({ 'key.txt': reader.key })
  const path = (name: string) => join(folder, name)
  chmodSync(path('key.txt'), 0o600)
  const { markdown, expected } = buildReport(system.site.url(''))
  writeFileSync(path('report.md'), markdown)
  const check = (name: string, ...options: string[]) =>
    run(['check', path(name), '--service', system.url('/'), '--key', path('key.txt'), ...options])

  await t.test('in Markdown every fault is found, and nothing else', async (t) => {
    t.equal(expected.length, 60)
    const { code, stdout, stderr } = await check('report.md', '--json')
    t.equal(stderr, '')
    t.equal(code, 1)
    const { citations, pages } = JSON.parse(stdout) as { citations: Found[]; pages: number }
    t.same(
      citations.map(({ source_url: url, status }) => ({ url, status })),
      expected,
    )
    t.equal((await reader.used()).pages, pages, 'each page was asked for once')
  })

  writeFileSync('/tmp/pk/out.txt', (await check('report.md')).stdout)
  await t.test('in HTML the same', async (t) => {
    const html = micromark(markdown, { extensions: [gfm()], htmlExtensions: [gfmHtml()] })
    writeFileSync(path('report.html'), `<!doctype html><html><body>${html}</body></html>`)
    const { stdout } = await check('report.html', '--json')
    const { citations } = JSON.parse(stdout) as { citations: Found[] }
    t.same(
      citations.map(({ source_url: url, status }) => ({ url, status })),
      expected,
    )
  })
})
