// A process of the crowd run: the hostile callers. One payer asks for pages that never end, free accounts alternate their
// heartbeats, and two addresses ask for quotes that they never pay. Count and rate are limited: the run measures how the
// service handles hostile load, not how fast this process can send.
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { x402Client } from '@x402/core/client'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { Pool } from 'undici'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { burn, hold } from './burners.ts'
import { type AttackOrder, type AttackReady, type AttackReport, GO, STOP, type Tally, WATCHDOG } from './messages.ts'

const VERIFY = '/api/agent/v1/verify-source'
const CLAIM = 'The harbour was opened in 1874.'
/** Documentation addresses (RFC 5737, RFC 3849), one for each caller. */
const PAYER_ADDRESS = '203.0.113.66'
const QUOTE_IPV4 = '203.0.113.99'
const QUOTE_IPV6_NET = '2001:db8:bad:cafe'
/** Connections of each kind of caller, so that the kinds do not wait for each other in this process. */
const CONNECTIONS = 64
const MAX_ATTEMPTS = 60
/** Calls per second of all callers that ignore `Retry-After`, together. */
const IMPATIENT_PER_SECOND = 100
const BEATS_PER_SECOND = 1
const QUOTES_PER_SECOND = 100
const MAX_QUOTES = 4000

const over = new AbortController()

console.log(JSON.stringify({ event: 'attack_loaded' }))
process.on('disconnect', () => process.exit())
process.once('message', (order: AttackOrder) => {
  attack(order).then(
    () => process.exit(),
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
})

async function attack({ origin, drips, costly, pages, authorizations }: AttackOrder) {
  const openPool = () => new Pool(origin, { connections: CONNECTIONS, pipelining: 1 })
  const [payer, quoter, beater] = [openPool(), openPool(), openPool()]
  const wallet = privateKeyToAccount(generatePrivateKey())
  const payments = await signPayments(payer, wallet, drips)
  const going = heard(GO)
  process.send!({ kind: 'ready', payer: wallet.address.toLowerCase() } satisfies AttackReady)
  await going
  void heard(STOP).then(() => over.abort())
  const retry = openPace(IMPATIENT_PER_SECOND)
  const answers: Tally = {}
  const ipv4: Tally = {}
  const ipv6: Tally = {}
  const heartbeats: Tally = {}
  const [accepted, burnt, held] = await Promise.all([
    // Half of them are patient, on each of the domains.
    Promise.all(payments.map((payment, n) => press(payer, payment, { patient: n % 4 < 2, retry, answers }))),
    burn(origin, costly, over.signal),
    hold(origin, pages, authorizations, over.signal),
    flood(quoter, drips, () => QUOTE_IPV4, ipv4),
    flood(quoter, drips, () => `${QUOTE_IPV6_NET}:${randomBytes(8).toString('hex').match(/.{4}/g)!.join(':')}`, ipv6),
    ...authorizations.map((authorization, n) => alternate(beater, authorization, `198.51.100.${n}`, heartbeats)),
  ])
  const report: AttackReport = {
    kind: 'report',
    payments: { requests: payments.length, accepted: accepted.filter(Boolean).length, answers },
    heartbeats,
    quotes: { ipv4, ipv6 },
    costly: burnt,
    quoteChecks: held,
  }
  await new Promise((sent) => process.send!(report, sent))
  await Promise.all([payer, quoter, beater].map((pool) => pool.destroy()))
}

function heard(expected: string): Promise<void> {
  return new Promise((resolve) => {
    process.on('message', (message) => message === expected && resolve())
  })
}

interface Payment {
  url: string
  key: string
  signature: string
}

/** Signed beforehand: an attacker has a machine of its own for that. Each is good for 300 seconds. */
async function signPayments(pool: Pool, wallet: ReturnType<typeof privateKeyToAccount>, hosts: string[]) {
  const url = `https://${hosts[0]}/`
  const unpaid = await post(pool, { url, key: randomUUID(), address: PAYER_ADDRESS })
  const terms = decodePaymentRequiredHeader(unpaid.terms)
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(wallet))
  const payments: Payment[] = []
  for (const host of hosts) {
    const signature = encodePaymentSignatureHeader(await client.createPaymentPayload(terms))
    payments.push({ url: `https://${host}/`, key: randomUUID(), signature })
  }
  return payments
}

