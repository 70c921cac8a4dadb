// Buys the verdict of each item from a started service, so that retrieval, extraction and everything else of a purchase are part of
// what is measured: the pages of the set are served over HTTPS on this machine, and a stock x402 client buys in offline mode.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { findVariables, readConfig } from '../../server/config.ts'
import { makeCa, makeCertificate } from '../../server/fixture-tls.ts'
import { completedResult } from '../../server/interface/result.ts'
import { openService } from '../../server/service.ts'
import { openLog } from '../../server/telemetry.ts'
import { openLab } from '../lab.ts'
import type { Item } from './labels.ts'
import type { Outcome } from './score.ts'

export interface Purchases extends AsyncDisposable {
  /** The procedure of the verdicts; known after the first purchase. */
  readonly procedure: string
  /** How many claims the service can assess at the same time. */
  readonly atOnce: number
  /** Buys one claim. The item of the outcome has the text that the service read. Never rejects. */
  buy(item: Item): Promise<Outcome>
}

/** Hosts with the same pages: the service asks each host only so often. */
const HOSTS = ['pages-0.test', ...Array.from({ length: 7 }, (_, n) => `pages-${n + 1}.test`)] as const
const READY_MS = 120_000
const POLL_MS = 100

/** Starts the service with its local verifier on a database of its own, and the pages of the items beside it. */
export async function openPurchases(items: readonly Item[]): Promise<Purchases> {
  await using opened = new AsyncDisposableStack()
  const lab = opened.use(await openLab({ quick: true, profile: undefined }))
  const paths = new Map(
    items.map(({ observation }) => [observation.source.text_sha256, observation.source.normalized_text]),
  )
  const pages = opened.use(await openPages(lab.folder, paths))
  const config = readConfig({
    ...findVariables(/^VERIFIER_/),
    ...lab.env,
    ...pages.env,
    ASSESSMENT: 'local',
    LOG_LEVEL: 'error',
    MAX_IN_FLIGHT_PER_PAYER: '0',
  })
  const service = opened.use(
    await openService(config, await lab.makeDatabase(), { log: openLog('error', process.stderr) }),
  )
  for (const until = Date.now() + READY_MS; !(await fetch(`${service.address}/readyz`)).ok; await pause(POLL_MS))
    if (Date.now() > until) throw new Error('the service is not ready')
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())))
  const pay = wrapFetchWithPayment(fetch, client)
  let procedure = 'nothing was bought yet'
  let bought = 0
  const closing = opened.move()
  return {
    get procedure() {
      return procedure
    },
    atOnce: config.assessment.verifierThreads,
    async buy(item) {
      const begun = performance.now()
      const host = HOSTS[bought++ % HOSTS.length]
      const source_url = `https://${host}/${item.observation.source.text_sha256}`
      try {
        const paid = await pay(`${service.address}/api/agent/v1/verify-source`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), prefer: 'wait=25' },
          body: JSON.stringify({ source_url, claim: item.claim }),
        })
        const { source, methodology_version, limits, checked_at, source_identity, ...result } = completedResult.parse(
          JSON.parse(await bodyOf(paid)),
        )
        const [, assessor = ''] = methodology_version.split(' ')
        // The gate refuses pages before the assessor reads them; the rows of /accuracy are the assessor's.
        procedure = assessor.replace(/\+gate-\d+$/, '')
        const { requested_url: _, ...read } = source
        const observation = { ...item.observation, source: read, limits, checked_at, source_identity }
        return { item: { ...item, observation }, found: { ...result, procedure }, ms: performance.now() - begun }
      } catch (error) {
        return { item, found: null, failure: `${(error as Error).message}`, ms: performance.now() - begun }
      }
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** The body of a completed purchase; waits for it with the token of the answer. Throws with the body of any other answer. */
async function bodyOf(paid: Response): Promise<string> {
  const authorization = `Bearer ${paid.headers.get('x-service-recovery-token') ?? ''}`
  const location = paid.headers.get('location') ?? ''
  for (let answer = paid; ; ) {
    const body = await answer.text()
    if (answer.status === 200) return body
    if (answer.status !== 202) throw new Error(`${answer.status}: ${body}`)
    answer = await fetch(location, { headers: { authorization, prefer: 'wait=25' } })
  }
}

/** @param texts by the path of the page */
async function openPages(folder: string, texts: ReadonlyMap<string, string>) {
  await mkdir(folder, { recursive: true })
  const ca = await makeCa()
  const certificate = await makeCertificate(ca, HOSTS)
  const caFile = join(folder, 'eval-ca.pem')
  await writeFile(caFile, ca.cert)
  const server = createServer({ cert: certificate.cert, key: certificate.key }, ({ url = '/' }, response) => {
    const text = texts.get(url.slice(1))
    response.writeHead(text === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' })
    response.end(text === undefined ? '' : pageOf(text))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the pages have no port')
  return {
    env: {
      FIXTURE_HOSTS: HOSTS.map((host) => `${host}=127.0.0.1:${address.port}`).join(','),
      FIXTURE_CA_FILE: caFile,
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

/** A page whose text is this one: each line a block, or preformatted where blocks would lose white space. */
function pageOf(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  const isPlain = !/^\s|\s$|[^\S\n]{2}|\s\n|\n\s|[^\S\n ]/u.test(text)
  const body = isPlain ? escaped.replaceAll(/^.*$/gmu, '<div>$&</div>') : `<pre>\n${escaped}</pre>`
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title><body>${body}</body></html>`
}
