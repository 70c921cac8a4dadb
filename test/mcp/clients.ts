// The MCP clients that agents have, each connected the way its users connect it.
import { Client, StreamableHTTPClientTransport, type VersionNegotiationOptions } from '@modelcontextprotocol/client'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallableTool, ToolResult } from './paid-tool.ts'

export interface AgentClient extends AsyncDisposable {
  /** Names of all tools. Clients remember the schemas of what they have listed, and hold results to them. */
  list(): Promise<string[]>
  call(params: CallableTool, options?: CallOptions): Promise<ToolResult>
}

export interface CallOptions {
  onprogress?: (progress: { progress: number; total?: number; message?: string }) => void
  signal?: AbortSignal
}

const INFO = { name: 'a-client', version: '1.0.0' }

/** The first SDK, which ends with the protocol of 2025-11-25. */
async function openFirst(url: string): Promise<AgentClient> {
  const client = new FirstClient(INFO)
  // Its types disagree with each other under exactOptionalPropertyTypes.
  await client.connect(new FirstTransport(new URL('/mcp', url)) as Parameters<typeof client.connect>[0])
  return {
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (params, options) => (await client.callTool(params, undefined, options)) as ToolResult,
    [Symbol.asyncDispose]: () => client.close(),
  }
}

function openSecond(mode: VersionNegotiationOptions['mode']) {
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
  'SDK 1': openFirst,
  'SDK 2, legacy': openSecond('legacy'),
  'SDK 2, auto': openSecond('auto'),
  'SDK 2, pinned': openSecond({ pin: '2026-07-28' }),
}
