// The same tools as the SDKs' own example servers wire them: an McpServer made and filled for every request, behind the
// Node transport of the first SDK, or behind the second's handler.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { McpServer as FirstMcpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { catalog } from '../../server/catalog.ts'
import { readConfig } from '../../server/config.ts'
import { type Api, openApi, openCore } from '../../server/context.ts'
import { controlTools } from '../../server/mcp/control-tools.ts'
import type { Tool } from '../../server/mcp/tool.ts'
import { verifySourceTool } from '../../server/mcp/verify-source.ts'

const config = readConfig()
const core = await openCore(config, config.databaseUrl ?? '')
const api = await openApi(core)
const tools = [...controlTools(catalog), verifySourceTool(api)].map((tool) => ({ tool, ...registration(tool) }))

function registration({ descriptor }: Tool) {
  const { title, description, annotations } = descriptor
  const input = z.fromJSONSchema(descriptor.inputSchema as Parameters<typeof z.fromJSONSchema>[0]) as z.ZodObject
  return { name: descriptor.name, options: { title, description, annotations, inputSchema: input } }
}

function run(tool: Tool, args: Record<string, unknown>, api: Api) {
  const credentials = { address: '127.0.0.1' }
  const options = { waitSeconds: 0, signal: new AbortController().signal }
  return tool.call(args, { api, credentials, options, meta: {}, capabilities: {}, links: false })
}

const IDENTITY = { name: 'peer', version: '1.0.0' }

async function answerAsFirst(request: IncomingMessage, response: ServerResponse) {
  const server = new FirstMcpServer(IDENTITY)
  for (const { tool, name, options } of tools)
    server.registerTool(name, options, (args) => run(tool, args as Record<string, unknown>, api) as never)
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  await server.connect(transport)
  await transport.handleRequest(request, response, await readJson(request))
  response.once('close', () => {
    void transport.close()
    void server.close()
  })
}

const second = createMcpHandler(() => {
  const server = new McpServer(IDENTITY)
  for (const { tool, name, options } of tools)
    server.registerTool(name, options, (args) => run(tool, args as Record<string, unknown>, api))
  return server
})

async function answerAsSecond(request: IncomingMessage, response: ServerResponse) {
  const headers = new Headers(request.headers as Record<string, string>)
  const asked = new Request('http://localhost/mcp', { method: 'POST', headers })
  const answer = await second.fetch(asked, { parsedBody: await readJson(request) })
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (answer.body) Readable.fromWeb(answer.body as never).pipe(response)
  else response.end()
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  return JSON.parse((await request.toArray()).join(''))
}

const http = createServer((request, response) => {
  const answer = request.url === '/first' ? answerAsFirst : answerAsSecond
  answer(request, response).catch((error) => {
    console.error(error)
    response.destroy()
  })
})
http.listen(0, '127.0.0.1', () => {
  const { port } = http.address() as AddressInfo
  console.log(JSON.stringify({ event: 'peer_ready', address: `http://127.0.0.1:${port}` }))
})
process.on('SIGTERM', () => process.exit())
