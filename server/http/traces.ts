// The span of each call of an operation, over HTTP and MCP: part of the caller's trace, if the call has a `traceparent`
// (W3C Trace Context), else the beginning of a new one.
import type { FastifyInstance } from 'fastify'
import type { Api } from '../context.ts'
import { joinHeader } from '../http-request.ts'
import { NO_TRACING, within } from '../tracing/spans.ts'

/** Adds nothing where nothing is traced. Paths are exported as the pattern of their route: they may hold names and tokens. */
export function mountTraces(app: FastifyInstance, { tracing }: Pick<Api, 'tracing'>) {
  if (tracing === NO_TRACING) return
  app.addHook('onRequest', (request, reply, done) => {
    const { config, url: route } = request.routeOptions
    if (!config?.operation) return done()
    const attributes = {
      'http.request.method': request.method,
      'http.route': route,
      'url.scheme': request.protocol,
      'countersign.operation': config.operation,
    }
    const { traceparent, tracestate } = request.headers
    const parent = { traceparent: joinHeader(traceparent), tracestate: joinHeader(tracestate) }
    const span = tracing.begin(`${request.method} ${route}`, { kind: 'server', attributes }, parent)
    if (!span) return done()
    // Also if the caller disconnects before the answer.
    reply.raw.once('close', () => {
      const { statusCode } = reply.raw
      span.set({ 'http.response.status_code': statusCode })
      span.end(statusCode >= 500 ? String(statusCode) : undefined)
    })
    within(span, done)
  })
}
