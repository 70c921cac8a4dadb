// What a buyer waits for under the local verifier: one buyer of a page that is kept, beside the verdict alone; fifty buyers at once; and
// `countersign batch`. Each with the time in every stage, as the worker logs it.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { generatePrivateKey } from 'viem/accounts'
import { assessLocally } from '../../workers/assessment/local/assessment.ts'
import { loadVerifier } from '../../workers/assessment/local/verifier.ts'
import { readVerifierFiles } from '../../workers/assessment/local/weights.ts'
import { openChild } from '../child.ts'
import { followToEnd } from '../crowd/buyers.ts'
import { type Lab, openClient } from '../lab.ts'
import { signPayments } from '../orders.ts'
import { closedLoop, median } from '../rounds.ts'
import { figure, printHeading, printNote, printRows, quantile } from '../table.ts'
import { openSource, type Source } from '../worker-harness.ts'

/** From the paid POST to the result, of the time of the verdict alone. */
const AIM = 1.3
const BUYERS = 50
/** Of the fifty: one in two buys one of these pages, the others a page of their own. */
const SHARED_PAGES = 5
const ROWS_PER_PAGE = 10
const VERIFY = '/api/agent/v1/verify-source'
const CLI = join(import.meta.dirname, '../../client/cli.ts')
/** By the names under which the worker logs them, in the order in which they run. */
const STAGES = { observe: 'page', assess: 'verdict', intend: 'intent', settle: 'settlement', complete: 'completion' }
type Seconds = Partial<Record<keyof typeof STAGES, number>>

interface House {
  service: string
  source: Source
  client: pg.Client
  /** Seconds in each stage, by request. */
  spent: Map<string, Seconds>
}

export async function benchWaiting(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const house = await openHouse(lab, opened)
  const counts = lab.quick ? { alone: 5, crowd: 50, pages: 5 } : { alone: 40, crowd: 300, pages: 100 }
  printHeading('waiting', 'local verifier, milliseconds, offline mode, short page')
  await compareWithVerdict(house, counts.alone)
  await timeCrowd(house, counts.crowd)
  await timeBatch(lab, house, counts.pages)
}

async function openHouse(lab: Lab, opened: AsyncDisposableStack): Promise<House> {
  const source = opened.use(await openSource(lab))
  const url = await lab.makeDatabase()
  const env = { DATABASE_URL: url, ASSESSMENT: 'local', ...source.env }
  const spent: House['spent'] = new Map()
  const heard = (line: Record<string, unknown>) => {
    if (line.event === 'verification_completed') spent.set(String(line.request_id), line.seconds as Seconds)
  }
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env }))
  opened.use(await openChild(lab, 'workers/main.ts', { event: 'worker_started', env, heard }))
  const client = await openClient(url, opened)
  const house = { service: String(api.ready.address), source, client, spent }
  // The weights may still be read, and the first verdicts compile code.
  for (const payment of await signPayments(5)) await buy(house, payment, source.nextUrl('/'))
  return house
}

let claims = 0
/** Each claim is another one, because a verdict on the same text and claim is kept. */
const nextClaim = () => `The harbour was opened in ${1000 + claims++} by the county engineer.`

interface Bought {
  id: string
  /** From the paid POST to the result. */
  ms: number
  result: { source: { normalized_text: string } }
}

/** Buys one verdict. A service without capacity is asked again when it says so. */
async function buy({ service }: House, payment: string, source_url: string, claim = nextClaim()): Promise<Bought> {
  const headers = {
    'content-type': 'application/json',
    'idempotency-key': randomUUID(),
    'payment-signature': payment,
    prefer: 'wait=25',
  }
  const body = JSON.stringify({ source_url, claim })
  const began = performance.now()
  let answer = await fetch(new URL(VERIFY, service), { method: 'POST', headers, body })
  while (answer.status === 429 || answer.status === 503) {
    await answer.body?.cancel()
    await pause(1000 * Number(answer.headers.get('retry-after')))
    answer = await fetch(new URL(VERIFY, service), { method: 'POST', headers, body })
  }
  const last = await followToEnd(answer, {}, AbortSignal.timeout(TIMEOUT_MS))
  if (last.status !== 200) throw new Error(`a buyer got ${last.status}: ${await last.text()}`)
  const result = (await last.json()) as Bought['result'] & { request_id: string }
  return { id: result.request_id, ms: performance.now() - began, result }
}

const TIMEOUT_MS = 600_000

