// The OpenAPI 3.1 document, made from the catalogue. The pages of the reference show it.
import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import type { Api } from '../context.ts'
import { type ErrorCode, errorTable } from '../errors.ts'
import { nonCompleted } from '../interface/result.ts'
import { errorCodes, type Operation } from '../operation.ts'
import { describeOffer, type Offer, type OfferConfig } from '../verification/offer/offer.ts'
import { paymentInfoOf } from './payment-info.ts'

/**
 * The document, made so that other requests get their turn after each operation: to convert all schemas takes as long as the rest of
 * the application's start.
 */
export async function makeDocument(api: Pick<Api, 'config'>, catalog: readonly Operation[]) {
  const offer = describeOffer(api.config)
  for (const operation of catalog) {
    // What it converts stays in `described`.
    describe(operation, offer)
    await setImmediate()
  }
  return buildDocument(api, catalog)
}

/** Exported for the tests, which compare it with the routes. */
export function buildDocument(
  { config }: { config: OfferConfig & Pick<Api['config'], 'baseUrl'> },
  catalog: readonly Operation[],
) {
  const offer = describeOffer(config)
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of catalog)
    paths[operation.path] = { ...paths[operation.path], [operation.method.toLowerCase()]: describe(operation, offer) }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Countersign',
      version: '1.0.0',
      description: [INTRODUCTION, describeSale(offer), offer.scope, REFERENCE, errorList()].join('\n\n'),
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: config.baseUrl ?? '/' }],
    paths,
    components: {
      schemas: { NonCompleted: schemaOf(nonCompleted), Offer: schemaOf(offered), Failure: schemaOf(failure) },
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key of the account: ctk_...' },
        recoveryToken: { type: 'http', scheme: 'bearer', description: 'The value of X-Service-Recovery-Token.' },
        payment: {
          type: 'apiKey',
          in: 'header',
          name: 'PAYMENT-SIGNATURE',
          description: 'Base64 x402 v2 payment payload. A stock x402 client makes it from the 402 answer.',
        },
      },
    },
  }
}

const INTRODUCTION =
  'Source verification for AI agents, paid per call through x402 v2, and a control toolkit for accounts.'
const REFERENCE =
  'Risk flags of results are explained at `/risk-flags`, methodology versions at `/methodology/{version}`.'

function describeSale({ closed, summary, outcomes }: Offer) {
  return [...(closed ? [closed] : []), summary, outcomes].join(' ')
}

const offered = nonCompleted.extend({ how_to_call: z.looseObject({}).optional() })

/** The body of every failure of the control toolkit. */
const failure = z.strictObject({
  error: z.strictObject({ code: z.enum(Object.keys(errorTable)), message: z.string(), retryable: z.boolean() }),
})

function errorList() {
  const rows = Object.entries(errorTable).map(
    ([code, { status, retryable, varies, about }]) =>
      `| \`${code}\` | ${status} | ${varies ? 'in some cases' : retryable ? 'yes' : 'no'} | ${about} |`,
  )
  return ['| error code | status | retryable | meaning |', '|---|---|---|---|', ...rows].join('\n')
}

type Schema = z.core.JSONSchema.BaseSchema

/** The schemas of the catalogue never change, and to convert them takes time. */
const described = { input: new WeakMap<z.ZodType, Schema>(), output: new WeakMap<z.ZodType, Schema>() }

/** Made once, and shared by every document, so nothing may change it. */
function schemaOf(type: z.ZodType, io: 'input' | 'output' = 'output'): Schema {
  const known = described[io].get(type)
  if (known) return known
  const made = z.toJSONSchema(type, { io })
  described[io].set(type, made)
  return made
}

