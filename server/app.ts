// The HTTP application of the API process: every route, strict parsing of requests, one log line and metrics for each
// answer.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { catalog } from './catalog.ts'
import type { Api } from './context.ts'
import { AppError } from './errors.ts'
import { mountBilling } from './http/billing.ts'
import { openBodyBudget } from './http/body-budget.ts'
import { joinPieces } from './http/body-pieces.ts'
import { boundConnections } from './http/connections.ts'
import { mountCors } from './http/cors.ts'
import { mountHealth, openReadiness } from './http/health.ts'
import { mountModel } from './http/model.ts'
import { mountOpenApi } from './http/openapi-route.ts'
import { mountOperator } from './http/operator.ts'
import { explainEndpoints, sendError } from './http/page-answers.ts'
import { mountPages } from './http/pages.ts'
import { mountReceiptPages } from './http/receipt-pages.ts'
import { mountRoutes, renderError } from './http/routes.ts'
import { mountStatus } from './http/status.ts'
import { mountTlog } from './http/tlog.ts'
import { mountTraces } from './http/traces.ts'
import { mountTry } from './http/try.ts'
import { parseJson } from './http-request.ts'
import { SCHEMA_VERSION } from './interface/result.ts'
import { mountMcp } from './mcp/endpoint.ts'
import { CHECK_FACE, checkFeatures, offeredFeatures } from './mcp/features.ts'
import { withSubject } from './telemetry.ts'

const BODY_LIMIT = 65_536
/** Above the 5.6 kB of the largest PAYMENT-SIGNATURE. */
const MAX_HEADER_BYTES = 32_768
const HEADERS_TIMEOUT_MS = 15_000
const REQUEST_TIMEOUT_MS = 30_000
/** Node looks for the two above at this interval. */
const TIMEOUT_CHECK_MS = 5000
/** Without a byte in either direction while a request is sent or answered. Above the longest wait for a result. */
const SILENCE_TIMEOUT_MS = 60_000
/** Above the 90 s of Heroku's router and the 60 s of others, so that they close first and never use a connection that is closed here. */
const IDLE_TIMEOUT_MS = 95_000

/** How many connections there may be and how long they may take, and how much their bodies; by default as above. */
export interface ConnectionLimits {
  maxConnections?: number
  maxUnfinishedBytes?: number
  headersTimeoutMs?: number
  timeoutCheckMs?: number
  silenceTimeoutMs?: number
}

/** Builds the application; it does not listen yet. */
async function buildApp(api: Api, limits: ConnectionLimits): Promise<FastifyInstance> {
  const everyHeader = { ...NOT_KEPT, ...(api.config.offlinePublic && OFFLINE_HEADER) }
  // Declared with Fastify's type, so that the application has the default type that plugins accept.
  const loggerInstance: FastifyBaseLogger = api.log
  const app = Fastify({
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true }),
    // Log lines name their operation themselves, so a logger per request is not needed.
    childLoggerFactory: (logger) => logger,
    // The number of proxies in front that are trusted: the address that far from the right of X-Forwarded-For is not forged.
    trustProxy: (_address, hop) => hop < api.config.trustProxy,
    bodyLimit: BODY_LIMIT,
    connectionTimeout: limits.silenceTimeoutMs ?? SILENCE_TIMEOUT_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: limits.headersTimeoutMs ?? HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: limits.timeoutCheckMs ?? TIMEOUT_CHECK_MS,
      // A request without Host gets an error body (see refuseWithoutHost); Node would send an empty one.
      requireHostHeader: false,
    },
    // The operations limit the length of parameters; a path cannot be longer than the request's headers.
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: MAX_HEADER_BYTES },
    // A path that cannot be decoded.
    frameworkErrors: (_error, request, reply) => answerNotFound(api, request, reply),
    forceCloseConnections: 'idle',
    clientErrorHandler: (_error, socket) => answerUnreadable(socket, everyHeader),
  })
  setHeaders(app, everyHeader)
  acceptJsonOnly(app)
  joinPieces(app, openBodyBudget(api.log, limits))
  recordRequests(app, api)
  mountTraces(app, api)
  app.addHook('onRequest', refuseWithoutHost)
  endConnectionsWhenDraining(app, api)
  app.server.on('checkExpectation', refuseExpectation)
  app.setErrorHandler((error, request, reply) => sendError(api, request, reply, renderError(error, request)))
  app.setNotFoundHandler((request, reply) => answerNotFound(api, request, reply))
  await mountCors(app)
  app.addHook('onRequest', refuseUnknown)
  explainEndpoints(app, api)
  const readiness = openReadiness(api)
  mountHealth(app, api, readiness)
  mountStatus(app, api, readiness)
  mountPages(app, api, catalog)
  mountReceiptPages(app, api)
  await mountTry(app, api)
  mountTlog(app, api)
  mountModel(app, api)
  await mountOperator(app, api)
  await mountBilling(app, api)
  mountOpenApi(app, api, catalog)
  await mountRoutes(app, api, catalog)
  await mountMcp(app, api, offeredFeatures(api, catalog))
  await mountMcp(app, api, checkFeatures, CHECK_FACE)
  return app
}

function answerNotFound(api: Api, request: FastifyRequest, reply: FastifyReply) {
  return sendError(api, request, reply, renderError(nothingHere(), request))
}

