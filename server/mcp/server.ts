// The protocol server behind one request. It is built from features, lives for that request, and tells nobody what an
// exception of ours said.
import {
  type Implementation,
  type JSONRPCRequest,
  mergeCapabilities,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  Server,
  type ServerCapabilities,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv'
import type { Api } from '../context.ts'
import { PRICE } from '../interface/payment.ts'
import type { Credentials } from '../operation.ts'
import { describeOffer, type Offer } from '../verification/offer.ts'

/** Newest first: a client that asks `initialize` for another is offered the first of those before 2026. */
export const VERSIONS: readonly string[] = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26']

export const IDENTITY: Implementation = { name: 'countersign', title: 'Countersign', version: '1.0.0' }

/** Hosts put it before the model, beside the tools. */
function instructionsOf(offer: Offer): string {
  return `${offer.tool ? `${paidTool(offer)} All other tools` : 'All tools here'} are free and belong to an account: \
service_register makes one and returns its key, shown once. Pass it as service_key, or send Authorization: Bearer, and never \
repeat it. Errors have a code; those with retryable true may be tried again by the same call with the same key, after service/retry-after-seconds where _meta has it.`
}

function paidTool({ closed, summary }: Offer): string {
  return `service_verify_source: ${summary} It costs ${PRICE.usd} ${PRICE.currency} per completed verification, paid through \
x402, and the first answer holds the terms.${closed ? ` ${closed}` : ''}`
}

/** One request and what came with it. */
export interface Exchange {
  api: Api
  credentials: Credentials
  /** The caller takes an event stream for an answer. */
  streams: boolean
}

/** A part of the protocol that is offered: its capabilities, and the methods that stand behind them. */
export interface Feature {
  capabilities: ServerCapabilities
  /** Registers the methods. A ProtocolError thrown by one leaves as it is, anything else as an internal error. */
  install(server: Server, exchange: Exchange): void
}

/** Unused, but the SDK would make one per server, at a price. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/** Lists and documents are the same for everyone and change with a release. */
const CACHE = { ttlMs: 300_000, cacheScope: 'public' } as const
const cacheHints = {
  'tools/list': CACHE,
  'prompts/list': CACHE,
  'resources/list': CACHE,
  'resources/templates/list': CACHE,
  'server/discover': CACHE,
  'resources/read': CACHE,
}

export function buildServer(features: readonly Feature[], exchange: Exchange): Server {
  const capabilities = features.reduce((all, feature) => mergeCapabilities(all, feature.capabilities), {})
  const server = new DiscreetServer(exchange.api, {
    capabilities,
    instructions: instructionsOf(describeOffer(exchange.api.config)),
    jsonSchemaValidator,
    cacheHints,
    supportedProtocolVersions: [...VERSIONS],
  })
  for (const feature of features) feature.install(server, exchange)
  return server
}

/** Lists have one page, so no cursor is ours. */
export function refuseCursor(cursor: string | undefined): void {
  if (cursor !== undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no page for this cursor.')
}

type Handler = (request: never, context: ServerContext) => unknown

class DiscreetServer extends Server {
  readonly #api: Api

  constructor(api: Api, options: ConstructorParameters<typeof Server>[1]) {
    super(IDENTITY, options)
    this.#api = api
  }

  /** What a method throws is about us. */
  override setRequestHandler(method: string, first: unknown, second?: unknown): void {
    const discreet = (handler: Handler) => async (request: never, context: ServerContext) => {
      try {
        return await handler(request, context)
      } catch (error) {
        throw this.#disguise(method, error)
      }
    }
    if (typeof first === 'function') super.setRequestHandler(method as never, discreet(first as Handler) as never)
    else super.setRequestHandler(method, first as never, discreet(second as Handler) as never)
  }

  /** What the SDK throws before a method is reached is about the params. */
  protected override _wrapHandler(method: string, handler: Parameters<Server['_wrapHandler']>[1]) {
    const wrapped = super._wrapHandler(method, handler)
    return async (request: JSONRPCRequest, context: ServerContext) => {
      try {
        return await wrapped(request, context)
      } catch (error) {
        if (error instanceof ProtocolError || error instanceof SdkError) throw this.#disguise(method, error)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The params do not have the documented form.')
      }
    }
  }

  #disguise(method: string, error: unknown): ProtocolError {
    if (error instanceof ProtocolError) return error
    this.#api.log.error({ event: 'request_failed', operation: 'mcp', method, err: error })
    return new ProtocolError(ProtocolErrorCode.InternalError, 'Something went wrong here. Try again.')
  }
}
