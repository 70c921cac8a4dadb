// Serves both kinds of protocol revision at one address. From 2026-07-28 on every message names its revision ("modern");
// messages of earlier revisions ("legacy") are answered without a session, each by itself, with or without `initialize`.
import {
  classifyInboundRequest,
  createMcpHandler,
  type InboundLegacyRoute,
  isJSONRPCRequest,
  type JSONRPCRequest,
  PerRequestHTTPServerTransport,
  SdkError,
  SdkErrorCode,
} from '@modelcontextprotocol/server'
import { CODES, RpcError } from './rpc.ts'
import { buildServer, type Face, type Feature, MAIN_FACE, type McpRequest, VERSIONS } from './server.ts'

/** The headers that describe the message. */
export interface ProtocolHeaders {
  version?: string
  method?: string
  name?: string
}

export type AnswerMessage = (message: unknown, headers: ProtocolHeaders, request: McpRequest) => Promise<Response>

/** @param report is called with each error that the SDK caught or could not deliver */
export function buildDispatcher(
  features: readonly Feature[],
  report: (error: Error) => void,
  face: Face = MAIN_FACE,
): AnswerMessage {
  const requests = new WeakMap<Request, McpRequest>()
  const modern = createMcpHandler(
    ({ requestInfo }) => {
      const request = requestInfo && requests.get(requestInfo)
      if (!request) throw new Error('a message has no request')
      return buildServer(features, request, face)
    },
    { legacy: 'reject', onerror: report },
  )

  return async (message, headers, request) => {
    const route = classifyInboundRequest({
      httpMethod: 'POST',
      protocolVersionHeader: headers.version,
      mcpMethodHeader: headers.method,
      mcpNameHeader: headers.name,
      body: message,
    })
    if (route.kind === 'legacy') {
      refuseLegacy(route, headers)
      // Without a session a notification or a response refers to nothing.
      const unanswered = route.reason === 'notification' || route.reason === 'response' || !isJSONRPCRequest(message)
      return unanswered ? new Response(null, { status: 202 }) : answerLegacy(message, request)
    }
    // Nothing here changes during a subscription; the SDK would hold the stream open all the same.
    if (route.kind === 'modern' && route.message.method === 'subscriptions/listen')
      throw new RpcError(404, CODES.methodNotFound, 'Method not found')
    const webRequest = toWebRequest(headers, request)
    requests.set(webRequest, request)
    return modern.fetch(webRequest, { parsedBody: message })
  }

  async function answerLegacy(message: JSONRPCRequest, request: McpRequest): Promise<Response> {
    const transport = new PerRequestHTTPServerTransport({ classification: { era: 'legacy' } })
    const server = buildServer(features, request, face)
    server.onerror = report
    await server.connect(transport)
    request.options.signal.addEventListener('abort', () => void transport.close(), { once: true })
    try {
      const response = await transport.handleMessage(message)
      // Before 2026-07-28 an error is an answer like any other.
      return response.ok ? response : new Response(response.body, { headers: response.headers })
    } catch (error) {
      if (error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed) return clientClosed()
      throw error
    }
  }
}

/** For a caller that has disconnected. */
const clientClosed = () => new Response(null, { status: 499 })

function refuseLegacy({ reason }: InboundLegacyRoute, { version }: ProtocolHeaders) {
  if (reason === 'batch')
    throw new RpcError(400, CODES.invalidRequest, 'Batches are not accepted. Send one message per request.')
  if (version !== undefined && reason !== 'initialize' && !VERSIONS.includes(version.trim()))
    throw new RpcError(400, CODES.server, 'This protocol version is not supported.', { data: { supported: VERSIONS } })
}

/** The SDK reads these headers and the signal, and neither the address nor the body. */
function toWebRequest({ version, method, name }: ProtocolHeaders, { options }: McpRequest): Request {
  const headers = new Headers({ 'content-type': 'application/json' })
  if (version !== undefined) headers.set('mcp-protocol-version', version)
  if (method !== undefined) headers.set('mcp-method', method)
  if (name !== undefined) headers.set('mcp-name', name)
  return new Request('http://localhost/mcp', { method: 'POST', headers, signal: options.signal })
}
