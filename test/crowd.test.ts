// Many hostile requests and one honest buyer. No time is measured: the test looks at the requests that are still under way when the
// honest buyer has the result.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { makeCa, makeCertificate } from '../server/fixture-tls.ts'
import { register } from './quotes/harness.ts'
import { PAGE, payingFetch, type System, signPayment, startSystem, termsOf } from './system.ts'

const HONEST = 'www.honest.test'
const HOSTILE = Array.from({ length: 60 }, (_, n) => `d${n}.drip.test`)
const COSTLY = 'www.costly.test'
/** At b58d1cc each occupied a thread until its time limit. */
const COSTLY_PAGE = `<style>@media "${'/* '.repeat(200_000)}" {a{display:none}}</style><p>The harbour was opened in 1874.`
/** Turns at one origin that quote checks may have. */
const FREE_TURNS = 2
/** Shorter than the silence after which a fetch gives up, so that only the total time limit ends the fetch. */
const DRIP_MS = 1000
/** Verifications that a new payer may have in flight. */
const FEW = 8

/** One honest page, and many hosts whose pages never end. */
async function openHosts() {
  const ca = await makeCa()
  const { cert, key } = await makeCertificate(ca, [HONEST, COSTLY, '*.drip.test'])
  const folder = await mkdtemp(join(tmpdir(), 'countersign-crowd-'))
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, ca.cert)
  const hanging = new Set<ServerResponse>()
  const arrived = Promise.withResolvers<void>()
  const shared = Promise.withResolvers<void>()
  let isCut = false
  const server = createServer({ cert, key }, (request, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
    if (request.headers.host === COSTLY) return void response.end(COSTLY_PAGE)
    if (request.headers.host === HONEST && !request.url?.startsWith('/drip')) return void response.end(PAGE)
    if (isCut) return void response.destroy()
    hanging.add(response)
    if (hanging.size === FEW) arrived.resolve()
    if (hanging.size === FREE_TURNS) shared.resolve()
    const drip = setInterval(() => response.write(' '), DRIP_MS)
    response.once('close', () => {
      clearInterval(drip)
      hanging.delete(response)
    })
    response.write('<p>')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const breakOff = () => {
    isCut = true
    server.closeAllConnections()
  }
  return {
    env: {
      FIXTURE_HOSTS: [HONEST, COSTLY, ...HOSTILE].map((name) => `${name}=127.0.0.1:${port}`).join(','),
      FIXTURE_CA_FILE: caFile,
    },
    /** Resolves when FREE_TURNS pages hang at the same time. */
    shared: shared.promise,
    /** Resolves when FEW pages hang at the same time. */
    arrived: arrived.promise,
    hanging: () => hanging.size,
    breakOff,
    async [Symbol.asyncDispose]() {
      breakOff()
      await new Promise((closed) => server.close(closed))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const orderOf = (host: string, path = '/') => ({
  source_url: `https://${host}${path}`,
  claim: 'The harbour was opened in 1874.',
})

/** Pays for one page of each hostile host; returns the statuses, and the accepted requests. */
async function press({ ask }: System, wallets: readonly ReturnType<typeof privateKeyToAccount>[]) {
  const terms = termsOf(await ask({ key: randomUUID(), body: orderOf(HONEST) }))
  const answers = await Promise.all(
    HOSTILE.map(async (host, n) => {
      const { headers } = await signPayment(terms, { wallet: wallets[n % wallets.length]! })
      return ask({ key: randomUUID(), body: orderOf(host), headers })
    }),
  )
  const bodies = await Promise.all(answers.map(async (answer) => (await answer.json()) as { request_id?: string }))
  return {
    accepted: bodies.flatMap(({ request_id }, n) => (answers[n]!.status === 202 ? (request_id ?? []) : [])),
    refused: answers.filter(({ status }) => status !== 202),
  }
}

const cases = [
  { name: 'one payer cannot keep others waiting by pages that never end', payers: 1, most: FEW },
  {
    name: 'a page that never ends takes no place that another payer needs',
    payers: HOSTILE.length,
    most: HOSTILE.length,
  },
]

for (const { name, payers, most } of cases)
  t.test(name, async (t) => {
    await using hosts = await openHosts()
    await using system = await startSystem({ env: hosts.env })
    // Before the service is closed, because closing waits for work under way.
    await using released = new AsyncDisposableStack()
    released.defer(() => hosts.breakOff())
    const wallets = Array.from({ length: payers }, () => privateKeyToAccount(generatePrivateKey()))
    const { accepted, refused } = await press(system, wallets)

    t.equal(accepted.length, most, 'the limit of hostile requests is accepted')
    for (const { status, headers } of refused) {
      t.equal(status, 429)
      t.match(headers.get('retry-after'), /^[1-9]\d*$/)
    }

    await hosts.arrived
    const bought = await system.ask({
      key: randomUUID(),
      body: orderOf(HONEST),
      fetch: payingFetch(),
      headers: { prefer: 'wait=25' },
    })
    t.equal(bought.status, 200, 'the honest buyer has the result')
    const rows = await system.sql('select state from verification_requests where id = any($1)', [accepted])
    t.same([...new Set(rows.map(({ state }) => state))], ['accepted'], 'no hostile request has ended')
    t.ok(hosts.hanging() >= FEW, 'and their pages still hang')
  })

/** Buys these pages at the same time, each with a wallet of its own. */
const buyEach = ({ ask }: System, orders: ReturnType<typeof orderOf>[]) =>
  Promise.all(
    orders.map((body) => ask({ key: randomUUID(), body, fetch: payingFetch(), headers: { prefer: 'wait=25' } })),
  )

t.test('free quote checks of pages that never end leave turns to buyers of the same host', async (t) => {
  await using hosts = await openHosts()
  await using system = await startSystem({ env: hosts.env })
  await using released = new AsyncDisposableStack()
  released.defer(() => hosts.breakOff())
  const readers = [await register(system), await register(system)]
  const checks = await Promise.all(
    [0, 1, 2, 3].map((n) => {
      const source_url = `https://${HONEST}/drip-${n}`
      return readers[n % 2]!.call('POST', '/v1/quote-check', { source_url, quotes: ['three piers'] })
    }),
  )
  t.same(
    checks.map(({ status }) => status),
    [202, 202, 202, 202],
  )
  await hosts.shared
  const bought = await buyEach(system, [orderOf(HONEST), orderOf(HONEST, '/2'), orderOf(HONEST, '/3')])
  t.same(
    bought.map(({ status }) => status),
    [200, 200, 200],
  )
  const rows = await system.sql('select state from quote_checks')
  t.same([...new Set(rows.map(({ state }) => state))], ['pending'], 'no check has ended')
  t.equal(hosts.hanging(), FREE_TURNS)
})

t.test('pages that are costly to read fail no purchase of another page', async (t) => {
  await using hosts = await openHosts()
  await using system = await startSystem({ env: hosts.env })
  const costly = buyEach(
    system,
    [0, 1, 2, 3].map((n) => orderOf(COSTLY, `/${n}`)),
  )
  const honest = await buyEach(
    system,
    [0, 1, 2, 3, 4, 5].map((n) => orderOf(HONEST, `/${n}`)),
  )
  t.same(
    honest.map(({ status }) => status),
    [200, 200, 200, 200, 200, 200],
  )
  await costly
})