function describe(operation: Operation, offer: Offer) {
  const names = Object.keys(operation.input.shape)
  const { path = [], rest = [] } = Object.groupBy(names, (name) =>
    operation.path.includes(`{${name}}`) ? 'path' : 'rest',
  )
  // Bytes have no JSON Schema, and a raw body has no other member.
  const taken = operation.rawBody ? z.strictObject(only(operation.input.shape, path)) : operation.input
  const input = schemaOf(taken, 'input')
  return {
    operationId: operation.name,
    summary: operation.summary,
    description:
      operation.access === 'payment' ? `${describeSale(offer)} ${operation.description}` : operation.description,
    tags: [operation.family],
    parameters: [
      ...path.map((name) => ({ name, in: 'path', required: true, schema: input.properties?.[name] })),
      ...(operation.method === 'GET' ? rest.map((name) => queryParameter(name, input)) : []),
      ...headerParameters(operation),
    ],
    ...bodyOf(operation, input, path),
    ...securityOf(operation),
    responses: operation.family === 'control' ? controlResponses(operation) : verificationResponses(operation),
  }
}

function only(shape: z.ZodRawShape, names: string[]) {
  return Object.fromEntries(Object.entries(shape).filter(([name]) => names.includes(name)))
}

function queryParameter(name: string, input: Schema) {
  return { name, in: 'query', required: input.required?.includes(name) ?? false, schema: input.properties?.[name] }
}

function bodyOf({ method, rawBody, otherwise }: Operation, input: Schema, inPath: string[]) {
  if (rawBody)
    return { requestBody: { required: true, content: { [BYTES]: { schema: { maxLength: rawBody.limit } } } } }
  const members = Object.entries(input.properties ?? {}).filter(([name]) => !inPath.includes(name))
  if (method === 'GET' || members.length === 0) return {}
  const required = input.required?.filter((name) => !inPath.includes(name)) ?? []
  const schema = { ...input, properties: Object.fromEntries(members), required }
  const taken = otherwise ? { anyOf: [schema, schemaOf(otherwise.input, 'input')] } : schema
  return { requestBody: { required: required.length > 0, content: { [JSON_BODY]: { schema: taken } } } }
}

const JSON_BODY = 'application/json'
const BYTES = 'application/octet-stream'

function securityOf(operation: Operation) {
  switch (operation.access) {
    case 'public':
    case 'terms':
      return { security: [] }
    case 'account':
      return { security: [{ apiKey: [] }] }
    case 'recovery':
      return { security: [{ recoveryToken: [] }] }
    case 'proof':
      return { security: [{ payment: [] }] }
    case 'payment':
      return { security: [{}, { payment: [] }], 'x-payment-info': paymentInfoOf(operation) }
  }
}

/** Whether it can be bought without a key. */
function takesAnyCall(operation: Operation): boolean {
  return operation.answers === 'verification' && operation.unpaid !== undefined
}

function headerParameters(operation: Operation) {
  const prefer = {
    name: 'Prefer',
    in: 'header',
    description:
      'With `wait=N` the answer comes when the work is done, or after N seconds (at most 25), as RFC 7240 has it.',
    schema: { type: 'string', examples: ['wait=20'] },
  }
  const key = {
    name: 'Idempotency-Key',
    in: 'header',
    required: true,
    description: 'A name for the purchase that nobody can guess. Repeat the call with the same one.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9_.:-]{16,128}$' },
  }
  const tags = (name: string) => ({
    name,
    in: 'header',
    description: 'The ETag of what you know, or `*` for any, as RFC 9110 has it.',
    schema: { type: 'string' },
  })
  const optionalKey = {
    name: 'Idempotency-Key',
    in: 'header',
    description: 'A name of your own for the call. The same call with the same one is done once.',
    schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
  }
  if (operation.access === 'terms') return []
  if (operation.access === 'payment') return [{ ...key, required: !takesAnyCall(operation) }, prefer]
  if (operation.answers === 'verification') return [prefer]
  if (operation.pending) return [prefer]
  if (operation.errors?.includes('idempotency_conflict')) return [optionalKey]
  return operation.conditional ? [tags('If-Match'), tags('If-None-Match')] : []
}

