// A process of the run with hostile load: all servers outside the service, on one loopback port and distinguished by host
// name. Honest pages, some of them slow; pages that send a byte at a time and never end; pages that are costly to read; receivers of alerts that never
// answer, and one that answers at once. `node bench/crowd/hosts.ts FOLDER` writes the certificate of their CA into the
// folder.
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { makeCa, makeCertificate } from '../../server/fixture-tls.ts'
import { type AlertArrived, CUT, type HostsReady } from './messages.ts'
import { COSTLY_PAGES } from './pages.ts'

const DOMAINS = 5
const PAGES = Array.from({ length: 20 }, (_, n) => `www.page${n}.test`)
/** Half of them below one registrable domain, the other half below several. */
const DRIPS = Array.from({ length: 500 }, (_, n) => (n % 2 ? `d${n}.drip.test` : `d${n}.drip${(n / 2) % DOMAINS}.test`))
/** Each below a domain of its own. */
const COSTLY = Array.from({ length: 100 }, (_, n) => `c${n}.costly${n}.test`)
const HANGING = Array.from({ length: 50 }, (_, n) => `h${n}.hang${n % DOMAINS}.test`)
const RECEIVER = 'hook.good.test'

const SLOW_PAGES = new Set(PAGES.filter((_, n) => n % 5 === 0))
const SLOW_MS = 400
const DRIP_MS = 5000

const PAGE = Buffer.from(`<!doctype html><html lang="en"><head><title>Kelby harbour</title></head><body>
<h1>The harbour of Kelby</h1>
<p>The harbour was opened in 1874 by the county engineer, two years later than planned.
It has three piers and a lighthouse 21 metres high.</p>
<p>Fishing ended in 1962. The ferry to Orsay sails on Mondays and Thursdays.</p></body></html>`)
const HTML = { 'content-type': 'text/html; charset=utf-8' }

const hostile = new Set<ServerResponse>()
let isCut = false

function answer(request: IncomingMessage, response: ServerResponse) {
  const host = request.headers.host ?? ''
  if (host === RECEIVER) return takeAlert(request, response)
  if (host.includes('.costly')) return costly(request, response)
  if (!host.includes('.page') || request.url?.startsWith('/drip')) return stall(host, response)
  const serve = () => response.writeHead(200, HTML).end(PAGE)
  if (SLOW_PAGES.has(host)) setTimeout(serve, SLOW_MS)
  else serve()
}

function takeAlert(request: IncomingMessage, response: ServerResponse) {
  const id = String(request.headers['webhook-id'])
  process.send?.({ kind: 'alert', path: request.url ?? '', id, at: Date.now() } satisfies AlertArrived)
  request.resume().on('end', () => response.writeHead(204).end())
}

function costly({ url }: IncomingMessage, response: ServerResponse) {
  const page = COSTLY_PAGES[Number(url?.slice(1)) % COSTLY_PAGES.length]
  response.writeHead(200, { ...HTML, 'content-encoding': 'gzip' }).end(page)
}

/** Keeps the connection until the other side closes it, or the run ends. */
function stall(host: string, response: ServerResponse) {
  if (isCut) return void response.destroy()
  hostile.add(response)
  const drip = !host.includes('.hang') ? setInterval(() => response.write(' '), DRIP_MS) : undefined
  if (drip) response.writeHead(200, HTML).write('<p>')
  response.once('close', () => {
    clearInterval(drip)
    hostile.delete(response)
  })
}

process.on('message', (message) => {
  if (message !== CUT) return
  isCut = true
  for (const response of hostile) response.destroy()
})
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())

const [folder = '.'] = process.argv.slice(2)
const ca = await makeCa()
const domains = [...PAGES, ...DRIPS, ...COSTLY, ...HANGING, RECEIVER].map(
  (name) => `*.${name.slice(name.indexOf('.') + 1)}`,
)
const { cert, key } = await makeCertificate(ca, [...new Set(domains)] as [string, ...string[]])
const caFile = join(folder, 'crowd-ca.pem')
await writeFile(caFile, ca.cert)
const server = createServer({ cert, key }, answer)
server.listen({ port: 0, host: '127.0.0.1', backlog: 2048 })
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const ready: HostsReady = {
  event: 'hosts_ready',
  fixtures: [...PAGES, ...DRIPS, ...COSTLY, ...HANGING, RECEIVER].map((name) => `${name}=127.0.0.1:${port}`).join(','),
  caFile,
  pages: PAGES,
  drips: DRIPS,
  costly: COSTLY,
  hanging: HANGING,
  receiver: RECEIVER,
}
console.log(JSON.stringify(ready))
