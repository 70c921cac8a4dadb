// The MCP clients of both SDKs, each connected as its users connect it.
import { Client, StreamableHTTPClientTransport, type VersionNegotiationOptions } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallableTool, ToolResult } from './paid-tool.ts'

export interface AgentClient extends AsyncDisposable {
  /** Names of all tools. Clients keep the schemas of the tools that they listed, and check results against them. */
  list(): Promise<string[]>
  call(params: CallableTool, options?: CallOptions): Promise<ToolResult>
}

export interface CallOptions {
  onprogress?: (progress: { progress: number; total?: number; message?: string }) => void
  signal?: AbortSignal
}

const INFO = { name: 'a-client', version: '1.0.0' }

/** SDK 1 knows the protocol up to 2025-11-25. */
async function openV1(url: string): Promise<AgentClient> {
  const client = new ClientV1(INFO)
  // Its types disagree with each other under exactOptionalPropertyTypes.
  await client.connect(new TransportV1(new URL('/mcp', url)) as Parameters<typeof client.connect>[0])
  return {
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (params, options) => (await client.callTool(params, undefined, options)) as ToolResult,
    [Symbol.asyncDispose]: () => client.close(),
  }
}

function openV2(mode: VersionNegotiationOptions['mode']) {
  return async (url: string): Promise<AgentClient> => {
    const client = new Client(INFO, { versionNegotiation: { mode } })
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url)))
    return {
      list: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: async (params, options) => (await client.callTool(params, options)) as unknown as ToolResult,
      [Symbol.asyncDispose]: () => client.close(),
    }
  }
}

export const CLIENTS: Record<string, (url: string) => Promise<AgentClient>> = {
  'SDK 1': openV1,
  'SDK 2, legacy': openV2('legacy'),
  'SDK 2, auto': openV2('auto'),
  'SDK 2, pinned': openV2({ pin: '2026-07-28' }),
}
