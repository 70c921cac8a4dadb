// The feature that the conformance suites expect of a server, mounted in place of the service's own features: content of
// every kind, progress, logging, templates, completion, and requests for more input.
import { createHmac, randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type CallToolResult,
  type InputRequests,
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Feature } from '../../server/mcp/server.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='

type Answer = CallToolResult | ReturnType<typeof inputRequired>
type Run = (context: ServerContext, server: Server) => Answer | Promise<Answer>

const text = (said: string): CallToolResult => ({ content: [{ type: 'text', text: said }] })
const image = { type: 'image', data: PNG, mimeType: 'image/png' } as const

const QUICK_MS = 20

const ask = (message: string, member: string, type = 'string') =>
  ({
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message,
      requestedSchema: { type: 'object', properties: { [member]: { type } }, required: [member] },
    },
  }) as InputRequests[string]
const sample = (said: string) =>
  ({
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: { type: 'text', text: said } }], maxTokens: 100 },
  }) as InputRequests[string]
const roots = { method: 'roots/list', params: {} } as InputRequests[string]

/** Requests the missing input until it has all of it. */
function gather(requests: InputRequests, done: (given: Record<string, unknown>) => string): Run {
  return ({ mcpReq }) => {
    const given = mcpReq.inputResponses ?? {}
    const missing = Object.entries(requests).filter(([key]) => !isAnswer(given[key]))
    if (missing.length > 0) return inputRequired({ inputRequests: Object.fromEntries(missing) })
    return text(done(given))
  }
}

function isAnswer(given: unknown): boolean {
  if (typeof given !== 'object' || given === null) return false
  return 'content' in given || 'roots' in given
}

const SECRET = randomBytes(32)
const seal = (state: string) => `${state}.${createHmac('sha256', SECRET).update(state).digest('hex')}`

function openState(context: ServerContext): string | undefined {
  const given = context.mcpReq.requestState<string>()
  if (given === undefined) return undefined
  const state = given.slice(0, given.lastIndexOf('.'))
  if (seal(state) !== given) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The state was changed.')
  return state
}

/** As `gather`, with state that the client must return unchanged. */
function gatherWithState(rounds: InputRequests[]): Run {
  return (context) => {
    const state = openState(context)
    const round = state === undefined ? 0 : Number(state) + 1
    const next = rounds[round]
    if (next) return inputRequired({ inputRequests: next, requestState: seal(String(round)) })
    return text('state-ok')
  }
}

const name = ask('What is your name?', 'name')

const TOOLS: Record<string, Run> = {
  test_simple_text: () => text('This is a simple text response for testing.'),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  test_embedded_resource: () => ({
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }),
  test_multiple_content_types: () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }),
  test_error_handling: () => ({ ...text('This tool intentionally returns an error for testing'), isError: true }),
  async test_tool_with_progress({ mcpReq }) {
    const progressToken = mcpReq._meta?.progressToken
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken, progress, total: 100 },
        })
      await pause(QUICK_MS)
    }
    return text('done')
  },
  async test_tool_with_logging({ mcpReq }) {
    for (const said of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await mcpReq.log('info', said)
      await pause(QUICK_MS)
    }
    return text('done')
  },
  async test_logging_tool({ mcpReq }) {
    await mcpReq.log('info', 'a line')
    return text('done')
  },
  test_missing_capability: gather({ answer: sample('Anything?') }, () => 'done'),
  test_streaming_elicitation: gather({ user_name: name }, () => 'done'),
  test_input_required_result_elicitation: gather({ user_name: name }, (given) => {
    const { content } = given.user_name as { content: { name: string } }
    return `Hello, ${content.name}!`
  }),
  test_input_required_result_sampling: gather({ capital_question: sample('What is the capital of France?') }, (given) =>
    JSON.stringify(given.capital_question),
  ),
  test_input_required_result_list_roots: gather({ client_roots: roots }, (given) => JSON.stringify(given.client_roots)),
  test_input_required_result_capabilities: ({ mcpReq }) => {
    const envelope = mcpReq.envelope as Record<string, Record<string, unknown>> | undefined
    const declared = envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {}
    const possible: InputRequests = {
      ...('elicitation' in declared && { user_name: name }),
      ...('sampling' in declared && { greeting: sample('Generate a greeting') }),
      ...('roots' in declared && { client_roots: roots }),
    }
    return Object.keys(possible).length > 0 ? inputRequired({ inputRequests: possible }) : text('nothing to ask')
  },
  test_input_required_result_request_state: gatherWithState([{ confirm: ask('Please confirm', 'ok', 'boolean') }]),
  test_input_required_result_tampered_state: gatherWithState([{ confirm: ask('Please confirm', 'ok', 'boolean') }]),
  test_input_required_result_multiple_inputs: gatherWithState([
    { user_name: name, greeting: sample('Generate a greeting'), client_roots: roots },
  ]),
  test_input_required_result_multi_round: gatherWithState([
    { step1: ask('Step 1: What is your name?', 'name') },
    { step2: ask('Step 2: What is your favorite color?', 'color') },
  ]),
}

