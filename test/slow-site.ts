// A site of many hosts that send their pages a byte at a time until the test releases them.
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCa, makeCertificate } from '../server/fixture-tls.ts'

export interface SlowSite extends AsyncDisposable {
  /** Values of FIXTURE_HOSTS and FIXTURE_CA_FILE. */
  env: { FIXTURE_HOSTS: string; FIXTURE_CA_FILE: string }
  /** Resolves when this many pages are being sent at the same time. */
  busyWith(pages: number): Promise<void>
  /** Completes all pages, and from then on answers at once. */
  release(): void
}

/** Well below the time without a byte after which a fetch gives up. */
const DRIP_MS = 2000

/** @param options.quick hosts that answer at once; `page` is the whole page of every host */
export async function openSlowSite(options: {
  names: [string, ...string[]]
  quick?: string[]
  page: string
}): Promise<SlowSite> {
  const { names, quick = [], page } = options
  const ca = await makeCa()
  const certificate = await makeCertificate(ca, [...names, ...quick])
  const folder = await mkdtemp(join(tmpdir(), 'countersign-drip-'))
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, ca.cert)
  const dripping = new Set<ServerResponse>()
  const waiting: { pages: number; resolve: () => void }[] = []
  let released = false
  const server = createServer({ cert: certificate.cert, key: certificate.key }, (request, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
    if (released || quick.includes(request.headers.host ?? '')) {
      response.end(page)
      return
    }
    dripping.add(response)
    response.write(' ')
    response.once('close', () => dripping.delete(response))
    for (const { pages, resolve } of waiting) if (dripping.size >= pages) resolve()
  })
  const drips = setInterval(() => {
    for (const response of dripping) response.write(' ')
  }, DRIP_MS)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    env: {
      FIXTURE_HOSTS: [...names, ...quick].map((name) => `${name}=127.0.0.1:${port}`).join(','),
      FIXTURE_CA_FILE: caFile,
    },
    async busyWith(pages) {
      if (dripping.size >= pages) return
      await new Promise<void>((resolve) => waiting.push({ pages, resolve }))
    },
    release() {
      released = true
      for (const response of dripping) response.end(page)
    },
    async [Symbol.asyncDispose]() {
      clearInterval(drips)
      server.closeAllConnections()
      server.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
