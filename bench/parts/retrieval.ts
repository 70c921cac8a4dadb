// One page, from its URL to an observation: fetched through the guard over a fresh TLS connection, read on a thread. Beside
// it a bare undici GET of the same page over a fresh connection, which is as fast as it could be. Then what parsing the
// largest pages does to the event loop.
import { readFile } from 'node:fs/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Agent, request } from 'undici'
import { LIMITS } from '../../server/interface/limits.ts'
import { openOutbound } from '../../server/outbound/connection.ts'
import { openThreads, type Threads } from '../../server/threads/pool.ts'
import { observeSource } from '../../workers/retrieval/observation.ts'
import { extractText } from '../../workers/text/page/extraction.ts'
import { openChild } from '../child.ts'
import type { Lab } from '../lab.ts'
import { figure, printHeading, printNote, printRows, quantile } from '../table.ts'

const PAGES = 400
const LARGE_PAGES = 12
const never = new AbortController().signal

export async function benchRetrieval(lab: Lab): Promise<void> {
  await using site = await openChild(lab, 'bench/page.ts', { event: 'page_ready', args: [lab.folder] })
  const { hosts, fixtures, caFile } = site.ready as { hosts: string[]; fixtures: string; caFile: string }
  const ca = await readFile(caFile, 'utf8')
  const port = Number(fixtures.split(',')[0]?.split(':')[1])
  const host = hosts[0] ?? ''
  await using threads = openThreads({ maxThreads: 1 })
  await using outbound = openOutbound({ fixtures: { hosts: new Map([[host, { address: '127.0.0.1', port }]]), ca } })
  const observe = () => observeSource(`https://${host}/long`, { outbound, threads }, { signal: never })
  const pages = lab.quick ? PAGES / 8 : PAGES
  const ours: number[] = []
  const bare: number[] = []
  for (let n = 0; n < 20; n++) await observe()
  for (let n = 0; n < pages; n++) {
    ours.push(await millisecondsOf(observe))
    bare.push(await millisecondsOf(() => bareGet(host, port, ca)))
  }
  printHeading('retrieval', 'one page of an article’s length, one at a time, a fresh TLS connection each')
  printRows([
    ['', 'p50 ms', 'p99 ms'],
    ['URL to observation', figure(quantile(ours, 0.5)), figure(quantile(ours, 0.99))],
    ['bare undici GET of it', figure(quantile(bare, 0.5)), figure(quantile(bare, 0.99))],
    ['ratio', figure(quantile(ours, 0.5) / quantile(bare, 0.5)), figure(quantile(ours, 0.99) / quantile(bare, 0.99))],
  ])
  await measureEventLoop(threads, lab.quick ? 2 : LARGE_PAGES)
}

async function millisecondsOf(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

async function bareGet(host: string, port: number, ca: string) {
  const agent = new Agent({ connect: { ca, servername: host } })
  const { body } = await request(`https://127.0.0.1:${port}/long`, { dispatcher: agent, headers: { host } })
  await body.arrayBuffer()
  await agent.destroy()
}

/** Delay of a 1 ms timer beyond its time, while pages of the largest size allowed are read on the thread. */
async function measureEventLoop(threads: Threads, pages: number) {
  const text = 'The north quay was widened in 1874 for steamers, two years later than planned. '.repeat(5)
  const paragraph = `<p>${text}<a href="/quay">More</a>.</p>\n`
  const page = Buffer.from(paragraph.repeat(Math.floor(LIMITS.decodedBytes / paragraph.length)))
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const read = () =>
    extractText(threads, { body: Uint8Array.from(page), contentEncoding: 'identity', contentType: 'text/html' })
  await read()
  delay.enable()
  for (let n = 0; n < pages; n++) await read()
  delay.disable()
  const p99 = delay.percentile(99) / 1e6
  const aim = p99 < 20 ? 'met' : 'MISSED'
  printNote(`event loop while ${pages} pages of 8 MiB are parsed: p99 ${figure(p99)} ms, aim below 20: ${aim}`)
}
