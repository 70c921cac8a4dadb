// `npm run demo`: one purchase from start to end. Only the money is not real: there is a Postgres in a temporary folder, the API
// over HTTP, a worker, an HTTPS page on this machine, and a stock x402 client that reads the terms, signs and pays. The result stays
// in a file, with the command that checks it.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { styleText } from 'node:util'
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { z } from 'zod'
import { verifyResult } from '../client/verification.ts'
import { readConfig } from './config.ts'
import { openEmbeddedPostgres } from './db/embedded.ts'
import { migrate } from './db/migrate.ts'
import { makeCa, makeCertificate } from './fixture-tls.ts'
import { type CompletedResult, completedResult } from './interface/result.ts'
import { openService } from './service.ts'
import { openLog } from './telemetry.ts'
import { describeAssessment } from './verification/offer.ts'

const HOST = 'harbour.test'
const CLAIM = 'The harbour was opened in 1874.'
const PAGE = `<!doctype html><html lang="en"><title>Kelby harbour</title>
<h1>The harbour of Kelby</h1>
<p>The harbour was opened in 1874 by the county engineer, two years later than planned.
It has three piers and a lighthouse 21 metres high.</p>
<p>Fishing ended in 1962. The ferry to Orsay sails on Mondays and Thursdays.</p></html>`

const keyList = z.object({ keys: z.array(z.object({ key_id: z.int(), pubkey_hex: z.string() })) })

const started = performance.now()
await using opened = new AsyncDisposableStack()
const folder = await makeFolder(opened)

console.log(`\nClaim   ${CLAIM}\nPage    https://${HOST}/`)

step('A database, the API, a worker, and an HTTPS page, all on this machine')
const page = opened.use(await openPage(folder))
const postgres = await openEmbeddedPostgres({
  dataDir: folder,
  durable: false,
  log: (line) => say(`postgres: ${line}`),
})
opened.use(postgres)
await migrate(postgres.url)
const config = readConfig({ PORT: '0', DATA_DIR: folder, LOG_LEVEL: 'warn', ...page.env })
const service = opened.use(await openService(config, postgres.url, { log: openLog('warn') }))
say(`API   ${service.address}`)
say(`by    ${describeAssessment(config)}`)
say(`page  https://${HOST}/ (reached at ${page.env.FIXTURE_HOSTS.split('=')[1]}, its CA trusted for this host only)`)

const verifySource = `${service.address}/api/agent/v1/verify-source`
const order = {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
  body: JSON.stringify({ source_url: `https://${HOST}/`, claim: CLAIM }),
}

step('Ask without paying: 402, and the terms')
const challenge = await fetch(verifySource, order)
expect(challenge, 402)
const [terms] = decodePaymentRequiredHeader(challenge.headers.get('payment-required') ?? '').accepts
if (!terms) throw new Error('no terms were offered')
const usdc = (Number(terms.amount) / 1e6).toFixed(2)
say(`402   ${usdc} USDC on ${terms.network}, to ${terms.payTo}, within ${terms.maxTimeoutSeconds} s`)

step('The same request by a stock x402 client with a fresh wallet: it signs and sends it again')
const wallet = privateKeyToAccount(generatePrivateKey())
const client = new x402Client().register('eip155:*', new ExactEvmScheme(wallet))
const accepted = await wrapFetchWithPayment(fetch, client)(verifySource, order)
expect(accepted, 202)
const location = accepted.headers.get('location') ?? ''
say(`paid  by ${wallet.address} (offline mode: the signature is checked, nothing moves)`)
say(`202   Retry-After ${accepted.headers.get('retry-after')}, recovery at ${new URL(location).pathname}`)

step('Recover the result with the token from the answer')
const token = accepted.headers.get('x-service-recovery-token') ?? ''
const recovered = await fetch(location, { headers: { authorization: `Bearer ${token}`, prefer: 'wait=25' } })
expect(recovered, 200)
const text = await recovered.text()
const result = completedResult.parse(JSON.parse(text))
say(`200   ${text.length} bytes`)
showVerdict(result)

