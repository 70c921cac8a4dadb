// Lets web pages of any origin call this service, so that a wallet in a browser can buy. Nothing is authorized by cookies, so
// a page of another site gains no rights by calling. The one exception, the dashboard of the operator, is closed to other sites.
import cors, { type FastifyCorsOptions } from '@fastify/cors'
import type { FastifyInstance, FastifyRequest } from 'fastify'

/** The response headers that a page may read. */
const EXPOSED = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'Retry-After',
  'Location',
  'Preference-Applied',
  'X-Service-Recovery-Token',
  'X-Service-Idempotent-Replay',
  'ETag',
  'X-Checkpoint',
]
const MAX_AGE_SECONDS = 7200

/** Allows every request header that a preflight names: stock x402 clients send an unusual one. To be called before any route is made. */
export async function mountCors(app: FastifyInstance) {
  const options = (request: FastifyRequest): FastifyCorsOptions => ({
    origin: '*',
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    exposedHeaders: EXPOSED,
    maxAge: MAX_AGE_SECONDS,
    preflight: isPreflight(request),
  })
  await app.register(cors, { delegator: (request, done) => done(null, options(request)) })
  app.addHook('onRoute', (route) => {
    if (route.config?.cors === false && route.method !== 'OPTIONS') refusePreflights(app, route.url)
  })
}

/**
 * A route with `cors: false` is for operators or for pages of this service, not for other pages. Its preflight needs a route too: only
 * the router knows every spelling of a path, such as `/%74ry`.
 */
function refusePreflights(app: FastifyInstance, url: string) {
  if (app.hasRoute({ method: 'OPTIONS', url })) return
  app.options(url, { config: { cors: false } }, (_request, reply) => reply.callNotFound())
}

/** Any other OPTIONS request is for a method that no route has. */
function isPreflight({ method, headers }: FastifyRequest) {
  return method === 'OPTIONS' && Boolean(headers.origin && headers['access-control-request-method'])
}
