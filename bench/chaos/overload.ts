// Twice as many buyers as the service can handle, each new, with its own wallet and address. Accepted requests must
// complete in bounded time, the others must be refused at once with a time to retry, and memory must not grow.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import type { Client } from 'pg'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { type Child, openChild } from '../child.ts'
import { followToEnd } from '../crowd/buyers.ts'
import { type Lab, openClient } from '../lab.ts'
import { describe, figure, printHeading, printNote } from '../table.ts'
import { openSource, type Source } from '../worker-harness.ts'

const VERIFY = '/api/agent/v1/verify-source'
/** Buyers at a time while the capacity is measured. */
const AT_ONCE = 32
/** A refusal is answered from memory, so it must be fast on a busy machine too. */
const MAX_REFUSAL_SECONDS = 5
const TIMEOUT_MS = 120_000

type Ending =
  | { kind: 'completed'; seconds: number }
  | { kind: 'refused'; seconds: number; what: string; retryAfter: number | null }
  | { kind: 'lost'; seconds: number; what: string }

interface House {
  origin: string
  source: Source
  web: Child
  worker: Child
}

/** @param minutes how long; default 5, or a third of a minute with --quick */
export async function chaosOverload(lab: Lab, { minutes }: { minutes?: number }): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const source = opened.use(await openSource(lab))
  const databaseUrl = await lab.makeDatabase()
  const queueSeconds = lab.quick ? 3 : 10
  const settings = { RATE_LIMIT_PER_MINUTE: '0', TRUST_PROXY: '1', MAX_QUEUE_SECONDS: String(queueSeconds) }
  const env = { DATABASE_URL: databaseUrl, ...source.env, ...settings, PORT: '0' }
  const web = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env, quiet: true }))
  const worker = opened.use(await openChild(lab, 'workers/main.ts', { event: 'worker_started', env, quiet: true }))
  const house = { origin: String(web.ready.address), source, web, worker }
  const seconds = 60 * (minutes ?? (lab.quick ? 1 / 3 : 5))

  await measureCapacity(house, 5)
  const { capacity, longest } = await measureCapacity(house, lab.quick ? 10 : 20)
  const rate = 2 * capacity
  // The wait of a new buyer is estimated from the rate of the last seconds. The refused calls then take CPU time from the
  // workers on the same machine, at most half of it, and from the verification itself.
  const maxSeconds = 2 * queueSeconds + 3 * longest
  printHeading(
    'overload',
    `${figure(rate)} newcomers a second for ${seconds} s: twice what ${AT_ONCE} buyers at a time get`,
  )
  const memory: number[][] = []
  const started = new Date()
  const endings = await sell(house, { rate, seconds, sample: async () => void memory.push(await memoryOf(house)) })

  const completed = endings.filter(({ kind }) => kind === 'completed').map((one) => one.seconds)
  const refused = endings.flatMap((one) => (one.kind === 'refused' ? [one] : []))
  const lost = endings.flatMap((one) => (one.kind === 'lost' ? [one.what] : []))
  printNote(`${endings.length} came, ${completed.length} completed, ${refused.length} refused, ${lost.length} lost`)
  printNote(`completed in seconds: ${describe(completed)}; at most ${figure(maxSeconds)}`)
  const admin = await openClient(databaseUrl, opened)
  printNote(`from acceptance to result: ${describe(await readTimes(admin, started))}`)
  printNote(`refused in seconds: ${describe(refused.map((one) => one.seconds))}; at most ${MAX_REFUSAL_SECONDS}`)
  printNote(
    `refused with: ${counted(refused.map(({ what }) => what))}; Retry-After: ${describe(refused.map(({ retryAfter }) => retryAfter ?? Number.NaN))}`,
  )
  const [half = [], end = []] = [memory[Math.floor(memory.length / 2)], memory.at(-1)]
  printNote(
    `memory in MB, web and worker: ${memory
      .filter((_, n) => n % Math.ceil(memory.length / 6) === 0)
      .map((one) => one.join(' and '))
      .join('; ')}`,
  )
  const { rows } = await admin.query(
    `select count(*)::int open from verification_requests where state in ('accepted', 'observed', 'assessed', 'settling')`,
  )
  const violations = [
    ...(lost.length > 0 ? [`lost: ${counted(lost)}`] : []),
    ...(rows[0].open > 0 ? [`${rows[0].open} accepted requests are not completed`] : []),
    ...(refused.length === 0 ? ['none was refused, so the house was not overloaded'] : []),
    ...(refused.some(({ retryAfter }) => !retryAfter || retryAfter > 60)
      ? ['a refusal without an honest Retry-After']
      : []),
    ...(Math.max(...completed) > maxSeconds ? ['an accepted request took too long'] : []),
    ...(Math.max(...refused.map((one) => one.seconds)) > MAX_REFUSAL_SECONDS ? ['a refusal took too long'] : []),
    ...(end.some((megabytes, n) => megabytes > GROWTH * (half[n] ?? 0)) ? ['memory grew in the second half'] : []),
  ]
  printNote(`violations: ${violations.join('; ') || 'none'}`)
  if (violations.length > 0) throw new Error('what must hold did not')
}

