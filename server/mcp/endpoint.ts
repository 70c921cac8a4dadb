// POST /mcp: the protocol for agents, without sessions. Reads one message out of HTTP, has it answered, writes the answer;
// whatever goes wrong on the way is JSON-RPC too.
import { ProtocolError } from '@modelcontextprotocol/server'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import type { Entry } from '../entrance.ts'
import { bearerOf } from '../http/routes.ts'
import { type Arrival, arrive, settle } from './door.ts'
import { openEras, type ProtocolHeaders } from './eras.ts'
import { offeredFeatures } from './features.ts'
import { refuseForeign } from './guard.ts'
import { openKeptAnswers, questionOf } from './response-cache.ts'
import { CODES, errorText, idOf, RpcError, refusalOf } from './rpc.ts'
import type { Exchange, Feature } from './server.ts'

const PATH = '/mcp'
/** Room for a journal slot in base64 and the message around it. */
const BODY_LIMIT = 131_072
const JSON_TYPE = 'application/json'
const STREAM_TYPE = 'text/event-stream'

/** @param features what is offered; tests mount their own */
export async function mountMcp(app: FastifyInstance, api: Api, features: readonly Feature[] = offeredFeatures(api)) {
  const answer = openEras(features, (error) => reportRefused(error, api))
  const kept = openKeptAnswers()
  const arrivals = new WeakMap<FastifyRequest, Arrival>()

  await app.register(async (scope) => {
    acceptJsonOnly(scope)
    scope.addHook('onRequest', async (request) => {
      const bearer = bearerOf(request.headers.authorization)
      arrivals.set(request, await arrive({ address: request.ip, bearer }, api))
      refuseForeign(request.headers, api.baseUrl)
    })
    // What cannot be read shows no key, so it is the address's.
    scope.setErrorHandler((error, request, reply) =>
      refuse(refusalOf(arrivals.get(request)?.refusal ?? error), request, reply),
    )
    scope.route({
      method: ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
      url: PATH,
      config: { operation: 'mcp' },
      handler: async () => {
        throw new RpcError(405, CODES.server, 'Only POST is answered here.', { headers: { allow: 'POST' } })
      },
    })
    scope.post(PATH, { bodyLimit: BODY_LIMIT, config: { operation: 'mcp' } }, async (request, reply) => {
      const entry = await settle(arrivals.get(request), request.body, api)
      requireJsonWelcome(request)
      const headers = protocolHeadersOf(request)
      const question = questionOf(request.body, headers, Number(request.headers['content-length']))
      const known = question && kept.find(question)
      if (known) return reply.type(JSON_TYPE).send(known)
      const response = await answer(request.body, headers, exchangeOf(request, reply, entry, api))
      reply.code(response.status)
      for (const [name, value] of response.headers) reply.header(name, value)
      if (response.headers.get('content-type') === STREAM_TYPE) return reply.send(response.body)
      const text = response.body === null ? undefined : await response.text()
      if (question && text) kept.keep(question, response.status, text)
      return reply.send(text)
    })
  })
}

/** What the SDK turned down or could not deliver. It puts what it was sent into its messages, behind a colon. */
function reportRefused(error: Error, { log }: Api) {
  const about = error.message.split(/[:"]/, 1)[0]
  if (error instanceof ProtocolError || about?.startsWith('Rejected')) log.debug({ event: 'mcp_refused', about })
  else log.warn({ event: 'mcp_error', about })
}

function refuse(refusal: RpcError, request: FastifyRequest, reply: FastifyReply) {
  if (refusal.status >= 500) request.log.error({ event: 'request_failed', operation: 'mcp', err: refusal.cause })
  return reply
    .code(refusal.status)
    .headers(refusal.headers)
    .type(JSON_TYPE)
    .send(errorText(refusal, idOf(request.body)))
}

/** As the application does it, with an error of this protocol. */
function acceptJsonOnly(scope: FastifyInstance) {
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(JSON_TYPE, { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, JSON.parse(utf8.decode(body as Buffer)))
    } catch (error) {
      done(new RpcError(400, CODES.parse, 'The body is not JSON in UTF-8.', { cause: error }))
    }
  })
}

/** The protocol has clients name both types; one that names neither may still read JSON, unless it says otherwise. */
function requireJsonWelcome({ headers }: FastifyRequest) {
  const { accept = '*/*' } = headers
  if (!/application\/(json|\*)|\*\/\*/i.test(accept))
    throw new RpcError(406, CODES.server, `Accept must allow ${JSON_TYPE}.`)
}

function protocolHeadersOf({ headers }: FastifyRequest): ProtocolHeaders {
  return {
    version: single(headers['mcp-protocol-version']),
    method: single(headers['mcp-method']),
    name: single(headers['mcp-name']),
  }
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(', ') : header
}

function exchangeOf(request: FastifyRequest, reply: FastifyReply, entry: Entry, api: Api): Exchange {
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort()
  })
  const { accept = '', authorization } = request.headers
  return {
    api,
    credentials: { address: request.ip, entry, bearer: bearerOf(authorization), waitSeconds: 0, signal: gone.signal },
    streams: accept.includes(STREAM_TYPE) || accept.includes('*/*'),
  }
}
