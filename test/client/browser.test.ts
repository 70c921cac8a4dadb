// The client in a real browser: the compiled modules verify the golden vectors as they are, by an import map and without a
// bundler, and the links of /citation scroll to their quote.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import t, { type Test } from 'tap'
import { findTextDirective, fragmentUrl } from '../../client/citation.ts'
import { sharedBrowser, noBrowser as skip } from '../browser.ts'

const ROOT = join(import.meta.dirname, '../..')

const IMPORTS = {
  '@noble/ed25519': '/modules/@noble/ed25519/index.js',
  '@noble/hashes/': '/modules/@noble/hashes/',
  'countersign-sdk/': '/dist/',
}
const PAGE = `<!doctype html><meta charset="utf-8"><title>vectors</title>
<script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>`
const TYPES: Record<string, string> = {
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.jsonl': 'application/jsonl',
}

/** Compiles the client as `npm pack` does, beside a link to what it depends on. */
async function compile(t: Test): Promise<string> {
  const folder = t.testdir({})
  mkdirSync(join(folder, 'dist'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'modules'))
  symlinkSync(join(ROOT, 'test/vectors'), join(folder, 'vectors'))
  const tsc = join(ROOT, 'node_modules/.bin/tsc')
  const options = ['--outDir', join(folder, 'dist'), '--checkers', '1']
  const child = spawn(tsc, ['-p', join(ROOT, 'client/sdk/tsconfig.json'), ...options], { stdio: 'inherit' })
  const [code] = await once(child, 'close')
  t.equal(code, 0)
  return folder
}

/** Serves the files of a folder, and the pages given. */
async function serve(t: Test, folder: string, pages: Record<string, string>): Promise<string> {
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0] ?? ''
    const page = pages[path]
    if (page !== undefined) return void response.writeHead(200, { 'content-type': 'text/html' }).end(page)
    const file = join(folder, path)
    if (!existsSync(file) || !TYPES[extname(file)]) return void response.writeHead(404).end()
    response.writeHead(200, { 'content-type': TYPES[extname(file)] }).end(readFileSync(file))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => new Promise((closed) => server.close(closed).closeAllConnections()))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/**
 * Runs in the page, as text: for each case the checks that should fail, and the checks that the verifier reports as
 * failed.
 */
const VERIFY = `async () => {
  const { verifyAttestation, verifyChain, verifyReceipt, verifyResult } = await import('countersign-sdk/verification.js')
  const load = async (name) => (await fetch('/vectors/' + name + '.json')).json()
  const failing = ({ checks }) => checks.filter(({ ok }) => !ok).map(({ name }) => name)
  const found = []
  const judge = (file, { name, fails }, verdict) => found.push({ name: file + ': ' + name, fails, found: failing(verdict) })
  const attestation = await load('attestation')
  for (const one of attestation.cases)
    judge('attestation', one, verifyAttestation(one.attestation, { keys: one.pins ?? attestation.pins }))
  const result = await load('result')
  for (const one of result.cases) judge('result', one, verifyResult(one.result, { keys: result.pins }))
  const { pins, vkey, cases } = await load('receipt')
  for (const { name, receipt, fails, pins: own, ...more } of cases)
    judge('receipt', { name, fails }, verifyReceipt(receipt, { keys: own ?? pins, vkey, ...more }))
  const chain = await load('chain')
  for (const { name, attestations, fails, pins: own, ...more } of chain.cases)
    judge('chain', { name, fails }, verifyChain(attestations, { keys: own ?? chain.pins, ...more }))

  const said = (file, name, expected, verdict) =>
    found.push({ name: file + ': ' + name, fails: [expected], found: [verdict.ok ? 'ok' : verdict.reason] })
  const { verifyLease } = await import('countersign-sdk/lease.js')
  const lease = await load('lease')
  for (const { name, answer, options, expect } of lease.cases)
    said('lease', name, expect, verifyLease(answer, { ...lease.options, keys: lease.keys, ...options }))
  const { verifyAlert } = await import('countersign-sdk/alert.js')
  const alert = await load('alert')
  for (const { name, headers, body, options, expect } of alert.cases)
    for (const bytes of [body, new TextEncoder().encode(body)])
      said('alert', name, expect, verifyAlert({ headers, body: bytes, ...alert.options, ...options }))
  const { verifyDocument } = await import('countersign-sdk/document.js')
  const stream = (text) => new Blob([text]).stream()
  const exported = await load('export')
  for (const { name, text, fails } of exported.cases) {
    const names = failing(await verifyDocument(stream(text), { keys: exported.pins, vkey: exported.vkey }))
    found.push({ name: 'export: ' + name, fails: fails.slice(0, 1), found: fails.length > 0 ? names.filter((one) => one === fails[0]) : names })
  }
  const { checkpointFault } = await import('countersign-sdk/chain/checkpoint.js')
  const checkpoint = await load('checkpoint')
  for (const { name, note, good, vkey } of checkpoint.cases)
    found.push({ name: 'checkpoint: ' + name, fails: [good], found: [checkpointFault(note, vkey ?? checkpoint.vkey) === null] })
  const log = await load('log')
  const whole = await (await fetch('/vectors/log.jsonl')).text()
  const { verifyExport } = await import('countersign-sdk/verification.js')
  const pinned = { keys: [log.pin], vkey: log.vkey, head: log.head }
  found.push({ name: 'log', fails: [], found: failing(await verifyExport(stream(whole), pinned)) })
  const torn = failing(await verifyExport(stream(whole.replace('"label":', '"label" :')), pinned))
  found.push({ name: 'log, changed', fails: ['format'], found: torn.slice(0, 1) })
  return found
}`