const GROWTH = 1.25

/**
 * Verifications per second for this number of buyers, each of whom buys one after the other, and the longest time of
 * one, in seconds.
 */
async function measureCapacity(house: House, seconds: number): Promise<{ capacity: number; longest: number }> {
  const end = performance.now() + seconds * 1000
  const taken: number[] = []
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (performance.now() < end) {
        const ending = await buy(house)
        if (ending.kind !== 'completed') throw new Error(`while the capacity was measured: ${JSON.stringify(ending)}`)
        if (performance.now() < end) taken.push(ending.seconds)
      }
    }),
  )
  return { capacity: taken.length / seconds, longest: Math.max(...taken) }
}

/** New buyers at a constant rate, independent of earlier ones. Waits for all of them. */
async function sell(
  house: House,
  { rate, seconds, sample }: { rate: number; seconds: number; sample: () => Promise<void> },
) {
  const started = performance.now()
  const buying: Promise<Ending>[] = []
  let sampled = 0
  for (let n = 0; n < rate * seconds; n++) {
    const left = started + (n * 1000) / rate - performance.now()
    if (left > 0) await pause(left)
    buying.push(buy(house))
    if ((performance.now() - started) / 1000 < (sampled * seconds) / 30) continue
    sampled++
    await sample()
  }
  const endings = await Promise.all(buying)
  await sample()
  return endings
}

let callers = 0

/** A new buyer buys one page at a URL that was not requested before. After a refusal it does not try again. */
async function buy({ origin, source }: House): Promise<Ending> {
  const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())))
  const n = callers++
  const headers = { 'x-forwarded-for': `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`, prefer: 'wait=25' }
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const began = performance.now()
  const ended = () => (performance.now() - began) / 1000
  try {
    const first = await wrapFetchWithPayment(fetch, wallet)(new URL(VERIFY, origin), {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': randomUUID() },
      body: JSON.stringify({ source_url: source.nextUrl('/'), claim: 'The harbour was opened in 1874.' }),
      signal,
    })
    const answer = await followToEnd(first, headers, signal)
    const text = await answer.text()
    const seconds = ended()
    if (answer.status === 200) return { kind: 'completed', seconds }
    const what = `${answer.status} ${text.match(/"code":"(\w+)"/)?.[1] ?? ''}`
    const retryAfter = Number(answer.headers.get('retry-after')) || null
    const isRefused = answer.status === 429 || answer.status === 503
    return isRefused ? { kind: 'refused', seconds, what, retryAfter } : { kind: 'lost', seconds, what }
  } catch (error) {
    return {
      kind: 'lost',
      seconds: ended(),
      what: signal.aborted ? 'no result' : `broken off: ${(error as Error).message}`,
    }
  }
}

/** Seconds from acceptance to result of the requests that were accepted since then, by the tables of the service. */
async function readTimes(admin: Client, since: Date): Promise<number[]> {
  const { rows } = await admin.query<{ seconds: number }>(
    `select extract(epoch from changed_at - accepted_at)::float8 seconds from verification_requests
     where state = 'completed' and accepted_at > $1`,
    [since],
  )
  return rows.map(({ seconds }) => seconds)
}

/** Megabytes in memory of web and worker. */
function memoryOf({ web, worker }: House): Promise<number[]> {
  return Promise.all(
    [web, worker].map(async ({ pid }) => {
      const status = await readFile(`/proc/${pid}/status`, 'utf8')
      return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024)
    }),
  )
}

function counted(names: string[]): string {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].map(([name, n]) => `${name} ${n}`).join(', ') || 'nothing'
}
