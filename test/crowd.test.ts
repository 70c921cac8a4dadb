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
import { PAGE, payingFetch, type System, signPayment, startSystem, termsOf } from './system.ts'

const HONEST = 'www.honest.test'
const HOSTILE = Array.from({ length: 60 }, (_, n) => `d${n}.drip.test`)
/** Shorter than the silence after which a fetch gives up, so that only the total time limit ends the fetch. */
const DRIP_MS = 1000
/** Verifications that a new payer may have in flight. */
const FEW = 8

/** One honest page, and many hosts whose pages never end. */
async function openHosts() {
  const ca = await makeCa()
  const { cert, key } = await makeCertificate(ca, [HONEST, '*.drip.test'])
  const folder = await mkdtemp(join(tmpdir(), 'countersign-crowd-'))
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, ca.cert)
  const hanging = new Set<ServerResponse>()
  const arrived = Promise.withResolvers<void>()
  let isCut = false
  const server = createServer({ cert, key }, (request, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
    if (request.headers.host === HONEST) return void response.end(PAGE)
    if (isCut) return void response.destroy()
    hanging.add(response)
    if (hanging.size === FEW) arrived.resolve()
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
      FIXTURE_HOSTS: [HONEST, ...HOSTILE].map((name) => `${name}=127.0.0.1:${port}`).join(','),
      FIXTURE_CA_FILE: caFile,
    },
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

const orderOf = (host: string) => ({ source_url: `https://${host}/`, claim: 'The harbour was opened in 1874.' })

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
