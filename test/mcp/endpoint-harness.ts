// The MCP endpoint alone, with the features of a test, on an API that is open already.
import Fastify from 'fastify'
import type { Api } from '../../server/context.ts'
import { mountMcp } from '../../server/mcp/endpoint.ts'
import type { Feature } from '../../server/mcp/server.ts'
import type { Tool } from '../../server/mcp/tool.ts'

export interface TestEndpoint extends AsyncDisposable {
  url: string
}

export async function openEndpoint(api: Api, features: readonly Feature[]): Promise<TestEndpoint> {
  const app = Fastify({ forceCloseConnections: true })
  await mountMcp(app, api, features)
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  return { url: `${address}/mcp`, [Symbol.asyncDispose]: () => app.close() }
}

/** A tool whose call is the test's function. */
export function makeTool(name: string, call: Tool['call']): Tool {
  const annotations = {
    title: name,
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  }
  return { descriptor: { name, title: name, description: name, inputSchema: { type: 'object' }, annotations }, call }
}
