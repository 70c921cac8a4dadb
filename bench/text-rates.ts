// The rates at which bytes become text, beside parsers and the usual recipe with cheerio, on generated pages and on pages of files; and
// the time and memory that a hostile page takes.
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { Readability } from '@mozilla/readability'
import { load } from 'cheerio'
import { convert } from 'html-to-text'
import { JSDOM } from 'jsdom'
import { parse } from 'parse5'
import { openThreads } from '../server/threads/pool.ts'
import { exponentOf, sizesUpTo } from '../test/growth.ts'
import { readers } from '../test/readers.ts'
import { extractText, type PageBytes } from '../workers/text/page/extraction.ts'
import { extract } from '../workers/text/page/text-thread.ts'
import { compete } from './rounds.ts'
import { figure, printHeading, printNote, printStandings } from './table.ts'

/**
 * Pages per second: ours alone, through a pool, and the peers'. cheerio gets no work but parsing and its own `text()`.
 * Each file of `data` is a set of pages that run one after the other.
 */
export async function benchText({ quick = false, data = [] as string[] } = {}): Promise<void> {
  await using threads = openThreads({ maxThreads: 1 })
  const sets = Object.entries(buildPages()).map(([name, body]) => ({ name, bodies: [body] }))
  for (const file of data) sets.push({ name: basename(file), bodies: readPages(file) })
  for (const { name, bodies } of sets) {
    const bytes = bodies.reduce((sum, body) => sum + body.length, 0)
    const repeat = (run: (body: Uint8Array<ArrayBuffer>) => unknown) => () =>
      ratePerSecond(quick ? 300 : 1500, run, bodies)
    const standings = await compete(quick ? 1 : 3, [
      { what: 'extraction: decoded, hashed, normalized, measured', run: repeat((body) => extract(page(body))) },
      { what: 'the same, in a thread', run: repeat((body) => extractText(threads, page(Uint8Array.from(body)))) },
      { what: 'parse5 alone', run: repeat((body) => parse(new TextDecoder().decode(body))), aim: 0.8 },
      { what: 'cheerio: load, remove scripts and styles, text()', run: repeat(cheerioText), aim: 1.1 },
      { what: 'cheerio: load, body text()', run: repeat(cheerioRawText) },
      { what: 'html-to-text', run: repeat(htmlToText) },
      ...(bodies.length > 1 ? [] : [{ what: 'jsdom and Readability, main content only', run: repeat(readable) }]),
    ])
    printHeading(`text, ${name}`, `${figure(bytes / bodies.length / 1000)} kB a page`)
    printStandings(standings)
    printNote(`${figure((standings[0]!.rate * bytes) / bodies.length / 1e6)} MB/s`)
  }
}

const page = (body: Uint8Array<ArrayBuffer>): PageBytes => ({
  body,
  contentEncoding: 'identity',
  contentType: 'text/html; charset=utf-8',
})

function cheerioText(body: Uint8Array) {
  const $ = load(new TextDecoder().decode(body))
  $('script, style, noscript').remove()
  return $('body').text()
}

const cheerioRawText = (body: Uint8Array) => load(new TextDecoder().decode(body))('body').text()

const htmlToText = (body: Uint8Array) => convert(new TextDecoder().decode(body))

function readable(body: Uint8Array) {
  const { window } = new JSDOM(new TextDecoder().decode(body))
  const article = new Readability(window.document).parse()
  window.close()
  return article?.textContent
}

/** Of pages, one after the other, over and over. The first runs are for the compiler. */
async function ratePerSecond<T>(milliseconds: number, run: (body: T) => unknown, bodies: readonly T[]) {
  const warm = performance.now() + Math.max(milliseconds / 3, 1000)
  while (performance.now() < warm) for (const body of bodies) await run(body)
  const started = performance.now()
  let done = 0
  for (; performance.now() < started + milliseconds; done += bodies.length) for (const body of bodies) await run(body)
  return (done * 1000) / (performance.now() - started)
}

function readPages(file: string) {
  const rows = gunzipSync(readFileSync(file)).toString().trim().split('\n')
  return rows.map((row) => Uint8Array.from(Buffer.from(JSON.parse(row).html)))
}

/** Pages of the make of an article, of a long reference work and of an application with much script and style. */
function buildPages() {
  const script = `<script>${'window.state = {"items":[1,2,3],"ready":true}; '.repeat(300)}</script>`
  const rules = Array.from(
    { length: 400 },
    (_, i) => `.c${i} > .d${i % 20}, #e${i} { display: ${i % 9 ? 'block' : 'none'} }`,
  )
  const menu = `<nav><ul>${'<li><a href="/section" class="c1 link">Section</a></li>'.repeat(40)}</ul></nav>`
  const sentence =
    'The <a href="/quay">north quay</a> was widened in 1874 for <em>steamers</em> &mdash; 21&nbsp;metres. '
  const paragraphs = (n: number) => `<div class="c9 d"><p>${sentence.repeat(5)}</p></div>\n`.repeat(n)
  const table = (n: number) =>
    `<table>${'<tr><td>1874<td class="num">21<td><a href="/x">Kelby</a><td>harbour'.repeat(n)}</table>`
  const cards = '<div class="card c3"><div class="d1 d"><span>New</span><h3>Pier</h3><p>Text</p></div></div>'.repeat(
    400,
  )
  const document = (head: string, body: string) =>
    Uint8Array.from(
      Buffer.from(`<!doctype html><html><head><title>Kelby</title>${head}</head><body>${body}</body></html>`),
    )
  return {
    article: document(script, menu + paragraphs(30)),
    reference: document('', menu + (paragraphs(40) + table(120)).repeat(10)),
    application: document(`<style>${rules.join('\n')}</style>${script.repeat(8)}`, menu + cards + script.repeat(8)),
  }
}

/** In a process of its own, so that memory is that of one input. */
export async function runHostile(reader: string, input: string): Promise<void> {
  const { limit, inputs, read } = readers[reader]!
  const build = inputs[input]!
  await read(build(limit / 64))
  const points: [number, number][] = []
  for (const size of sizesUpTo(limit)) {
    const text = build(size)
    const { user, system } = process.cpuUsage()
    await read(text)
    const spent = process.cpuUsage({ user, system })
    points.push([size, Math.max(LITTLE_MS, (spent.user + spent.system) / 1000)])
  }
  const megabytes = process.resourceUsage().maxRSS / 1024
  const [, ms = 0] = points.at(-1) ?? []
  console.log(
    `exponent ${exponentOf(points).toFixed(2)}  ${figure(ms)} ms  ${figure(megabytes)} MB  ${reader}: ${input}`,
  )
}

/** Less says nothing about growth. */
const LITTLE_MS = 5
