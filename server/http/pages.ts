// Pages that say what this service is: for people at /, the verifier at /verify, for language models at /llms.txt, for x402 catalogues at
// /.well-known/x402.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { introduction } from '../introduction.ts'
import { listAssets, openAssets } from '../pages/assets.ts'
import { openSite, pageHeaders } from '../pages/layout.ts'
import { verifyPage } from '../pages/verify-page.ts'
import { describeOffer } from '../verification/offer.ts'
import { sendAsset, sendPage } from './page-answers.ts'

export function mountPages(app: FastifyInstance, api: Api) {
  const page = (operation: string) => ({
    config: { operation },
    onRequest: (request: FastifyRequest) => api.limits.spend(request.ip),
  })
  app.get('/', page('home'), async (_request, reply) => reply.type('text/html').send(home(api)))
  app.get('/llms.txt', page('llms'), async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send(introduction(api)),
  )
  app.get('/verify', page('verify_page'), async (_request, reply) => sendPage(reply, verifyPage(await openSite(api))))
  app.get('/verify.html', page('verify_file'), async (request, reply) => {
    const { singleFile } = await openAssets()
    const { 'cache-control': caching = '', 'content-type': _type, ...headers } = pageHeaders()
    reply.headers({ ...headers, 'content-security-policy': `${singleFile.policy}; frame-ancestors 'none'` })
    return sendAsset(singleFile, caching, request, reply)
  })
  app.get('/assets/:name', page('asset'), async (request, reply) => {
    const asset = listAssets(await openAssets()).find(({ path }) => path === request.url)
    if (!asset) throw new AppError('not_found', 'There is no such file. Load the page again.')
    return sendAsset(asset, 'public, max-age=31536000, immutable', request, reply)
  })
  // Asked for by programs that do not read the page's head.
  app.get('/favicon.ico', page('asset'), async (request, reply) =>
    sendAsset((await openAssets()).icon, 'public, max-age=86400', request, reply),
  )
  app.get('/robots.txt', page('robots'), async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send(ROBOTS),
  )
  app.get('/.well-known/x402', page('x402_discovery'), async () => describeOffers(api))
}

/** Pages may be listed; what an address holds for one caller, or what costs the service work, may not. */
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
    resources: [`${baseUrl}/api/agent/v1/verify-source`],
    ownershipProofs: [],
    instructions: `${closed ? `${closed} ` : ''}${summary} POST only. How to buy, step by step: ${baseUrl}/llms.txt. Schemas: ${baseUrl}/openapi.json.`,
  }
}

function home(api: Api) {
  const escaped = (text: string) => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Countersign</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem}pre{white-space:pre-wrap;background:#f4f4f4;padding:1rem}</style>
<p><a href="/verify">Verify</a> · <a href="/docs">API</a> · <a href="/openapi.json">openapi.json</a> · <a href="/llms.txt">llms.txt</a> ·
<a href="/api/agent/v1/capabilities">capabilities</a> · <a href="/risk-flags">risk flags</a> · <a href="/methodology">methodology</a> · <a href="/.well-known/x402">x402</a> · <a href="/v1/keys">keys</a> · <a href="/readyz">ready?</a></p>
<pre>${escaped(introduction(api))}</pre>
</html>
`
}