interface Judged {
  name: string
  fails: unknown[]
  found: unknown[]
}

t.test('the compiled modules verify the golden vectors in Chromium', { skip }, async (t) => {
  const url = await serve(t, await compile(t), { '/': PAGE })
  const browser = await sharedBrowser()
  await using page = await browser.newPage()
  const errors: Error[] = []
  page.on('pageerror', (error) => void errors.push(error))
  await page.goto(`${url}/`)
  const judged = await page.evaluate<Judged[]>(`(${VERIFY})()`)
  t.same(errors, [])
  for (const file of ['attestation', 'result', 'receipt', 'chain', 'lease', 'alert', 'export', 'checkpoint', 'log'])
    t.ok(judged.filter(({ name }) => name.startsWith(file)).length > 1, file)
  t.ok(judged.some(({ fails }) => fails.length === 0))
  for (const { name, fails, found } of judged) t.same(found, fails, name)
})

t.test('a link with a text fragment leads to its quote in Chromium', { skip }, async (t) => {
  const filler = Array.from({ length: 120 }, (_, i) => `Paragraph ${i} says nothing of the matter.`)
  const quote = 'The bridge was opened, at last - in 1932 & for good.'
  const first = `A guide of 1950 wrote: ${quote}`
  const second = `The county archive has it: ${quote}`
  const lines = [...filler, first, ...filler, second, ...filler]
  const html = lines.map((line) => `<p>${line.replace('&', '&amp;')}</p>`).join('\n')
  const url = await serve(t, t.testdir({}), { '/long': `<!doctype html><meta charset="utf-8">${html}` })
  const browser = await sharedBrowser()
  const text = lines.join('\n')
  /** The numbers of the paragraphs that are in view, after the browser has gone to the address. */
  const seen = async (address: string) => {
    const page = await browser.newPage({ viewport: { width: 800, height: 400 } })
    await page.goto(address)
    // The browser searches for the text after layout; two frames later it has scrolled.
    const visible = await page.evaluate<
      number[]
    >(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(
      [...document.querySelectorAll('p')].flatMap((p, i) => {
        const { top, bottom } = p.getBoundingClientRect()
        return bottom > 0 && top < innerHeight ? [i] : []
      })))))`)
    await page.close()
    return visible
  }
  for (const line of [first, second]) {
    const at = text.indexOf(line) + line.indexOf(quote)
    const link = fragmentUrl(`${url}/long`, findTextDirective(text, at, at + quote.length))
    const visible = await seen(link)
    t.ok(visible.includes(lines.indexOf(line)), `${link} shows ${visible}`)
    t.notOk(visible.includes(0))
  }
  const absent = await seen(`${url}/long#:~:text=${encodeURIComponent('not on this page')}`)
  t.ok(absent.includes(0), 'a quote that is not there leads to the top')
})
