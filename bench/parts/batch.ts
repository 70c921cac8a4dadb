// `countersign batch` over HTTP: killed with SIGKILL and resumed, and compared with the ledger of the service; and its
// printed rate compared with a bare loop of the stock x402 client with the same concurrency.
import { spawn } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { openChild } from '../child.ts'
import { type Lab, openClient } from '../lab.ts'
import { closedLoop, compete } from '../rounds.ts'
import { printHeading, printNote, printStandings } from '../table.ts'
import { openSource, type Source } from '../worker-harness.ts'

const AIM = 0.9
const CONCURRENCY = 8
const KILLS = 5
const CENTS = 3
const CLAIM = 'The harbour was opened in 1874 by the county engineer.'
const CLI = join(import.meta.dirname, '../../client/cli.ts')

export async function benchBatch(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const count = lab.quick ? 100 : 2000
  const source = opened.use(await openSource(lab))
  const url = await lab.makeDatabase()
  const env = { DATABASE_URL: url, RATE_LIMIT_PER_MINUTE: '0', ...source.env }
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env }))
  opened.use(await openChild(lab, 'workers/main.ts', { event: 'worker_started', env }))
  const client = await openClient(url, opened)
  const service = String(api.ready.address)
  const wallet = join(lab.folder, 'wallet.key')
  await writeFile(wallet, generatePrivateKey(), { mode: 0o600 })
  const settled = async () => {
    const { rows } = await client.query(`select count(*)::int settled from payment_ledger where outcome = 'settled'`)
    return rows[0].settled as number
  }
  const start = async (rows: number) => {
    const [name, out] = [join(lab.folder, `${randomUUID()}.csv`), join(lab.folder, randomUUID())]
    await writeFile(name, csvOf(source, rows))
    const budget = ((rows * CENTS) / 100).toFixed(2)
    const options = ['--budget', budget, '--out', out, '--concurrency', String(CONCURRENCY), '--yes', '--json']
    const args = [CLI, 'batch', name, '--service', service, '--wallet', wallet, ...options]
    return { out, budget, run: (...more: string[]) => spawn(process.execPath, [...args, ...more], { env: lab.env }) }
  }

  printHeading('batch', `${count} rows over HTTP, offline mode, concurrency ${CONCURRENCY}`)
  const before = await settled()
  const killed = await start(count)
  const places = Array.from({ length: KILLS }, () => randomInt(1, count)).sort((a, b) => a - b)
  for (const [index, place] of places.entries())
    await killAt(killed.run(...(index > 0 ? ['--resume'] : [])), join(killed.out, 'results.jsonl'), place)
  const { code, stdout, stderr } = await ended(killed.run('--resume'))
  const said = JSON.parse(stdout || '{}') as { completed?: number; spent_usd?: string }
  const lines = (await readFile(join(killed.out, 'results.jsonl'), 'utf8')).trim().split('\n')
  const ids = new Set(lines.map((line) => (JSON.parse(line) as { id: string }).id))
  const found = { code, results: lines.length, rows: ids.size, settlements: (await settled()) - before }
  const wanted = { code: 0, results: count, rows: count, settlements: count }
  if (JSON.stringify(found) !== JSON.stringify(wanted) || said.spent_usd !== killed.budget)
    throw new Error(`${JSON.stringify(found)}, spent ${said.spent_usd} of ${killed.budget}: ${stderr}`)
  printNote(
    `killed at ${places.join(', ')} results and resumed: ${found.results} results of ${found.rows} rows, ` +
      `${found.settlements} settlements, spent ${said.spent_usd} of ${killed.budget} USDC`,
  )

  const part = lab.quick ? 100 : 500
  const pay = stockFetch()
  printStandings(
    await compete(lab.rounds, [
      {
        what: 'countersign batch, the rate that it prints',
        run: async () => printedRate(await ended((await start(part)).run())),
      },
      {
        what: 'a bare loop of wrapFetchWithPayment, which keeps nothing',
        run: () => {
          let left = part
          const next = () => (left-- > 0 ? source.nextUrl('/batch/') : undefined)
          return closedLoop({ callers: CONCURRENCY }, next, (source_url) => buy(pay, service, source_url))
        },
        aim: AIM,
      },
    ]),
  )
}

function csvOf(source: Source, count: number): string {
  const rows = Array.from({ length: count }, (_, i) => `row${i},${source.nextUrl('/batch/')},${CLAIM}`)
  return ['id,source_url,claim', ...rows, ''].join('\n')
}

type Process = ReturnType<typeof spawn>

async function ended(child: Process) {
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'close')])
  return { code: code as number | null, stdout, stderr }
}

/** Kills the process as soon as so many results are in the file, and waits for its end. */
async function killAt(child: Process, file: string, results: number): Promise<void> {
  const end = ended(child)
  const kill = async () => {
    const contents = await readFile(file, 'utf8').catch(() => '')
    if (contents.split('\n').length > results) child.kill('SIGKILL')
  }
  const timer = setInterval(() => void kill(), POLL_MS)
  await end.finally(() => clearInterval(timer))
}

function printedRate({ stderr }: { stderr: string }): number {
  const rate = [...stderr.matchAll(/([\d.]+)\/s/g)].at(-1)?.[1]
  if (rate === undefined) throw new Error(`No rate was printed: ${stderr}`)
  return Number(rate)
}

function stockFetch(): typeof fetch {
  const account = privateKeyToAccount(generatePrivateKey())
  return wrapFetchWithPayment(
    fetch,
    new x402Client().register('eip155:84532', new ExactEvmScheme(account)),
  ) as typeof fetch
}

/** Pays, and asks again under the same key until the result is there. */
async function buy(pay: typeof fetch, service: string, source_url: string): Promise<void> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID(), prefer: 'wait=25' }
  const request = { method: 'POST', headers, body: JSON.stringify({ source_url, claim: CLAIM }) }
  const url = new URL('/api/agent/v1/verify-source', service)
  let response = await pay(url, request)
  while (response.status === 202) {
    await response.arrayBuffer()
    const { promise, resolve } = Promise.withResolvers<void>()
    setTimeout(resolve, Number(response.headers.get('retry-after') ?? 1) * 1000)
    await promise
    response = await fetch(url, request)
  }
  if (response.status !== 200) throw new Error(`The bare loop got ${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
}

const POLL_MS = 20
