// The pages of the reference below /docs, and the index that their search fetches.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import type { Operation } from '../operation.ts'
import { type Asset, assetOf } from '../pages/assets.ts'
import { findExamples } from '../pages/examples/examples.ts'
import { findDocuments } from '../pages/guide/documents.ts'
import { searchEntries } from '../pages/guide/search-entries.ts'
import { openSite, type Site } from '../pages/layout.ts'
import { type ApiDocument, errorsPage, operationPage, referenceIndex } from '../pages/reference/reference-page.ts'
import { sendAsset, sendPage } from './page-answers.ts'

interface Reference {
  /** Made for its first reader. */
  document: () => Promise<ApiDocument>
  catalog: readonly Operation[]
}

export function mountReference(app: FastifyInstance, api: Api, { document, catalog }: Reference) {
  const limited = (request: FastifyRequest) => api.limits.spend(request.ip)
  const docs = (path: string, make: (site: Site, name: string) => Promise<string> | string) =>
    app.get<{ Params: { name?: string } }>(
      path,
      { config: { operation: 'docs' }, onRequest: limited },
      async ({ params }, reply) => sendPage(reply, await make(await openSite(api), params.name ?? '')),
    )
  const canTry = api.config.paymentMode === 'offline'
  docs('/docs', (site) => referenceIndex(site, catalog))
  docs('/docs/errors', (site) => errorsPage(site, catalog))
  docs('/docs/:name', async (site, name) => {
    const [made, examples] = await Promise.all([document(), findExamples()])
    const page = operationPage(site, { document: made, catalog, examples, canTry }, name)
    if (page === undefined) throw new AppError('not_found', 'The reference has no such operation.')
    return page
  })
  let index: Promise<Asset> | undefined
  app.get('/docs/search.json', { config: { operation: 'docs' }, onRequest: limited }, async (request, reply) => {
    index ??= findDocuments().then((documents) =>
      assetOf(
        '/docs/search.json',
        'application/json; charset=utf-8',
        JSON.stringify(searchEntries(documents, catalog)),
      ),
    )
    return sendAsset(await index, 'no-cache', request, reply)
  })
}
