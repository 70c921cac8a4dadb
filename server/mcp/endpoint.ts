// POST /mcp, without sessions: reads one message from HTTP, has it answered, and writes the answer. Every error on the way
// is a JSON-RPC error too.
import { ProtocolError } from '@modelcontextprotocol/server'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { CountedCall } from '../access.ts'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { bearerOf, disconnected, joinHeader, parseJson } from '../http-request.ts'
import { checkOrigin } from './origin-check.ts'
import { buildDispatcher, type ProtocolHeaders } from './protocol-revisions.ts'
import { type Arrival, countHeaders, countMessage } from './rate-limit.ts'
import { buildResponseCache, cacheableRequest } from './response-cache.ts'
import { CODES, errorText, idOf, isRecord, RpcError, toRpcError } from './rpc.ts'
import { type Face, type Feature, MAIN_FACE, type McpRequest } from './server.ts'
import type { CallToolResult } from './tool.ts'

const JSON_TYPE = 'application/json'
const STREAM_TYPE = 'text/event-stream'
/** A proxy may neither keep a stream nor collect it in order to compress it. */
const STREAM_CACHING = 'no-store, no-transform'
const LINKS_SINCE = '2025-06-18'

export async function mountMcp(app: FastifyInstance, api: Api, features: readonly Feature[], face: Face = MAIN_FACE) {
  const { path, bodyLimit } = face
  const answerMessage = buildDispatcher(features, (error) => logSdkError(error, api), face)
  const cache = buildResponseCache()
  const arrivals = new WeakMap<FastifyRequest, Arrival>()

  const countOrRefuse = async (
    request: FastifyRequest,
  ): Promise<{ counted: CountedCall; refused?: CallToolResult }> => {
    try {
      return { counted: await countMessage(arrivals.get(request), request.body, api) }
    } catch (error) {
      const isCall = isRecord(request.body) && request.body.method === 'tools/call'
      if (!face.refuseCall || !isCall || !(error instanceof AppError && error.code === 'rate_limited')) throw error
      return { counted: { caller: null, budget: 'calls' }, refused: face.refuseCall(error) }
    }
  }

  await app.register(async (scope) => {
    acceptJsonOnly(scope)
    scope.addHook('onRequest', async (request) => {
      const bearer = bearerOf(request.headers.authorization)
      arrivals.set(request, await countHeaders({ address: request.ip, bearer }, api))
      checkOrigin(request.headers, api.baseUrl)
    })
    // A message that cannot be read has no key, so if its address has no call left, that is the error.
    scope.setErrorHandler((error, request, reply) =>
      refuse(toRpcError(arrivals.get(request)?.refusal ?? error), request, reply),
    )
    scope.route({
      method: ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
      url: path,
      config: { operation: 'mcp' },
      // Before the body is read, because the method is wrong with any body.
      onRequest: refuseMethod,
      handler: refuseMethod,
    })
    scope.post(path, { bodyLimit, config: { operation: 'mcp' } }, async (request, reply) => {
      const { counted, refused } = await countOrRefuse(request)
      requireJsonAccepted(request)
      const headers = protocolHeadersOf(request)
      const cacheable = cacheableRequest(request.body, headers, Number(request.headers['content-length']))
      const cached = cacheable && cache.find(cacheable)
      if (cached) return reply.type(JSON_TYPE).send(cached)
      const response = await answerMessage(request.body, headers, {
        ...toMcpRequest(request, reply, counted, api),
        ...(refused && { refused }),
      })
      reply.code(response.status)
      for (const [name, value] of response.headers) reply.header(name, value)
      if (response.headers.get('content-type') === STREAM_TYPE)
        return reply.header('cache-control', STREAM_CACHING).send(response.body)
      const text = response.body === null ? undefined : await response.text()
      if (cacheable && text) cache.store(cacheable, response.status, text)
      return reply.send(text)
    })
  })
}

async function refuseMethod(): Promise<never> {
  throw new RpcError(405, CODES.server, 'This endpoint answers POST only.', { headers: { allow: 'POST' } })
}

/** What the SDK refused or could not deliver. The SDK repeats what it was sent in its messages, after a colon: cut there. */
function logSdkError(error: Error, { log }: Pick<Api, 'log'>) {
  const about = error.message.split(/[:"]/, 1)[0]
  if (error instanceof ProtocolError || about?.startsWith('Rejected')) log.debug({ event: 'mcp_refused', about })
  else log.warn({ event: 'mcp_error', about })
}

function refuse(refusal: RpcError, request: FastifyRequest, reply: FastifyReply) {
  // Without a cause it is the caller's error, or the service itself refused the call, for example with 503.
  if (refusal.cause !== undefined) request.log.error({ event: 'request_failed', operation: 'mcp', err: refusal.cause })
  else request.log.debug({ event: 'mcp_refused', about: refusal.message })
  return reply
    .code(refusal.status)
    .headers(refusal.headers)
    .type(JSON_TYPE)
    .send(errorText(refusal, idOf(request.body)))
}

/** The same rule as in the application, with an error of this protocol. */
function acceptJsonOnly(scope: FastifyInstance) {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser<Buffer>(JSON_TYPE, { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, parseJson(body))
    } catch {
      // The parser's message repeats parts of the body, which may hold a key. It goes nowhere.
      done(new RpcError(400, CODES.parse, 'The body is not JSON in UTF-8.'))
    }
  })
}

/** The protocol requires clients to accept both types; a client that accepts JSON alone, or says nothing, is served too. */
function requireJsonAccepted({ headers }: FastifyRequest) {
  const { accept = '*/*' } = headers
  if (!/application\/(json|\*)|\*\/\*/i.test(accept))
    throw new RpcError(406, CODES.server, `Accept must allow ${JSON_TYPE}.`)
}

function protocolHeadersOf({ headers }: FastifyRequest): ProtocolHeaders {
  return {
    version: joinHeader(headers['mcp-protocol-version']),
    method: joinHeader(headers['mcp-method']),
    name: joinHeader(headers['mcp-name']),
  }
}

function toMcpRequest(request: FastifyRequest, reply: FastifyReply, counted: CountedCall, api: Api): McpRequest {
  const { accept = '', authorization } = request.headers
  return {
    api,
    credentials: { address: request.ip, bearer: bearerOf(authorization), counted },
    options: { waitSeconds: 0, signal: disconnected(reply.raw) },
    streams: accept.includes(STREAM_TYPE) || accept.includes('*/*'),
    // A message without the header is of the first revision. The names of revisions are dates.
    links: (protocolHeadersOf(request).version?.trim() ?? '') >= LINKS_SINCE,
  }
}