function nothingHere() {
  return new AppError('not_found', 'There is nothing at this address for this method.')
}

/** Before the body is read, because no route takes it. */
function refuseUnknown({ is404 }: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void) {
  done(is404 ? nothingHere() : undefined)
}

export interface Server extends AsyncDisposable {
  /** The address that it listens on, with its port. */
  address: string
}

/** Starts to listen. Disposing stops accepting connections and waits for the answers in progress. */
export async function openServer(api: Api, limits: ConnectionLimits = {}): Promise<Server> {
  const app = await buildApp(api, limits)
  const connections = boundConnections(app.server, api.log, limits)
  const address = await app.listen({ host: api.config.host, port: api.config.port })
  if (!api.config.baseUrl) api.baseUrl = address
  return {
    address,
    async [Symbol.asyncDispose]() {
      const cutting = [
        setTimeout(() => connections.closeUnused(), CLOSING_MS.unused),
        setTimeout(() => app.server.closeAllConnections(), CLOSING_MS.all),
      ]
      await app.close()
      for (const timer of cutting) clearTimeout(timer)
    },
  }
}

/**
 * From the begin of the close. Connections on which no request came, as browsers open ahead of time, are no calls, and `close` would
 * wait for them until their time is over. A request that is still being sent then is given up before the process is.
 */
const CLOSING_MS = { unused: 1000, all: 20_000 }

/** An idle connection that is kept alive would delay the end of the process. */
function endConnectionsWhenDraining(app: FastifyInstance, api: Api) {
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (api.draining.aborted) reply.header('connection', 'close')
    done()
  })
}

/**
 * Accepts JSON in UTF-8 only. Any other content type is refused before its body is read, but an empty body may have any
 * type: `curl -d ''`, which sends a heartbeat, names the type of a form.
 */
function acceptJsonOnly(app: FastifyInstance) {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      // Some clients name the type without sending a body.
      done(null, body.length === 0 ? undefined : parseJson(body))
    } catch (error) {
      done(new AppError('invalid_request', 'The body is not JSON in UTF-8.', { cause: error }))
    }
  })
  app.addContentTypeParser('*', ({ headers }, _body, done) => {
    const isEmpty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
    if (isEmpty) done(null, undefined)
    else done(new AppError('unsupported_media_type', 'Content-Type must be application/json.'))
  })
}

/** Answers hold secrets and data of accounts, so no cache may keep one; what is public and cacheable says so instead. */
const NOT_KEPT = { 'cache-control': 'no-store' }
/** Every answer says that the payments of this public service are not real. */
const OFFLINE_HEADER = { 'x-service-payment-mode': 'offline' }

/** Sets headers of every answer, also of errors that no route makes. A route can set another value. */
function setHeaders(app: FastifyInstance, headers: Readonly<Record<string, string>>) {
  const entries = Object.entries(headers)
  const set = (_request: IncomingMessage, response: ServerResponse) => {
    for (const [name, value] of entries) response.setHeader(name, value)
  }
  for (const event of ['request', 'checkExpectation']) app.server.prependListener(event, set)
}

/** One log line and two metrics per answer. They contain no header, body or query. */
function recordRequests(app: FastifyInstance, api: Api) {
  // Work on a call tells which request it is about, once that is known.
  app.addHook('onRequest', (_request, _reply, done) => withSubject(undefined, done))
  app.addHook('onResponse', (request, reply, done) => {
    done()
    const operation = request.routeOptions.config?.operation
    if (!operation) return
    api.metrics.requests.inc({ operation, status: String(reply.statusCode) })
    api.metrics.requestSeconds.observe({ operation }, reply.elapsedTime / 1000)
    api.log.debug({ event: 'answered', operation, status: reply.statusCode, ms: Math.round(reply.elapsedTime) })
  })
}

const UNREADABLE = JSON.stringify({
  schema_version: SCHEMA_VERSION,
  status: 'failed',
  error: {
    code: 'invalid_request',
    message: 'The request is not valid HTTP, or its headers are too large.',
    retryable: false,
  },
})
const UNREADABLE_HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'content-length': String(Buffer.byteLength(UNREADABLE)),
  connection: 'close',
}

const LINGER_MS = 1000

/** Answers bytes that are not HTTP, or headers above the limit, with an error body, and closes the connection. */
function answerUnreadable(socket: Socket, more: Readonly<Record<string, string>>) {
  if (!socket.writable) return
  const headers = Object.entries({ ...UNREADABLE_HEADERS, ...more }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 400 Bad Request\r\n${headers.join('')}\r\n${UNREADABLE}`)
  // At once would take the answer from a caller who still sends; a caller who never closes would keep the connection.
  const cutting = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(cutting))
}

/** `Expect` with anything but 100-continue; Node would answer with a status that the interface does not have. */
function refuseExpectation(_request: IncomingMessage, response: ServerResponse) {
  response.writeHead(400, UNREADABLE_HEADERS).end(UNREADABLE)
}

/** HTTP/1.1 requires it once. Node takes the first of several; a proxy before it may take the last. */
function refuseWithoutHost(request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void) {
  const hosts = request.raw.headersDistinct.host?.length ?? 0
  if (hosts === 1) return done()
  const message = hosts === 0 ? 'The Host header is missing.' : 'The Host header came more than once.'
  done(new AppError('invalid_request', message))
}
