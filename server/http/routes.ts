// A route for each operation of the catalogue: takes credentials, options and input from HTTP, calls `execute`, and writes
// the answer. Knows nothing of what any operation means.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { authorize, type CountedCall, countCall } from '../access.ts'
import { addressKey } from '../accounts/address-key.ts'
import type { Api } from '../context.ts'
import { AppError, publicError, UnavailableError } from '../errors.ts'
import { bearerOf, disconnected, frameworkRefusal, joinHeader, parseJson } from '../http-request.ts'
import { type Call, execute, MAX_WAIT_SECONDS, type Operation } from '../operation.ts'
import {
  type FailureAnswer,
  type HttpAnswer,
  isOfInterface,
  renderAnswer,
  renderVerificationError,
} from './verification.ts'

const JSON_TYPE = 'application/json'
const BYTES_TYPE = 'application/octet-stream'

/** The parts of a request that an operation's input is made from. */
interface Parts {
  Params: Record<string, string>
  Querystring: Record<string, unknown>
}
type OperationRequest = FastifyRequest<Parts>

export async function mountRoutes(app: FastifyInstance, api: Api, catalog: readonly Operation[]) {
  app.decorateRequest('counted')
  for (const operation of catalog) if (!operation.rawBody && !takesAnyBody(operation)) mount(operation, app, api)
  await app.register(async (any) => {
    any.removeAllContentTypeParsers()
    any.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    for (const operation of catalog) if (takesAnyBody(operation)) mount(operation, any, api)
  })
  await app.register(async (raw) => {
    raw.removeAllContentTypeParsers()
    raw.addContentTypeParser(BYTES_TYPE, { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    for (const operation of catalog) if (operation.rawBody) mount(operation, raw, api)
  })
}

/** Whether a call without a payment is answered with any body. */
function takesAnyBody(operation: Operation): boolean {
  return operation.answers === 'verification' && operation.unpaid !== undefined
}

function mount(operation: Operation, app: FastifyInstance, api: Api) {
  app.route<Parts>({
    method: operation.method,
    url: operation.path.replace(/\{(\w+)\}/g, ':$1'),
    ...bodyLimitOf(operation),
    // Before the body is read, so that a call whose body cannot be parsed counts as well.
    onRequest: async (request) => {
      request.counted = await countAndAuthorize(operation, request, api)
    },
    config: { operation: operation.name, bodyType: operation.rawBody ? BYTES_TYPE : JSON_TYPE },
    handler: (request, reply) => handle(operation, request, reply, api),
    ...(takesAnyBody(operation) && { errorHandler: despiteType(operation, api) }),
  })
}

function bodyLimitOf({ rawBody, bodyLimit = rawBody?.limit }: Operation) {
  return bodyLimit === undefined ? {} : { bodyLimit }
}

/** The framework refuses a content type that it cannot read, which a call without a payment may have. */
function despiteType(operation: Operation, api: Api) {
  return async (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    if (frameworkRefusal(error) !== 'content_type') throw error
    // The cast is safe: the route of this operation was matched, and its parts were read.
    return handle(operation, request as OperationRequest, reply, api)
  }
}

async function countAndAuthorize(
  operation: Operation,
  { ip, headers }: OperationRequest,
  api: Api,
): Promise<CountedCall> {
  const counted = await countCall(operation, { address: ip, bearer: bearerOf(headers.authorization) }, api)
  await authorize(operation, counted, api)
  return counted
}

async function handle(operation: Operation, request: OperationRequest, reply: FastifyReply, api: Api) {
  const { ip: address, headers, counted } = request
  const preferred = preferredWait(headers.prefer)
  const wanted = preferred ?? (operation.answers === 'verification' && operation.waits ? MAX_WAIT_SECONDS : 0)
  using seat = wanted ? api.seats.take(counted?.caller?.accountId ?? addressKey(address)) : null
  const wait = seat ? wanted : 0
  const call: Call = {
    api,
    credentials: {
      address,
      bearer: bearerOf(headers.authorization),
      payment: joinHeader(headers['payment-signature']),
      counted,
    },
    options: {
      idempotencyKey: joinHeader(headers['idempotency-key']),
      ifMatch: joinHeader(headers['if-match']),
      ifNoneMatch: joinHeader(headers['if-none-match']),
      waitSeconds: wait,
      signal: wait ? disconnected(reply.raw) : NEVER,
    },
  }
  const answer = await answerCall(operation, () => inputOf(operation, request), call)
  const applied = preferred !== null && (wait > 0 || preferred === 0)
  if (applied && (answer.status === 200 || answer.status === 202)) answer.headers['preference-applied'] = `wait=${wait}`
  return write(reply, answer)
}

/** The signal for calls that do not wait. To watch every connection would cost time in all calls. */
const NEVER = new AbortController().signal

async function answerCall(operation: Operation, read: () => unknown, call: Call): Promise<HttpAnswer> {
  if (operation.answers === 'verification')
    return renderAnswer(await execute(operation, read, call), call.api, {
      recovery: operation.access === 'recovery',
      through: operation.through,
    })
  const { status, headers, body } = await execute(operation, read, call)
  return { status, headers: { ...headers }, body }
}

function write(reply: FastifyReply, answer: HttpAnswer) {
  // These have no body, and the framework would send the length of an empty one.
  const bodiless = answer.status === 204 || answer.status === 304
  return reply
    .code(answer.status)
    .headers(answer.headers)
    .send(bodiless ? undefined : answer.body)
}

/** GET: query and path; everything else: body and path. The path wins. */
function inputOf(operation: Operation, request: OperationRequest): unknown {
  const { params: path } = request
  const given = operation.method === 'GET' ? request.query : bodyOf(operation, request)
  const twice = Object.keys(path).find((name) => Object.hasOwn(given, name))
  // Two values for one member: the result would not be what the caller meant.
  if (twice !== undefined && operation.family === 'control')
    throw new AppError('invalid_request', `${twice}: is given by the path already.`)
  return { ...given, ...path }
}

function bodyOf(operation: Operation, { body: given, headers }: OperationRequest): object {
  const type = headers['content-type']
  const body = takesAnyBody(operation) ? parseBody(given, type) : given
  if (operation.rawBody) {
    if (type === undefined) throw wrongType(BYTES_TYPE)
    return { [operation.rawBody.member]: body ?? Buffer.alloc(0) }
  }
  if (body === undefined && !needsBody(operation)) return {}
  if (body === undefined && !JSON_HEADER.test(type ?? '')) throw wrongType(JSON_TYPE)
  if (body === undefined || body === null || typeof body !== 'object' || Array.isArray(body))
    throw new AppError('invalid_request', 'The body must be a JSON object.')
  return body
}

/** The body of a request whose content type was not checked before. @param given bytes, or nothing */
function parseBody(given: unknown, type: string | undefined): unknown {
  if (!(given instanceof Buffer) || given.length === 0) return undefined
  if (!JSON_HEADER.test(type ?? '')) throw wrongType(JSON_TYPE)
  try {
    return parseJson(given)
  } catch (error) {
    throw new AppError('invalid_request', 'The body is not JSON in UTF-8.', { cause: error })
  }
}

const JSON_HEADER = /^application\/json *(;|$)/i

function wrongType(expected: string, cause?: unknown) {
  return new AppError('unsupported_media_type', `Content-Type must be ${expected}.`, { cause })
}

/** An operation whose required input is all in the path can be called without a body. */
function needsBody({ input, path }: Operation): boolean {
  return Object.entries(input.shape).some(
    ([name, schema]) => !path.includes(`{${name}}`) && !z.safeParse(schema, undefined).success,
  )
}

/** RFC 7240 `wait`, in whole seconds and at most 25; null without that preference. */
function preferredWait(header: string | string[] | undefined): number | null {
  for (const preference of joinHeader(header)?.split(',') ?? []) {
    const seconds = preference.match(/^\s*wait\s*=\s*"?(\d+)"?\s*(;.*)?$/i)?.[1]
    if (seconds !== undefined) return Math.min(Number(seconds), MAX_WAIT_SECONDS)
  }
  return null
}

/** The one place where a thrown value becomes an answer. Internal errors are logged here, with the operation they hit. */
export function renderError(error: unknown, request: FastifyRequest): FailureAnswer {
  const known = fromFramework(error, request)
  if (known instanceof UnavailableError) request.log.debug({ event: 'request_refused', code: known.code })
  else if (!(known instanceof AppError)) {
    const operation = request.routeOptions.config?.operation ?? 'unknown'
    request.log.error({ event: 'request_failed', operation, err: known })
  }
  if (isOfInterface(request)) return { ...renderVerificationError(known), cause: known }
  const { status, headers, error: body } = publicError(known)
  const shown = body.code === 'internal_error' ? 500 : status
  return { status: shown, headers: { ...headers }, body: { error: body }, cause: known }
}

/** What Fastify refuses by itself, before an operation is reached. */
function fromFramework(error: unknown, request: FastifyRequest): unknown {
  if (error instanceof AppError) return error
  const { config, bodyLimit } = request.routeOptions
  switch (frameworkRefusal(error)) {
    case 'content_type':
      return wrongType(config?.bodyType ?? JSON_TYPE, error)
    case 'body_too_large':
      return new AppError('body_too_large', `The request body is larger than ${bodyLimit} bytes.`, { cause: error })
    case 'unreadable':
      return new AppError('invalid_request', 'The request cannot be read.', { cause: error })
    case null:
      return error
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Of a call of an operation, from before its body is read. */
    counted?: CountedCall
  }
  interface FastifyContextConfig {
    operation?: string
    /** The one content type it takes. */
    bodyType?: string
    /** Browsers send a form to it: the page with that form, as a reference from the address. An empty one is the address itself. */
    form?: string
    /** Pages in browsers may not read its answers. */
    cors?: false
  }
}
