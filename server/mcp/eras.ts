// The two eras of the protocol behind one address. 2026-07-28 names itself in every message; everything before it is
// answered without a session, each message by itself, whether or not `initialize` came first.
import {
  classifyInboundRequest,
  createMcpHandler,
  type InboundLegacyRoute,
  type JSONRPCRequest,
  PerRequestHTTPServerTransport,
  SdkError,
  SdkErrorCode,
} from '@modelcontextprotocol/server'
import { CODES, RpcError } from './rpc.ts'
import { buildServer, type Exchange, type Feature, VERSIONS } from './server.ts'

/** What HTTP says about the message. */
export interface ProtocolHeaders {
  version?: string
  method?: string
  name?: string
}

export type Answer = (message: unknown, headers: ProtocolHeaders, exchange: Exchange) => Promise<Response>

export function openEras(features: readonly Feature[], report: (error: Error) => void): Answer {
  const exchanges = new WeakMap<Request, Exchange>()
  const modern = createMcpHandler(
    ({ requestInfo }) => {
      const exchange = requestInfo && exchanges.get(requestInfo)
      if (!exchange) throw new Error('a message has no exchange')
      return buildServer(features, exchange)
    },
    { legacy: 'reject', onerror: report },
  )

  return async (message, headers, exchange) => {
    const route = classifyInboundRequest({
      httpMethod: 'POST',
      protocolVersionHeader: headers.version,
      mcpMethodHeader: headers.method,
      mcpNameHeader: headers.name,
      body: message,
    })
    if (route.kind === 'legacy') {
      refuseLegacy(route, headers)
      // There is no session that a notification or a response could mean anything to.
      if (route.reason === 'notification' || route.reason === 'response') return new Response(null, { status: 202 })
      return answerLegacy(message as JSONRPCRequest, exchange)
    }
    // Nothing here ever changes while somebody listens; the SDK would hold the stream open all the same.
    if (route.kind === 'modern' && route.message.method === 'subscriptions/listen')
      throw new RpcError(404, CODES.methodNotFound, 'Method not found')
    const request = asWebRequest(headers, exchange)
    exchanges.set(request, exchange)
    return modern.fetch(request, { parsedBody: message })
  }

  async function answerLegacy(message: JSONRPCRequest, exchange: Exchange): Promise<Response> {
    const transport = new PerRequestHTTPServerTransport({ classification: { era: 'legacy' } })
    const server = buildServer(features, exchange)
    server.onerror = report
    await server.connect(transport)
    exchange.credentials.signal.addEventListener('abort', () => void transport.close(), { once: true })
    try {
      const response = await transport.handleMessage(message)
      // Before 2026-07-28 an error is an answer like any other.
      return response.ok ? response : new Response(response.body, { headers: response.headers })
    } catch (error) {
      if (error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed) return GONE()
      throw error
    }
  }
}

/** Nobody is there to read it. */
const GONE = () => new Response(null, { status: 499 })

function refuseLegacy({ reason }: InboundLegacyRoute, { version }: ProtocolHeaders) {
  if (reason === 'batch')
    throw new RpcError(400, CODES.invalidRequest, 'Batches are not taken: send one message per request.')
  if (version !== undefined && reason !== 'initialize' && !VERSIONS.includes(version.trim()))
    throw new RpcError(400, CODES.server, 'This protocol version is not supported.', { data: { supported: VERSIONS } })
}

/** The SDK reads these headers and the signal, and never the address or the body. */
function asWebRequest({ version, method, name }: ProtocolHeaders, { credentials }: Exchange): Request {
  const headers = new Headers({ 'content-type': 'application/json' })
  if (version !== undefined) headers.set('mcp-protocol-version', version)
  if (method !== undefined) headers.set('mcp-method', method)
  if (name !== undefined) headers.set('mcp-name', name)
  return new Request('http://localhost/mcp', { method: 'POST', headers, signal: credentials.signal })
}
