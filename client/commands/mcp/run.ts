// Runs the command `mcp`: a server of MCP on standard input and output, which serves hosts of both eras of the protocol.
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { UsageError } from '../../arguments.ts'
import { CountersignError } from '../../client.ts'
import { explained } from '../buy/buying.ts'
import type { ExitStatus } from '../command.ts'
import { fromEnvironment } from '../environment.ts'
import { print } from '../output.ts'
import { Purse, type PurseOptions } from '../purchasing.ts'
import { readApiKey, serviceUrl } from '../toolkit.ts'
import { Trust } from '../trust.ts'
import { buildChecks } from './checks.ts'
import { buildPaidTool } from './purchase.ts'
import { messagesOf } from './refusals.ts'
import { failed, type McpTool, type ToolContext, type ToolOutcome } from './tool.ts'

export interface McpOptions extends PurseOptions {
  key?: string
  yes?: boolean
}

/** Serves until the host closes standard input. Returns the exit status. Throws a UsageError. */
export function runMcp(options: McpOptions): Promise<ExitStatus> {
  return explained(() => run(options))
}

async function run(options: McpOptions): Promise<ExitStatus> {
  const service = serviceUrl(options.service)
  const hasWallet = (options.wallet ?? fromEnvironment('COUNTERSIGN_WALLET')) !== undefined
  if (hasWallet && options.budget === undefined)
    throw new UsageError('A model decides what is bought, so its limit must be set: give --budget USD.')
  const purse = hasWallet ? await Purse.open(options) : null
  const hasKey = (options.key ?? fromEnvironment('COUNTERSIGN_KEY')) !== undefined
  const apiKey = hasKey ? await readApiKey(options.key) : null
  const trust = await Trust.open(service, options.journal, options)
  const tools = [buildPaidTool(purse, options), ...buildChecks({ service, apiKey, trust })]
  const messages = messagesOf(process.stdin, print)
  const closed = new Promise<void>((resolve) => messages.once('end', resolve))
  const handle = serveStdio(() => buildServer(tools), { transport: new StdioServerTransport(messages) })
  await closed
  await handle.close()
  return 0
}

const INFO = { name: 'countersign', title: 'Countersign', version: '0.1.0' }

const INSTRUCTIONS =
  'verify_source says what a page says about a claim, with exact quotes and a signed receipt; it costs money, within a budget. ' +
  'Use check_quotes or check_report first where only the words of a quotation are in question: they are free.'

function buildServer(tools: readonly McpTool[]): Server {
  const server = new Server(INFO, { capabilities: { tools: {} }, instructions: INSTRUCTIONS })
  server.setRequestHandler('tools/list', () => ({ tools: tools.map(({ descriptor }) => descriptor) }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const tool = tools.find(({ descriptor }) => descriptor.name === params.name)
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no tool of this name.')
    return await answer(tool, params.arguments ?? {}, contextOf(server, context))
  })
  return server
}

/** Every error is told to the model, without what a package says of a secret. */
async function answer(tool: McpTool, given: Record<string, unknown>, context: ToolContext): Promise<ToolOutcome> {
  try {
    return await tool.run(given, context)
  } catch (error) {
    if (error instanceof CountersignError) return failed(error.code, error.message, error.retryable)
    if (error instanceof UsageError) return failed('invalid_request', error.message)
    return failed('failed', 'It failed, for a reason that is on standard error of the server.', true, error)
  }
}

function contextOf(server: Server, { mcpReq }: ServerContext): ToolContext {
  const envelope = mcpReq.envelope as Record<string, unknown> | undefined
  const declared = envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities()
  const { elicitation } = (declared ?? {}) as ClientCapabilities
  const progressToken = mcpReq._meta?.progressToken
  return {
    // A host that can only open addresses cannot ask.
    canAsk: elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined),
    responses: mcpReq.inputResponses,
    signal: mcpReq.signal,
    async progress(seconds, message) {
      if (progressToken === undefined) return
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: seconds, message } })
    },
  }
}