const text = (description: string) => ({ description, schema: { type: 'string' } })
const HEADERS = {
  'X-Service-Recovery-Token': text('A secret that opens the result of this purchase at its address. Keep it.'),
  'X-Service-Idempotent-Replay': text(
    '`true` when the purchase was made by an earlier call, and this one charged nothing.',
  ),
  'PAYMENT-RESPONSE': text('What became of the payment, in Base64, as x402 has it.'),
  'PAYMENT-REQUIRED': text('The terms of payment, in Base64, as x402 has them.'),
  'Retry-After': text('Seconds to wait before the next call.'),
  Location: text('The address at which the outcome can be asked for.'),
  ETag: text('The SHA-256 of the bytes, quoted.'),
  'Preference-Applied': text('`wait=N`: the most seconds for which this answer was held, as the call asked.'),
  'WWW-Authenticate': text('`Bearer`: how a key is sent.'),
}
type HeaderName = keyof typeof HEADERS

const VERIFICATION_ANSWERS: Record<string, { about: string; headers?: HeaderName[]; only?: 'payment' | 'recovery' }> = {
  202: {
    about: 'In progress, or nobody knows yet whether it was paid. Send the same payment again, never a new one.',
    headers: ['Retry-After', 'Location', 'X-Service-Recovery-Token', 'Preference-Applied'],
  },
  400: { about: 'Invalid request', only: 'payment' },
  402: {
    about: 'A payment is needed, or the one you sent is invalid or was not made. Nothing was charged.',
    headers: ['PAYMENT-REQUIRED'],
  },
  404: { about: 'Unknown request, or the token is of another request', only: 'recovery' },
  409: { about: 'The key or the payment belongs to another request', only: 'payment' },
  410: { about: 'Quote or result expired' },
  415: { about: 'Content-Type must be application/json', only: 'payment' },
  422: {
    about:
      'The page could not be read, the verification failed, or the price is above your budget. Nothing was charged. ' +
      'With `retryable` true, the same purchase, sent again with the same key, is answered 402 and may be paid again. Until a payment is bound to it, ' +
      'recovery answers 422 as before.',
  },
  429: {
    about: 'Too many calls, or too many at once. The same call may be sent again.',
    headers: ['Retry-After'],
  },
  503: {
    about:
      'Disabled, at capacity, or a provider does not answer. Retry the same request. With `capacity_exceeded` and a ' +
      '`request_id`, the service was too busy to finish this request: nothing was charged, and the same purchase, sent again with ' +
      'the same key, is answered 402 and may be paid again.',
    headers: ['Retry-After'],
  },
}

/** What a status means for an operation for which the table says too much or too little. */
function meaningFor({ access, answers, rawAnswer }: Operation, status: string): string | undefined {
  if (access === 'terms' && status === '402') return 'The terms of payment, and how to buy: the normal answer'
  if (access === 'proof' && status === '404') return 'No request here has this payment'
  if (rawAnswer && status === '404') return 'Unknown request, the token is of another request, or nothing was kept'
  if (status !== '503') return undefined
  if (access === 'terms') return 'Switched off, at capacity, or a provider does not answer. Retry the same request.'
  return answers === 'plain' ? 'At capacity, or a provider does not answer. Retry the same request.' : undefined
}

/** The headers of a 200. A recovery repeats neither the settlement nor that the purchase existed: both are known there. */
const RECOVERED: HeaderName[] = ['X-Service-Recovery-Token', 'Preference-Applied']
const PURCHASED: HeaderName[] = [...RECOVERED, 'X-Service-Idempotent-Replay', 'PAYMENT-RESPONSE']

/** The statuses of an operation that looks up what is stored and buys nothing. */
const LOOKUP_STATUSES = ['404', '429', '503']
const TERMS_STATUSES = ['402', '429', '503']