/** In turns: a purchase, and the verdict on the same text and claim in this process. */
async function compareWithVerdict(house: House, count: number) {
  await using verifier = await loadVerifier(readVerifierFiles())
  const page = house.source.nextUrl('/')
  const [first, ...payments] = await signPayments(count + 1)
  const { result } = await buy(house, first ?? '', page)
  const passage = result.source.normalized_text
  await assessLocally(verifier, passage, nextClaim())
  const [waited, alone]: number[][] = [[], []]
  const bought: Bought[] = []
  for (const payment of payments) {
    const claim = nextClaim()
    const purchase = await buy(house, payment, page, claim)
    bought.push(purchase)
    waited?.push(purchase.ms)
    const began = performance.now()
    await assessLocally(verifier, passage, claim)
    alone?.push(performance.now() - began)
  }
  await printStages(house, `one buyer, a page that is kept, ${count} purchases`, bought)
  const ratio = median(waited ?? []) / median(alone ?? [])
  printRows([
    ['from the paid POST to the result, p50', figure(median(waited ?? []))],
    ['the verdict alone, p50', figure(median(alone ?? []))],
  ])
  printNote(
    `p50 of a purchase: ${figure(ratio)} of the verdict, aim ${AIM} at most: ${ratio <= AIM ? 'met' : 'MISSED'}`,
  )
}

async function timeCrowd(house: House, count: number) {
  const { source } = house
  const shared = Array.from({ length: SHARED_PAGES }, () => source.nextUrl('/'))
  const payments = await signPayments(count)
  const bought: Bought[] = []
  let taken = 0
  const rate = await closedLoop(
    { callers: BUYERS },
    () => payments.pop(),
    async (payment) => {
      const n = taken++
      const page = n % 2 === 0 ? shared[(n / 2) % SHARED_PAGES]! : source.nextUrl('/')
      bought.push(await buy(house, payment, page))
    },
  )
  await printStages(
    house,
    `${BUYERS} buyers at once, half of them on ${SHARED_PAGES} pages, ${count} purchases`,
    bought,
  )
  printNote(`${figure(rate)} purchases a second`)
}

async function timeBatch(lab: Lab, house: House, pages: number) {
  const [input, wallet] = [join(lab.folder, 'waiting.csv'), join(lab.folder, 'waiting.key')]
  const urls = Array.from({ length: pages }, () => house.source.nextUrl('/'))
  const rows = urls.flatMap((url) => Array.from({ length: ROWS_PER_PAGE }, () => `${url},${nextClaim()}`))
  await writeFile(input, ['source_url,claim', ...rows, ''].join('\n'))
  await writeFile(wallet, generatePrivateKey(), { mode: 0o600 })
  const before = new Set(house.spent.keys())
  const options = ['--budget', String(rows.length), '--out', join(lab.folder, 'waiting'), '--yes', '--json']
  const args = [CLI, 'batch', input, '--service', house.service, '--wallet', wallet, ...options]
  const began = performance.now()
  const child = spawn(process.execPath, args, { env: lab.env })
  const [, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  if (code !== 0) throw new Error(`countersign batch ended with ${code}: ${stderr}`)
  const seconds = (performance.now() - began) / 1000
  const bought = [...house.spent.keys()].filter((id) => !before.has(id)).map((id) => ({ id }))
  await printStages(house, `countersign batch: ${rows.length} rows on ${pages} pages`, bought)
  printNote(`${figure(seconds)} s from the command to its end, ${figure(rows.length / seconds)} rows a second`)
}

/** The time from admission to the end, and its parts. What no stage explains is the queue: the wait for a place in the worker. */
async function printStages({ client, spent }: House, what: string, bought: readonly { id: string }[]) {
  const { rows } = await client.query<{ id: string; ms: number }>(TOTALS, [bought.map(({ id }) => id)])
  const parts = rows.map(({ id, ms }) => {
    const stages = spent.get(id) ?? {}
    const inStages = Object.keys(STAGES).map((stage) => 1000 * (stages[stage as keyof typeof STAGES] ?? 0))
    const queue = Math.max(0, ms - inStages.reduce((sum, part) => sum + part, 0))
    return [ms, queue, ...inStages]
  })
  const column = (n: number) => parts.map((part) => part[n] ?? 0)
  const names = ['admission to end', 'queue', ...Object.values(STAGES)]
  printRows([
    [what, 'p50', 'p99', 'mean'],
    ...names.map((name, n): [string, ...string[]] => {
      const values = column(n)
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length
      return [`  ${name}`, figure(median(values)), figure(quantile(values, 0.99)), figure(mean)]
    }),
  ])
}

const TOTALS = `select id::text, extract(epoch from changed_at - accepted_at)::float8 * 1000 ms
  from verification_requests where id = any($1::uuid[])`
