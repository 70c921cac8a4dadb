// Tools as a feature of the protocol: their list, made once, and calls of them.
import { ProtocolError, ProtocolErrorCode, type Server, type ServerContext } from '@modelcontextprotocol/server'
import { AppError } from '../errors.ts'
import { inTrace, presentSpan, type TraceOptions } from '../tracing/spans.ts'
import { clientCapabilities, type Feature, type McpRequest, refuseCursor } from './server.ts'
import { errorResult, type Tool, type ToolCall } from './tool.ts'

export function toolsFeature(tools: readonly Tool[]): Feature {
  const list = { tools: tools.map(({ descriptor }) => descriptor) }
  const byName = new Map(tools.map((tool) => [tool.descriptor.name, tool]))
  return {
    capabilities: { tools: {} },
    install(server, request) {
      server.setRequestHandler('tools/list', ({ params }) => {
        refuseCursor(params?.cursor)
        return list
      })
      server.setRequestHandler('tools/call', async ({ params }, context) => {
        const tool = byName.get(params.name)
        if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no tool of this name.')
        if (request.refused) return request.refused
        const { tracing } = request.api
        return inTrace(tracing, ...calling(tool, context), () =>
          callTool(tool, params.arguments ?? {}, toolCallOf(server, request, context)),
        )
      })
    },
  }
}

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}\b/

/**
 * The span of a call, for `inTrace`. Its parent is the span that the client names in `_meta`, as the protocol defines it,
 * because calls of several traces may share one HTTP connection. Without such a span the call is a part of the HTTP
 * request.
 */
function calling({ descriptor: { name } }: Tool, { mcpReq }: ServerContext): [name: string, options: TraceOptions] {
  const { traceparent, tracestate } = mcpReq._meta ?? {}
  const isNamed = typeof traceparent === 'string' && TRACEPARENT.test(traceparent)
  const parent = isNamed
    ? { traceparent, tracestate: typeof tracestate === 'string' ? tracestate : null }
    : presentSpan()
  const attributes = {
    'mcp.method.name': 'tools/call',
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': name,
  }
  return [`tools/call ${name}`, { kind: 'server', attributes, parent }]
}

async function callTool(tool: Tool, args: Record<string, unknown>, call: ToolCall) {
  try {
    return await tool.call(args, call)
  } catch (error) {
    if (error instanceof ProtocolError) throw error
    if (!(error instanceof AppError))
      call.api.log.error({ event: 'request_failed', operation: 'mcp', tool: tool.descriptor.name, err: error })
    return errorResult(error)
  }
}

function toolCallOf(server: Server, request: McpRequest, context: ServerContext): ToolCall {
  const { api, credentials, options, streams, links } = request
  const { mcpReq } = context
  const { progressToken, ...meta } = mcpReq._meta ?? {}
  const reporting = streams && progressToken !== undefined
  let last = -Infinity
  return {
    api,
    credentials,
    options: { ...options, signal: mcpReq.signal },
    meta,
    capabilities: clientCapabilities(context),
    links,
    ...(reporting && {
      progress(progress: number, total: number, message: string) {
        // Progress must increase. A report that can no longer be sent does not fail the call.
        if (progress <= last) return
        last = progress
        const params = { progressToken, progress, total, message }
        mcpReq.notify({ method: 'notifications/progress', params }).catch((error) => server.onerror?.(error))
      },
    }),
  }
}