/** At the door for stock clients, a 402 says how to call it. */
function bodyNameOf(operation: Operation, status: string) {
  const isOffer = operation.answers === 'verification' && operation.through === 'buy' && status === '402'
  return isOffer ? 'Offer' : 'NonCompleted'
}

function verificationResponses(operation: Operation) {
  const lookup = operation.answers === 'plain'
  const success = {
    description: 'Success',
    content: successContent(operation),
    ...(!lookup && { headers: pick(operation.access === 'payment' ? PURCHASED : RECOVERED) }),
  }
  if (operation.access === 'public') return { 200: success }
  const others = Object.entries(VERIFICATION_ANSWERS)
    .filter(([status, { only }]) => {
      if (operation.access === 'terms') return TERMS_STATUSES.includes(status)
      return lookup ? LOOKUP_STATUSES.includes(status) : !only || only === operation.access
    })
    .map(([status, { about, headers }]) => [
      status,
      {
        description: meaningFor(operation, status) ?? about,
        content: { [JSON_BODY]: { schema: { $ref: `#/components/schemas/${bodyNameOf(operation, status)}` } } },
        ...describeHeaders(headers),
      },
    ])
  return { ...(operation.access !== 'terms' && { 200: success }), ...Object.fromEntries(others) }
}

const FAILED: Record<string, HeaderName[]> = { 401: ['WWW-Authenticate'], 429: ['Retry-After'], 503: ['Retry-After'] }
const describeHeaders = (names: HeaderName[] | undefined) => (names ? { headers: pick(names) } : {})

function controlResponses(operation: Operation) {
  const success = (operation.statuses ?? [200]).map((status) => [status, describeSuccess(operation, status)])
  const failures = Object.entries(Object.groupBy(codesOf(operation), statusOf)).map(([status, codes = []]) => [
    status,
    {
      description: codes.map((code) => `\`${code}\`: ${errorTable[code].about}`).join(' '),
      content: { [JSON_BODY]: { schema: { $ref: '#/components/schemas/Failure' } } },
      ...describeHeaders(FAILED[status === '422' && operation.pending ? '429' : status]),
    },
  ])
  return Object.fromEntries([...success, ...failures])
}

function describeSuccess(operation: Operation, status: number) {
  if (status === 202 && operation.pending)
    return {
      description: 'Under way. Repeat the call, or ask at Location, after Retry-After.',
      headers: pick(['Retry-After', 'Location', 'Preference-Applied']),
      content: { [JSON_BODY]: { schema: schemaOf(operation.pending) } },
    }
  const tag: HeaderName[] | undefined = operation.conditional && status !== 204 ? ['ETag'] : undefined
  const headers = describeHeaders(operation.pending ? ['Preference-Applied'] : tag)
  if (status === 204) return { description: 'Done', ...headers }
  if (status === 304) return { description: 'Not modified: If-None-Match names the current state', ...headers }
  const content = successContent(operation)
  return { description: status === 201 ? 'Created' : 'Success', ...headers, content }
}

function successContent({ rawAnswer, output }: Operation) {
  return rawAnswer ? { [rawAnswer]: { schema: {} } } : { [JSON_BODY]: { schema: schemaOf(output) } }
}

/** Every code that the operation may fail with in HTTP. */
function codesOf(operation: Operation): ErrorCode[] {
  const body = operation.method === 'GET' ? [] : (['body_too_large', 'unsupported_media_type'] as const)
  // A parameter that cannot be decoded leads to no operation.
  const undecodable = operation.path.includes('{') ? (['not_found'] as const) : []
  const anyCall = ['provider_unavailable', 'capacity_exceeded', 'internal_error'] as const
  return [...new Set([...errorCodes(operation), ...undecodable, ...body, ...anyCall])]
}

function statusOf(code: ErrorCode): number {
  return code === 'internal_error' ? 500 : errorTable[code].status
}

function pick(names: HeaderName[]) {
  return Object.fromEntries(names.map((name) => [name, HEADERS[name]]))
}