/** Sends one paid request until it is accepted. The impatient ones do not wait as long as `Retry-After` says. */
async function press(
  pool: Pool,
  payment: Payment,
  { patient, retry, answers }: { patient: boolean; retry: () => Promise<void>; answers: Tally },
): Promise<boolean> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS && !over.signal.aborted; attempt++) {
    if (attempt > 0 && !patient) await retry()
    const answer = await count(answers, post(pool, { ...payment, address: PAYER_ADDRESS }))
    if (answer?.status === 202 || answer?.status === 200) return true
    if (patient) await wait((answer?.retryAfter || 1) * 1000)
  }
  return false
}

async function flood(pool: Pool, hosts: string[], address: () => string, tally: Tally): Promise<void> {
  const turn = openPace(QUOTES_PER_SECOND)
  const asked: Promise<unknown>[] = []
  for (let n = 0; n < MAX_QUOTES; n++) {
    await turn()
    if (over.signal.aborted) break
    const url = `https://${hosts[n % hosts.length]}/`
    asked.push(count(tally, post(pool, { url, key: randomUUID(), address: address() })))
  }
  await Promise.all(asked)
}

/** One account's heartbeats: `fail` and `ok` in turns. */
async function alternate(pool: Pool, authorization: string, address: string, tally: Tally): Promise<void> {
  await wait(Math.random() * 1000)
  for (let n = 0; !over.signal.aborted; n++) {
    const body = JSON.stringify({ status: n % 2 === 0 ? 'fail' : 'ok' })
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': address, authorization }
    await count(tally, send(pool, `/v1/heartbeat/${WATCHDOG}`, headers, body))
    await wait(1000 / BEATS_PER_SECOND)
  }
}

interface Answer {
  status: number
  /** Seconds; NaN without the header. */
  retryAfter: number
  /** The terms of a 402. */
  terms: string
}

function post(pool: Pool, asked: { url: string; key: string; address: string; signature?: string }): Promise<Answer> {
  const headers = {
    'content-type': 'application/json',
    'idempotency-key': asked.key,
    'x-forwarded-for': asked.address,
    ...(asked.signature && { 'payment-signature': asked.signature }),
  }
  return send(pool, VERIFY, headers, JSON.stringify({ source_url: asked.url, claim: CLAIM }))
}

async function send(pool: Pool, path: string, headers: Record<string, string>, body: string): Promise<Answer> {
  const answer = await pool.request({ path, method: 'POST', headers, body, signal: over.signal })
  await answer.body.dump()
  const { 'retry-after': retryAfter, 'payment-required': terms } = answer.headers
  return { status: answer.statusCode, retryAfter: Number(retryAfter), terms: String(terms) }
}

/** Null where no answer came; one that was broken off at the end of the run is not counted. */
async function count(tally: Tally, asked: Promise<Answer>): Promise<Answer | null> {
  const answer = await asked.catch(() => null)
  if (answer === null && over.signal.aborted) return null
  const name = answer ? String(answer.status) : 'no answer'
  tally[name] = (tally[name] ?? 0) + 1
  return answer
}

/** Lets callers through in order, at most so many a second. */
function openPace(perSecond: number): () => Promise<void> {
  let next = performance.now()
  return async () => {
    const at = Math.max(next, performance.now())
    next = at + 1000 / perSecond
    await wait(at - performance.now())
  }
}

/** Ends early when the run is over. */
async function wait(milliseconds: number): Promise<void> {
  await pause(Math.max(0, milliseconds), undefined, { signal: over.signal }).catch(() => {})
}
