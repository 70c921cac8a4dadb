// Lets pages of any origin call this service: a wallet in a browser can buy. Nothing here goes by cookies, so there is no
// authority that a foreign page could borrow.
import cors, { type FastifyCorsOptions } from '@fastify/cors'
import type { FastifyInstance, FastifyRequest } from 'fastify'

/** What a page may read of an answer beside its body. */
const EXPOSED = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'Retry-After',
  'Location',
  'Preference-Applied',
  'X-Service-Recovery-Token',
  'X-Service-Idempotent-Replay',
  'ETag',
]
const MAX_AGE_SECONDS = 7200

/** Operators ask these, pages have no business there. Their routes say `cors: false`; a preflight reaches no route. */
const PRIVATE = /^\/(metrics|readyz|healthz)(\?|$)/

/** Request headers are allowed as they are asked for: stock x402 clients send an unusual one of their own. */
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

/** Any other OPTIONS is a method that nothing here has. */
function isPreflight({ method, headers }: FastifyRequest) {
  return method === 'OPTIONS' && Boolean(headers.origin && headers['access-control-request-method'])
}
