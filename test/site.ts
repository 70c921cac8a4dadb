// A small HTTPS site on loopback, reached as a fixture host. Tests change its pages, by path, while it runs.
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCa, makeCertificate } from '../server/fixture-tls.ts'

export interface Page {
  status?: number
  type?: string
  headers?: Record<string, string>
  body: string | Uint8Array
}

export interface Site extends AsyncDisposable {
  /** Values of FIXTURE_HOSTS and FIXTURE_CA_FILE. */
  env: { FIXTURE_HOSTS: string; FIXTURE_CA_FILE: string }
  pages: Map<string, Page | (() => Page | Promise<Page>)>
  /** The requested paths, in order. */
  requests: string[]
  url(path: string): string
}

export const SITE_NAME = 'site.test'
/** Another host, with the same pages. */
export const OTHER_NAME = 'other.test'
/** A host on the same server whose name is not in its certificate. */
export const FALSE_NAME = 'false.test'

export async function openSite(
  pages: Record<string, string | Page | (() => Page | Promise<Page>)> = {},
): Promise<Site> {
  issued ??= issue()
  const { ca, certificate } = await issued
  const folder = await mkdtemp(join(tmpdir(), 'countersign-site-'))
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, ca.cert)
  const known: Site['pages'] = new Map(
    Object.entries(pages).map(([path, page]) => [path, typeof page === 'string' ? { body: page } : page]),
  )
  const requests: string[] = []
  const server = createServer({ cert: certificate.cert, key: certificate.key }, async (request, response) => {
    requests.push(request.url ?? '')
    const entry = known.get(request.url ?? '') ?? { status: 404, body: 'not here' }
    const page = typeof entry === 'function' ? await entry() : entry
    response.writeHead(page.status ?? 200, { 'content-type': page.type ?? 'text/html; charset=utf-8', ...page.headers })
    response.end(page.body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    env: {
      FIXTURE_HOSTS: [SITE_NAME, OTHER_NAME, FALSE_NAME].map((name) => `${name}=127.0.0.1:${port}`).join(','),
      FIXTURE_CA_FILE: caFile,
    },
    pages: known,
    requests,
    url: (path) => `https://${SITE_NAME}${path}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

let issued: ReturnType<typeof issue> | undefined

/**
 * For all sites of this process, which have the same names: making keys and certificates takes longer than serving a
 * page.
 */
async function issue() {
  const ca = await makeCa()
  return { ca, certificate: await makeCertificate(ca, [SITE_NAME, OTHER_NAME]) }
}

/** A page that is served when the test calls `release`; `reached` resolves at the request. */
export function holdPage(page: Page) {
  const reached = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  return {
    page: async () => {
      reached.resolve()
      await released.promise
      return page
    },
    reached: reached.promise,
    release: released.resolve,
  }
}
