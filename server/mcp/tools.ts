// The tools as a feature of the protocol: the list, computed once, and the call.
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { AppError } from '../errors.ts'
import { type Exchange, type Feature, refuseCursor } from './server.ts'
import { failureOf, type Tool, type ToolCall } from './tool.ts'

export function toolsFeature(tools: readonly Tool[]): Feature {
  const list = { tools: tools.map(({ descriptor }) => descriptor) }
  const byName = new Map(tools.map((tool) => [tool.descriptor.name, tool]))
  return {
    capabilities: { tools: {} },
    install(server, exchange) {
      server.setRequestHandler('tools/list', ({ params }) => {
        refuseCursor(params?.cursor)
        return list
      })
      server.setRequestHandler('tools/call', async ({ params }, context) => {
        const tool = byName.get(params.name)
        if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no tool of this name.')
        return callTool(tool, params.arguments ?? {}, describeCall(server, exchange, context))
      })
    },
  }
}

async function callTool(tool: Tool, args: Record<string, unknown>, call: ToolCall) {
  try {
    return await tool.call(args, call)
  } catch (error) {
    if (error instanceof ProtocolError) throw error
    if (!(error instanceof AppError))
      call.api.log.error({ event: 'request_failed', operation: 'mcp', tool: tool.descriptor.name, err: error })
    return failureOf(error)
  }
}

function describeCall(server: Server, { api, credentials, streams }: Exchange, { mcpReq }: ServerContext): ToolCall {
  const { progressToken, ...meta } = mcpReq._meta ?? {}
  // Only its presence is in the SDK's type; what it must be, the SDK has checked.
  const envelope = mcpReq.envelope as { [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities } | undefined
  const reporting = streams && progressToken !== undefined
  let last = -Infinity
  return {
    api,
    meta,
    credentials: { ...credentials, signal: mcpReq.signal },
    capabilities: envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {},
    ...(reporting && {
      progress(progress: number, total: number, message: string) {
        // It must increase; and a report that comes too late to be sent is no reason to fail.
        if (progress <= last) return
        last = progress
        const params = { progressToken, progress, total, message }
        mcpReq.notify({ method: 'notifications/progress', params }).catch((error) => server.onerror?.(error))
      },
    }),
  }
}
