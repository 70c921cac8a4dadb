// The protocol server behind one request. It is built from features and lives for that request. Texts of internal errors
// never reach the caller.
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type Implementation,
  type JSONRPCRequest,
  mergeCapabilities,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  Server,
  type ServerCapabilities,
  type ServerContext,
  specTypeSchemas,
} from '@modelcontextprotocol/server'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv'
import type { Api } from '../context.ts'
import { PRICE } from '../interface/price.ts'
import type { Call } from '../operation.ts'
import { describeOffer, type Offer } from '../verification/offer/offer.ts'
import { isRecord } from './rpc.ts'

/** Newest first: a client whose `initialize` names another is offered the first one before 2026. */
export const VERSIONS: readonly string[] = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26']

export const IDENTITY: Implementation = { name: 'countersign', title: 'Countersign', version: '1.0.0' }

function instructionsOf(offer: Offer): string {
  return `${offer.tool ? `${paidTool(offer)} All other tools` : 'All tools here'} are free and belong to an account: \
service_register makes one and returns its key, shown once. Pass it as service_key, or send Authorization: Bearer, and never \
repeat it. Errors have a code; those with retryable true may be tried again by the same call with the same key, after service/retry-after-seconds where _meta has it.`
}

function paidTool({ closed, summary }: Offer): string {
  return `service_verify_source: ${summary} It costs ${PRICE.usd} ${PRICE.currency} per completed verification, paid through \
x402, and the first answer holds the terms.${closed ? ` ${closed}` : ''}`
}

/** One of the endpoints: how it introduces itself, and how it counts. */
export interface Face {
  path: string
  identity: Implementation
  /** Hosts show it to the model, beside the tools. */
  instructions(api: Api): string
  bodyLimit: number
  /** A call of a tool beyond a limit of its address is answered by this result, which models can read, instead of by HTTP's 429. */
  refuseCall?(error: unknown): CallToolResult
}

/** The endpoint of all tools. */
export const MAIN_FACE: Face = {
  path: '/mcp',
  identity: IDENTITY,
  instructions: ({ config }) => instructionsOf(describeOffer(config)),
  // Room for a journal slot in base64 and the message around it.
  bodyLimit: 131_072,
}

/** One HTTP request with one message. */
export interface McpRequest extends Call {
  /** The caller accepts an event stream as the answer. */
  streams: boolean
  /** As in `ToolCall`. */
  links: boolean
  /** The result of every call of a tool in this request: its address has no call left. */
  refused?: CallToolResult
}

/** A part of the protocol that is offered: its capabilities and its methods. */
export interface Feature {
  capabilities: ServerCapabilities
  /**
   * Registers the methods. A ProtocolError that a method throws is answered unchanged, any other error as an internal
   * error.
   */
  install(server: Server, request: McpRequest): void
}

/** Unused, but the SDK would make one for each server, which is slow. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/** Lists and documents are the same for every caller and change with a release. */
const CACHE = { ttlMs: 300_000, cacheScope: 'public' } as const
const cacheHints = {
  'tools/list': CACHE,
  'prompts/list': CACHE,
  'resources/list': CACHE,
  'resources/templates/list': CACHE,
  'server/discover': CACHE,
  'resources/read': CACHE,
}

export function buildServer(features: readonly Feature[], request: McpRequest, face: Face): Server {
  const capabilities = features.reduce((all, feature) => mergeCapabilities(all, feature.capabilities), {})
  const server = new RedactingServer(request.api, face.identity, {
    capabilities,
    instructions: face.instructions(request.api),
    jsonSchemaValidator,
    cacheHints,
    supportedProtocolVersions: [...VERSIONS],
  })
  for (const feature of features) feature.install(server, request)
  return server
}

/** Lists have one page, so no cursor is valid. */
export function refuseCursor(cursor: string | undefined): void {
  if (cursor !== undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no page for this cursor. Ask without one.')
}

/** What the client declares it can do; empty before 2026-07-28. */
export function clientCapabilities({ mcpReq }: ServerContext): ClientCapabilities {
  // The SDK's type of the envelope has no members.
  const envelope: unknown = mcpReq.envelope
  const declared = isRecord(envelope) ? envelope[CLIENT_CAPABILITIES_META_KEY] : undefined
  const parsed = specTypeSchemas.ClientCapabilities['~standard'].validate(declared)
  return parsed.issues ? {} : parsed.value
}

/** Answers errors that are not ProtocolErrors with a fixed text: their messages are internal. */
class RedactingServer extends Server {
  readonly #api: Api

  constructor(api: Api, identity: Implementation, options: ConstructorParameters<typeof Server>[1]) {
    super(identity, options)
    this.#api = api
  }

  /** The handler is the last argument in every overload of the SDK. An error that it throws is an internal error. */
  override setRequestHandler(method: string, ...rest: unknown[]): void {
    const handler = rest.pop()
    if (typeof handler !== 'function') throw new TypeError(`${method} has no handler`)
    const redacting = async (...args: unknown[]) => {
      try {
        return await Reflect.apply(handler, undefined, args)
      } catch (error) {
        throw this.#redact(method, error)
      }
    }
    Reflect.apply(super.setRequestHandler, this, [method, ...rest, redacting])
  }

  /** An error that the SDK throws before the handler is called is about the params. */
  protected override _wrapHandler(method: string, handler: Parameters<Server['_wrapHandler']>[1]) {
    const wrapped = super._wrapHandler(method, handler)
    return async (request: JSONRPCRequest, context: ServerContext) => {
      try {
        return await wrapped(request, context)
      } catch (error) {
        if (error instanceof ProtocolError || error instanceof SdkError) throw this.#redact(method, error)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The params do not have the documented form.')
      }
    }
  }

  #redact(method: string, error: unknown): ProtocolError {
    if (error instanceof ProtocolError) return error
    this.#api.log.error({ event: 'request_failed', operation: 'mcp', method, err: error })
    return new ProtocolError(ProtocolErrorCode.InternalError, 'The service failed unexpectedly. Try again.')
  }
}
