// Serves the OpenAPI document, and the pages of the reference that show it. Both are made for their first reader, not at the start.
import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import type { Operation } from '../operation.ts'
import { isNotModified } from '../preconditions.ts'
import { makeDocument } from './openapi.ts'
import { mountReference } from './reference.ts'

export function mountOpenApi(app: FastifyInstance, api: Api, catalog: readonly Operation[]) {
  const limited = (request: FastifyRequest) => api.limits.spend(request.ip)
  let made: ReturnType<typeof makeServed> | undefined
  const serve = () => {
    made ??= makeServed(api, catalog)
    return made
  }
  app.get('/openapi.json', { config: { operation: 'openapi' }, onRequest: limited }, async (request, reply) => {
    const { bytes, tag } = await serve()
    reply.header('etag', tag).header('cache-control', 'no-cache')
    if (isNotModified({ ifNoneMatch: request.headers['if-none-match'] }, tag)) return reply.code(304).send()
    return reply.type('application/json; charset=utf-8').send(bytes)
  })
  mountReference(app, api, { document: async () => (await serve()).document, catalog })
}

async function makeServed(api: Api, catalog: readonly Operation[]) {
  const document = await makeDocument(api, catalog)
  // Some hundred kilobytes: serialized once, and not sent again to clients that have it.
  const bytes = Buffer.from(JSON.stringify(document))
  return { document, bytes, tag: `"${hash('sha256', bytes, 'base64url')}"` }
}
