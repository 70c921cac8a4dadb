// A process that serves the source pages: many hosts over TLS, each with the same page at every path. Many hosts, because
// the service limits its requests per origin. `node bench/page.ts FOLDER`; the folder gets the certificate of their CA.
// Under /long the page is as long as an article, elsewhere a few lines; under /slow it comes a byte at a time, and is whole
// after 20 seconds.
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { makeCa, makeCertificate } from '../server/fixture-tls.ts'

const HOSTS = Array.from({ length: 512 }, (_, index) => `h${index}.page.test`)
/** Well below the silence after which a fetch gives up. */
const DRIP_MS = 2000
const SLOW_MS = 20_000
const FACTS = `<p>The harbour was opened in 1874 by the county engineer, two years later than planned.
It has three piers and a lighthouse 21 metres high.</p>`
const FILLER = `<p>The <a href="/quay">north quay</a> was widened for steamers, and in the winters that followed
the council argued over its <em>upkeep</em>, the dredging of the basin and the fees of the pilots.</p>\n`

const [folder = '.'] = process.argv.slice(2)
const ca = await makeCa()
const certificate = await makeCertificate(ca, ['*.page.test'])
const caFile = join(folder, 'page-ca.pem')
await writeFile(caFile, ca.cert)
const short = page(1)
const long = page(100)
const server = createServer({ cert: certificate.cert, key: certificate.key }, (request, response) => {
  if (request.url?.startsWith('/slow')) return drip(response)
  const body = request.url?.startsWith('/long') ? long : short
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': body.length }).end(body)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
process.on('SIGTERM', () => process.exit())
console.log(
  JSON.stringify({
    event: 'page_ready',
    hosts: HOSTS,
    fixtures: HOSTS.map((host) => `${host}=127.0.0.1:${port}`).join(','),
    caFile,
    bytes: { short: short.length, long: long.length },
  }),
)

function drip(response: ServerResponse) {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
  response.write(' ')
  const drips = setInterval(() => response.write(' '), DRIP_MS)
  const end = setTimeout(() => {
    clearInterval(drips)
    response.end(short)
  }, SLOW_MS)
  response.once('close', () => {
    clearInterval(drips)
    clearTimeout(end)
  })
}

function page(paragraphs: number) {
  return Buffer.from(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Kelby harbour</title></head><body>
<h1>The harbour of Kelby</h1>\n${FILLER.repeat(paragraphs)}${FACTS}\n${FILLER.repeat(paragraphs)}</body></html>`)
}
