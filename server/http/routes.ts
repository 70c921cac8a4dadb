// A route for each operation of the catalogue. Takes credentials and input out of HTTP, calls `execute`, writes what it
// answers; knows nothing of what any operation means.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { addressKey } from '../accounts/rate-limit.ts'
import { catalog } from '../catalog.ts'
import type { Api } from '../context.ts'
import { type Entry, enter, permit } from '../entrance.ts'
import { AppError, publicError } from '../errors.ts'
import { type Credentials, execute, type Operation, Reply } from '../operation.ts'
import type { VerificationAnswer } from '../verification/answer.ts'
import { type HttpAnswer, renderAnswer, renderVerificationError } from './verification.ts'

/** Longest that `Prefer: wait` holds an answer; Heroku's router gives up at 30 s. */
const MAX_WAIT_SECONDS = 25

const JSON_TYPE = 'application/json'
const BYTES_TYPE = 'application/octet-stream'

export async function mountRoutes(app: FastifyInstance, api: Api) {
  for (const operation of catalog) if (!operation.rawBody) mount(operation, app, api)
  await app.register(async (raw) => {
    raw.removeAllContentTypeParsers()
    raw.addContentTypeParser(BYTES_TYPE, { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    for (const operation of catalog) if (operation.rawBody) mount(operation, raw, api)
  })
}

function mount(operation: Operation, app: FastifyInstance, api: Api) {
  app.route({
    method: operation.method,
    url: operation.path.replace(/\{(\w+)\}/g, ':$1'),
    ...(operation.rawBody && { bodyLimit: operation.rawBody.limit }),
    // Before the body is read: what is not even JSON counts as well.
    onRequest: async (request) => void entries.set(request, await meet(operation, request, api)),
    config: { operation: operation.name, bodyType: operation.rawBody ? BYTES_TYPE : JSON_TYPE },
    handler: (request, reply) => handle(operation, request, reply, api),
  })
}

/** Calls between their headers and their body. */
const entries = new WeakMap<FastifyRequest, Entry>()

async function meet(operation: Operation, { ip, headers }: FastifyRequest, api: Api): Promise<Entry> {
  const entry = await enter(operation, { address: ip, bearer: bearerOf(headers.authorization) }, api)
  await permit(operation, entry, api)
  return entry
}

async function handle(operation: Operation, request: FastifyRequest, reply: FastifyReply, api: Api) {
  const entry = entries.get(request)
  const gone = new AbortController()
  // 'close' without a finished answer: nobody is listening any more, so waiting for them is pointless.
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort()
  })
  const preferred = preferredWait(request.headers.prefer)
  using seat = preferred ? api.seats.take(entry?.caller?.accountId ?? addressKey(request.ip)) : null
  const wait = preferred && !seat ? null : preferred
  const credentials: Credentials = {
    address: request.ip,
    entry,
    bearer: bearerOf(request.headers.authorization),
    idempotencyKey: single(request.headers['idempotency-key']),
    payment: single(request.headers['payment-signature']),
    waitSeconds: wait ?? 0,
    signal: gone.signal,
    ifMatch: single(request.headers['if-match']),
    ifNoneMatch: single(request.headers['if-none-match']),
  }
  const answer = await execute(operation, () => inputOf(operation, request), { api, credentials })
  const rendered =
    operation.access === 'payment' || (operation.access === 'recovery' && operation.kind === 'exchange')
      ? renderAnswer(answer as VerificationAnswer, api, { recovery: operation.access === 'recovery' })
      : plain(answer)
  if (wait !== null && (rendered.status === 200 || rendered.status === 202))
    rendered.headers['preference-applied'] = `wait=${wait}`
  return write(reply, rendered)
}

function plain(answer: unknown): HttpAnswer {
  if (answer instanceof Reply) return { status: answer.status, headers: { ...answer.headers }, body: answer.body }
  return { status: 200, headers: {}, body: answer }
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
function inputOf(operation: Operation, request: FastifyRequest): unknown {
  const path = request.params as Record<string, string>
  const given = operation.method === 'GET' ? (request.query as object) : bodyOf(operation, request)
  const twice = Object.keys(path).find((name) => Object.hasOwn(given, name))
  // Two values for one thing: whoever sent them meant something else than what would happen.
  if (twice !== undefined && operation.family === 'control')
    throw new AppError('invalid_request', `${twice}: is given by the path already.`)
  return { ...given, ...path }
}

function bodyOf(operation: Operation, { body, headers }: FastifyRequest): object {
  const type = headers['content-type']
  if (operation.rawBody) {
    if (type === undefined) throw wrongType(BYTES_TYPE)
    return { [operation.rawBody.member]: body ?? Buffer.alloc(0) }
  }
  if (body === undefined && !needsBody(operation)) return {}
  if (body === undefined && !/^application\/json *(;|$)/i.test(type ?? '')) throw wrongType(JSON_TYPE)
  if (body === undefined || body === null || typeof body !== 'object' || Array.isArray(body))
    throw new AppError('invalid_request', 'The body must be a JSON object.')
  return body
}

function wrongType(expected: string, cause?: unknown) {
  return new AppError('unsupported_media_type', `Content-Type must be ${expected}.`, { cause })
}

/** An operation whose required input is all in the path can be called without a body. */
function needsBody(operation: Operation): boolean {
  return Object.entries(operation.input.shape).some(
    ([name, schema]) => !operation.path.includes(`{${name}}`) && !(schema as z.ZodType).safeParse(undefined).success,
  )
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(', ') : header
}

export function bearerOf(header: string | undefined): string | undefined {
  return header?.match(/^Bearer +([\x21-\x7e]+) *$/i)?.[1]
}

/** RFC 7240 `wait`, in whole seconds and at most 25; null when it was not asked for. */
export function preferredWait(header: string | string[] | undefined): number | null {
  for (const preference of single(header)?.split(',') ?? []) {
    const seconds = preference.match(/^\s*wait\s*=\s*"?(\d+)"?\s*(;.*)?$/i)?.[1]
    if (seconds !== undefined) return Math.min(Number(seconds), MAX_WAIT_SECONDS)
  }
  return null
}

/** The one place where a thrown value becomes an answer. Faults of ours are logged here, with the operation they hit. */
export function renderError(error: unknown, request: FastifyRequest): HttpAnswer {
  const known = fromFramework(error, request)
  if (!(known instanceof AppError)) {
    const operation = request.routeOptions.config?.operation ?? 'unknown'
    request.log.error({ event: 'request_failed', operation, err: known })
  }
  if (request.url.startsWith('/api/')) return renderVerificationError(known)
  const { status, headers, error: body } = publicError(known)
  return { status: body.code === 'internal_error' ? 500 : status, headers: { ...headers }, body: { error: body } }
}

/** What Fastify refuses by itself, before an operation is reached. */
function fromFramework(error: unknown, request: FastifyRequest): unknown {
  const { config, bodyLimit } = request.routeOptions
  const code = (error as { code?: unknown }).code
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return wrongType(config?.bodyType ?? JSON_TYPE, error)
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new AppError('body_too_large', `The request body is larger than ${bodyLimit} bytes.`, { cause: error })
  const status = (error as { statusCode?: unknown }).statusCode
  if (!(error instanceof AppError) && typeof status === 'number' && status >= 400 && status < 500)
    return new AppError('invalid_request', 'The request cannot be read.', { cause: error })
  return error
}

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: string
    /** The one content type it takes. */
    bodyType?: string
    /** Pages in browsers may not read what it answers. */
    cors?: false
  }
}
