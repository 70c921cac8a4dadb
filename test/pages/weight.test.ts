// What a browser transfers before it paints a page: the page itself, its style, its scripts and its icon. Every page of the service is in
// the list; a route without an entry fails.
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { catalog } from '../../server/catalog.ts'
import { findDocuments } from '../../server/pages/guide/documents.ts'
import { payingFetch, startSystem } from '../system.ts'

const LIMIT = 60_000
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const TOKEN = 'a-token-for-the-operator'

const ROUTES = ['pages', 'receipt-pages', 'status', 'operator', 'billing', 'openapi', 'reference', 'try']
/** GET routes that answer programs. */
const FOR_PROGRAMS =
  /^\/(example-result\.json|llms\.txt|assets\/:name|favicon\.ico|robots\.txt|sitemap\.xml|\.well-known\/(x402|mcp-registry-auth)|operator\/events|openapi\.json|docs\/search\.json)$/

/** The paths of pages as the routes have them. */
function readRoutes(): string[] {
  const source = ROUTES.map((name) => readFileSync(join(import.meta.dirname, `../../server/http/${name}.ts`), 'utf8'))
  const paths = [...source.join('\n').matchAll(/(?:\.get(?:<.*?>)?|^ {2}(?:page|docs))\(\s*'(\/[^']*)'/gm)]
  return paths.map(([, path = '']) => path).filter((path) => !FOR_PROGRAMS.test(path))
}

/** As a browser asks, on a connection of its own, whose bytes are counted. */
function load(url: string, cookie: string): Promise<{ bytes: number; status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof load>>>()
  const headers = { accept: BROWSER, 'accept-encoding': 'gzip, deflate, br', ...(cookie && { cookie }) }
  get(url, { agent: false, headers }, (answer) => {
    const { socket } = answer
    const chunks: Buffer[] = []
    answer.on('data', (chunk: Buffer) => chunks.push(chunk))
    answer.on('end', () => {
      const body = Buffer.concat(chunks)
      const isPlain = answer.headers['content-encoding'] === undefined
      resolve({
        bytes: socket.bytesRead,
        status: answer.statusCode ?? 0,
        text: isPlain ? String(body) : '',
      })
    })
  }).on('error', reject)
  return promise
}

t.test('the first paint of every page transfers less than 60 kB', async (t) => {
  await using system = await startSystem({ env: { OPERATOR_TOKEN: TOKEN } })
  const key = 'a-purchase-to-be-weighed'
  await system.ask({ key, fetch: payingFetch() })
  let answer = await system.ask({ key, headers: { prefer: 'wait=20' } })
  while (answer.status !== 200) answer = await system.ask({ key, headers: { prefer: 'wait=20' } })
  const { request_id: id } = (await answer.json()) as { request_id: string }
  const signed = await fetch(system.url('/operator/sign-in'), {
    method: 'POST',
    redirect: 'manual',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `token=${TOKEN}`,
  })
  const cookie = signed.headers.get('set-cookie')?.split(';')[0] ?? ''
  const pages: Readonly<Record<string, readonly string[]>> = {
    '/docs/:name': catalog.map(({ name }) => `/docs/${name}`),
    '/guide/*': [...(await findDocuments()).keys()],
    '/results/:id': [`/results/${id}`],
    '/receipts': ['/receipts?q=nothing'],
    '/receipts/:serial': ['/receipts/1'],
    '/samples/:name': ['/samples/museum-hours'],
    '/checkout/:token': ['/checkout/nothing'],
    '/operator/requests/:id': [`/operator/requests/${id}`],
    '/operator/act': ['/operator/act?action=drain_process&subject=all'],
  }
  const routes = readRoutes()
  t.ok(routes.length >= 20, `${routes.length} routes: ${routes}`)
  t.same(
    Object.keys(pages).filter((path) => !routes.includes(path)),
    [],
    'each of these is a route',
  )
  const assets = new Map<string, number>()
  const weigh = async (path: string, given = '') => {
    const url = system.url(path)
    const { bytes, status, text } = await load(url, given)
    t.ok(status === 200 || (status === 404 && /nothing/.test(path)), `${path}: ${status}`)
    let sum = bytes
    // Pages come uncompressed or not: their head is read from the plain text.
    const plain = text || (await (await fetch(url, { headers: { accept: BROWSER, cookie: given } })).text())
    const parts = [...plain.matchAll(/<(?:script|link)[^>]* (?:src|href)="(\/assets\/[^"]+)"/g)].map(
      ([, part = '']) => part,
    )
    t.ok(parts.length >= 2 || path === '/verify.html', `${path}: style and icon at least`)
    for (const part of parts) {
      if (!assets.has(part)) assets.set(part, (await load(system.url(part), '')).bytes)
      sum += assets.get(part) ?? 0
    }
    t.ok(sum < LIMIT, `${path}: ${sum} bytes`)
    return sum
  }
  const sums = new Map<string, number>()
  for (const route of routes) {
    if (/[:*]/.test(route)) t.ok(pages[route], `${route} has an example`)
    for (const path of pages[route] ?? [route])
      sums.set(path, await weigh(path, path.startsWith('/operator') ? cookie : ''))
  }
  sums.set('/operator, signed out', await weigh('/operator'))
  sums.set('/nothing', await weigh('/nothing'))
  const heaviest = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 5)
  t.comment(heaviest.map(([path, bytes]) => `${path} ${bytes}`).join(', '))
  t.ok(assets.size >= 6, `${assets.size} assets`)
})
