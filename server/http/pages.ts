// Pages that say what this service is: for people at /, the verifier at /verify, for language models at /llms.txt, for x402 catalogues at
// /.well-known/x402.
import { createReadStream } from 'node:fs'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import { singleFlight } from '../db/single-flight.ts'
import { AppError } from '../errors.ts'
import { introduction } from '../introduction.ts'
import type { Operation } from '../operation.ts'
import { listAssets, openAssets } from '../pages/assets.ts'
import { calculate } from '../pages/cost-calculator.ts'
import { findExampleResults } from '../pages/examples/examples.ts'
import { frontPage } from '../pages/front-page.ts'
import { findDocuments } from '../pages/guide/documents.ts'
import { guideIndex, guidePage } from '../pages/guide/guide-page.ts'
import { OFFLINE_NOTICE, openSite, pageHeaders } from '../pages/layout.ts'
import { pricingPage } from '../pages/pricing-page.ts'
import { ERRORS } from '../pages/reference/reference-page.ts'
import { renderSitemap } from '../pages/sitemap.ts'
import { openVerifierAssets, RUNTIME, VERIFIER_PREFIX, WORKER_HEADER } from '../pages/verifier-assets.ts'
import { verifyPage } from '../pages/verify-page.ts'
import { resourceUrl } from '../payments/discovery.ts'
import { describeCapabilities } from '../verification/offer/capabilities.ts'
import { describeOffer } from '../verification/offer/offer.ts'
import { asksForHtml, sendAsset, sendPage } from './page-answers.ts'

/** Milliseconds for which data about the service is reused. */
const KEEP_MS = 1000
/** The content of a name never changes. */
const FOR_EVER = 'public, max-age=31536000, immutable'

