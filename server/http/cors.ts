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

/** Routes for operators or for pages of this service, not for other pages. They have `cors: false`; a preflight does not reach them, so it is matched here. */
const PRIVATE = /^\/(metrics|readyz|healthz|try|operator(\/[^?]*)?)(\?|$)/

/** Allows every request header that a preflight names: stock x402 clients send an unusual one. */
export async function mountCors(app: FastifyInstance) {
  const options = (request: FastifyRequest): FastifyCorsOptions => ({
    origin: PRIVATE.test(request.url) ? false : '*',
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    exposedHeaders: EXPOSED,
    maxAge: MAX_AGE_SECONDS,
    preflight: isPreflight(request),
  })
  await app.register(cors, { delegator: (request, done) => done(null, options(request)) })
}

/** Any other OPTIONS request is for a method that no route has. */
function isPreflight({ method, headers }: FastifyRequest) {
  return method === 'OPTIONS' && Boolean(headers.origin && headers['access-control-request-method'])
}