step('The same request once more: the same bytes, not charged again')
const replay = await fetch(verifySource, order)
expect(replay, 200)
if ((await replay.text()) !== text) throw new Error('the replay differs from the first answer')
const settled = decodePaymentResponseHeader(replay.headers.get('payment-response') ?? '')
say(`200   replay: ${replay.headers.get('x-service-idempotent-replay')}, settlement success: ${settled.success}`)

step('Check the receipt offline, with the pinned key and without the service')
const { keys } = keyList.parse(await (await fetch(`${service.address}/v1/keys`)).json())
const verdict = verifyResult(result, { keys })
for (const check of verdict.checks)
  say(`${check.ok ? 'ok  ' : 'FAIL'}  ${check.name}${check.detail ? `: ${check.detail}` : ''}`)
if (!verdict.ok) throw new Error('the receipt does not verify')

console.log(`\nThe attestation, as one line of JSON (docs/guide/auditing.md shows how openssl alone checks it):\n`)
console.log(JSON.stringify(result.receipt.attestation))

const kept = join(readConfig().dataDir, 'demo')
await mkdir(kept, { recursive: true })
await writeFile(join(kept, 'result.json'), text)
await writeFile(join(kept, 'keys.json'), JSON.stringify({ keys }))
const shown = relative(process.cwd(), kept)
console.log(`
Done in ${((performance.now() - started) / 1000).toFixed(1)} s. The result is in ${shown}/result.json. Check it again, or change a letter in it first:

  npx node client/cli.ts verify ${shown}/result.json --keys ${shown}/keys.json

Next: \`npm start\` runs the service. Its page /verify shows such a file to people.${
  config.model
    ? ''
    : `
With a model it gives a verdict: ANTHROPIC_API_KEY=... npm run demo`
}`)

/** Prints the verdict, and the page with the quotes highlighted that support the verdict. */
function showVerdict({ claim, claim_support, explanation, evidence, source }: CompletedResult) {
  say(`claim    ${claim}`)
  say(`verdict  ${styleText('bold', claim_support)}`)
  say(`         ${explanation}`)
  say(`page     what the verdict rests on is marked «so»; offsets count characters of this text:`)
  const points = [...source.normalized_text]
  // Starts at the end, so that inserted marks do not move offsets that are still needed.
  for (const { start, end } of evidence.toSorted((a, b) => b.start - a.start)) {
    const quote = points.slice(start, end).join('')
    points.splice(start, end - start, `«${styleText('inverse', quote)}»`)
  }
  for (const line of points.join('').split('\n')) say(`         | ${line}`)
  for (const { evidence_id, start, end, stance, quote } of evidence)
    say(`${evidence_id.padEnd(9)}[${start}, ${end}) ${stance}: ${JSON.stringify(quote)}`)
}

function step(title: string) {
  console.log(`\n${title}`)
}

function say(line: string) {
  console.log(`  ${line}`)
}

function expect(response: Response, status: number) {
  if (response.status !== status) throw new Error(`expected ${status}, got ${response.status}`)
}

async function makeFolder(closing: AsyncDisposableStack) {
  const made = await mkdtemp(join(tmpdir(), 'countersign-demo-'))
  closing.defer(() => rm(made, { recursive: true, force: true }))
  // Under root, Postgres runs as another user, which needs access to the folder.
  await chmod(made, 0o711)
  return made
}

async function openPage(home: string) {
  const ca = await makeCa()
  const certificate = await makeCertificate(ca, [HOST])
  const caFile = join(home, 'ca.pem')
  await writeFile(caFile, ca.cert)
  const server = createServer({ cert: certificate.cert, key: certificate.key }, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(PAGE)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the page has no port')
  return {
    env: { FIXTURE_HOSTS: `${HOST}=127.0.0.1:${address.port}`, FIXTURE_CA_FILE: caFile },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