export function mountPages(app: FastifyInstance, api: Api, catalog: readonly Operation[]) {
  // Its methodology is read from the database.
  const capabilities = singleFlight(() => describeCapabilities(api), KEEP_MS)
  const page = (operation: string) => ({
    config: { operation },
    onRequest: (request: FastifyRequest) => api.limits.spend(request.ip),
  })
  app.get('/', page('home'), async ({ headers }, reply) => {
    // For programs the text alone, as a page that needs nothing else.
    if (!asksForHtml(headers.accept)) return reply.type('text/html').header('vary', 'accept').send(home(api))
    const offer = describeOffer(api.config)
    const { [offer.assessment]: example } = await findExampleResults()
    const parts = { capabilities: await capabilities(), offer, example, trying: api.config.try }
    return sendPage(reply, frontPage(await openSite(api), parts), { forms: true })
  })
  app.get('/example-result.json', page('example_result'), async (_request, reply) => {
    const { [describeOffer(api.config).assessment]: example } = await findExampleResults()
    return reply.header('cache-control', 'no-cache').send(example)
  })
  app.get<{ Querystring: Record<string, unknown> }>('/pricing', page('pricing_page'), async ({ query }, reply) =>
    sendPage(reply, pricingPage(await openSite(api), await capabilities(), calculate(query)), { forms: true }),
  )
  app.get('/guide', page('guide'), async (_request, reply) =>
    sendPage(reply, guideIndex(await openSite(api), await findDocuments())),
  )
  app.get<{ Params: { '*': string } }>('/guide/*', page('guide'), async ({ params }, reply) => {
    const documents = await findDocuments()
    const document = documents.get(`/guide/${params['*']}`)
    if (!document) throw new AppError('not_found', 'The guide has no such page.')
    return sendPage(reply, guidePage(await openSite(api), documents, document))
  })
  app.get('/llms.txt', page('llms'), async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send(introduction(api)),
  )
  app.get('/verify', page('verify_page'), async (_request, reply) => {
    const { served } = await openVerifierAssets()
    const { [describeOffer(api.config).assessment]: example } = await findExampleResults()
    return sendPage(reply, verifyPage(await openSite(api), served, example), { recomputes: true })
  })
  app.get('/verify.html', page('verify_file'), async (request, reply) => {
    const { singleFile } = await openAssets()
    const { 'cache-control': caching = '', 'content-type': _type, ...headers } = pageHeaders()
    reply.headers({ ...headers, 'content-security-policy': `${singleFile.policy}; frame-ancestors 'none'` })
    return sendAsset(singleFile, caching, request, reply)
  })
  app.get('/assets/:name', page('asset'), async (request, reply) => {
    const asset = listAssets(await openAssets()).find(({ path }) => path === request.url)
    if (asset) return sendAsset(asset, FOR_EVER, request, reply)
    if (request.url.startsWith(VERIFIER_PREFIX)) {
      const { worker, served } = await openVerifierAssets()
      if (request.url === worker.path)
        return sendAsset(worker, FOR_EVER, request, reply.header('content-security-policy', WORKER_HEADER))
      if (request.url === served.runtime.path)
        return reply
          .headers({
            'cache-control': FOR_EVER,
            'content-length': served.runtime.bytes,
            'x-content-type-options': 'nosniff',
          })
          .type('application/wasm')
          .send(createReadStream(RUNTIME))
    }
    throw new AppError('not_found', 'There is no such file. Load the page again.')
  })
  // For programs that request it without reading the page's head.
  app.get('/favicon.ico', page('asset'), async (request, reply) =>
    sendAsset((await openAssets()).icon, 'public, max-age=86400', request, reply),
  )
  app.get('/robots.txt', page('robots'), async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send(`${ROBOTS}\nSitemap: ${(await openSite(api)).baseUrl}/sitemap.xml\n`),
  )
  app.get('/sitemap.xml', page('sitemap'), async (_request, reply) => {
    const { baseUrl } = await openSite(api)
    const guide = (await findDocuments()).keys()
    const reference = [...catalog.map(({ name }) => name), ERRORS]
    const sitemap = renderSitemap({ baseUrl, guide, reference, canTry: api.config.try.enabled })
    return reply.type('application/xml; charset=utf-8').header('cache-control', 'no-cache').send(sitemap)
  })
  app.get('/.well-known/mcp-registry-auth', page('mcp_registry_auth'), async (_request, reply) => {
    const { mcpRegistryAuth } = api.config
    if (mcpRegistryAuth === undefined) throw new AppError('not_found', 'MCP_REGISTRY_AUTH is not set.')
    return reply.type('text/plain; charset=utf-8').send(mcpRegistryAuth)
  })
  app.get('/.well-known/x402', page('x402_discovery'), async () => describeOffers(api))
}

/** Crawlers may index pages, but not addresses with data of one caller, or addresses that cause work. */
const ROBOTS = `User-agent: *
Disallow: /api/
Disallow: /checkout/
Disallow: /mcp
Disallow: /results/
Disallow: /v1/
`

/** For catalogues that crawl paid resources. */
function describeOffers({ baseUrl, config }: Api) {
  const { closed, summary } = describeOffer(config)
  return {
    version: 1,
    resources: [resourceUrl('buy', baseUrl), resourceUrl('http', baseUrl), resourceUrl('claims', baseUrl)],
    ownershipProofs: [],
    instructions: `${closed ? `${closed} ` : ''}${summary} Stock x402 clients buy at ${resourceUrl('buy', baseUrl)}, by POST. Up to ten claims on one page at once: ${resourceUrl('claims', baseUrl)}. How to buy, step by step: ${baseUrl}/llms.txt. Schemas: ${baseUrl}/openapi.json.`,
  }
}

function home(api: Api) {
  const escaped = (text: string) => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Countersign</title>
<p><a href="/verify">Verify</a> · <a href="/docs">API</a> · <a href="/openapi.json">openapi.json</a> · <a href="/llms.txt">llms.txt</a> ·
<a href="/api/agent/v1/capabilities">capabilities</a> · <a href="/risk-flags">risk flags</a> · <a href="/methodology">methodology</a> · <a href="/.well-known/x402">x402</a> · <a href="/v1/keys">keys</a> · <a href="/readyz">ready?</a></p>
${api.config.offlinePublic ? `<p>${OFFLINE_NOTICE}</p>\n` : ''}<pre>${escaped(introduction(api))}</pre>
</html>
`
}