const SCHEMA_2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
} as const

const DOCUMENTS = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PNG },
  'test://watched-resource': { mimeType: 'text/plain', text: 'watched' },
}

type Content = Record<string, unknown> & { type: string }
const PROMPTS: Record<string, { args: string[]; say: (given: Record<string, string>) => Content[] }> = {
  test_simple_prompt: { args: [], say: () => [{ type: 'text', text: 'This is a simple prompt for testing.' }] },
  test_prompt_with_arguments: {
    args: ['arg1', 'arg2'],
    say: ({ arg1, arg2 }) => [{ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` }],
  },
  test_prompt_with_embedded_resource: {
    args: ['resourceUri'],
    say: ({ resourceUri }) => [
      {
        type: 'resource',
        resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
      },
      { type: 'text', text: 'Please process the embedded resource above.' },
    ],
  },
  test_prompt_with_image: { args: [], say: () => [image, { type: 'text', text: 'Please analyze the image above.' }] },
  test_input_required_result_prompt: { args: [], say: () => [{ type: 'text', text: 'with context' }] },
}

export const conformanceFeature: Feature = {
  capabilities: { tools: {}, resources: {}, prompts: {}, completions: {}, logging: {} },
  install(server) {
    const plain = Object.keys(TOOLS).map((tool) => ({ name: tool, inputSchema: { type: 'object' } }))
    const tools = [...plain, { name: 'json_schema_2020_12_tool', inputSchema: SCHEMA_2020 }].map((tool) => ({
      ...tool,
      description: 'A fixture.',
    }))
    server.setRequestHandler('tools/list', () => ({ tools }) as never)
    server.setRequestHandler('tools/call', ({ params }, context) => {
      const run = TOOLS[params.name]
      if (!run) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such tool.')
      return run(context, server)
    })
    installResources(server)
    installPrompts(server)
    server.setRequestHandler('completion/complete', () => ({ completion: { values: ['paris', 'park'], total: 2 } }))
    server.setRequestHandler('resources/subscribe', () => ({}))
    server.setRequestHandler('resources/unsubscribe', () => ({}))
  },
}

function installResources(server: Server) {
  server.setRequestHandler('resources/list', () => ({
    resources: Object.entries(DOCUMENTS).map(([uri, { mimeType }]) => ({
      uri,
      name: uri,
      description: 'A fixture.',
      mimeType,
    })),
  }))
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', description: 'A fixture.' }],
  }))
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const id = uri.match(/^test:\/\/template\/(\w+)\/data$/)?.[1]
    if (id !== undefined) {
      const said = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
      return { contents: [{ uri, mimeType: 'application/json', text: said }] }
    }
    if (!Object.hasOwn(DOCUMENTS, uri)) throw new ResourceNotFoundError(uri)
    return { contents: [{ uri, ...DOCUMENTS[uri as keyof typeof DOCUMENTS] }] }
  })
}

function installPrompts(server: Server) {
  server.setRequestHandler('prompts/list', () => ({
    prompts: Object.entries(PROMPTS).map(([prompt, { args }]) => ({
      name: prompt,
      description: 'A fixture.',
      arguments: args.map((argument) => ({ name: argument, description: 'An argument.', required: true })),
    })),
  }))
  server.setRequestHandler('prompts/get', ({ params }, { mcpReq }) => {
    const prompt = PROMPTS[params.name]
    if (!prompt) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such prompt.')
    if (params.name === 'test_input_required_result_prompt' && !mcpReq.inputResponses?.user_context)
      return inputRequired({
        inputRequests: { user_context: ask('What context should the prompt use?', 'context') },
      }) as never
    const messages = prompt.say(params.arguments ?? {}).map((content) => ({ role: 'user', content }))
    return { messages } as never
  })
}
