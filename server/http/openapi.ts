// The OpenAPI 3.1 document, made from the catalogue, and the page that shows it.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { catalog } from '../catalog.ts'
import type { Api } from '../context.ts'
import { errorTable } from '../errors.ts'
import type { Operation } from '../operation.ts'
import { nonCompleted, PRICE } from '../verification/result.ts'

export async function mountOpenApi(app: FastifyInstance, api: Api) {
  const document = buildDocument(api)
  app.get('/openapi.json', { config: { operation: 'openapi' } }, async () => document)
  await app.register(swagger, { mode: 'static', specification: { document: document as never } })
  await app.register(swaggerUi, { routePrefix: '/docs', uiConfig: { docExpansion: 'list', tryItOutEnabled: true } })
}

/** Exported for the tests, which hold it to the running routes. */
export function buildDocument({ config }: Pick<Api, 'config'>) {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of catalog)
    paths[operation.path] = { ...paths[operation.path], [operation.method.toLowerCase()]: describe(operation) }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Countersign',
      version: '1.0.0',
      description: `Source verification for AI agents, paid per call through x402 v2.\n\n${errorList()}`,
    },
    servers: [{ url: config.baseUrl ?? '/' }],
    paths,
    components: {
      schemas: { NonCompleted: z.toJSONSchema(nonCompleted) },
      securitySchemes: {
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

function errorList() {
  const rows = Object.entries(errorTable).map(
    ([code, { status, retryable, about }]) => `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${about} |`,
  )
  return ['| error code | status | retryable | meaning |', '|---|---|---|---|', ...rows].join('\n')
}

function describe(operation: Operation) {
  const input = z.toJSONSchema(operation.input, { io: 'input' }) as { properties?: Record<string, object> }
  return {
    operationId: operation.name,
    summary: operation.summary,
    description: operation.description,
    tags: [operation.family],
    parameters: parametersOf(operation, input),
    ...(operation.method !== 'GET' && {
      requestBody: { required: true, content: { 'application/json': { schema: input } } },
    }),
    ...(operation.access === 'payment' && {
      security: [{}, { payment: [] }],
      'x-payment-info': {
        price: { mode: 'fixed', currency: 'USD', amount: PRICE.usd },
        protocols: [{ x402: {} }],
      },
    }),
    ...(operation.access === 'recovery' && { security: [{ recoveryToken: [] }] }),
    responses: responsesOf(operation),
  }
}

function parametersOf(operation: Operation, input: { properties?: Record<string, object> }) {
  const path = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: input.properties?.[name] ?? { type: 'string' },
  }))
  const prefer = {
    name: 'Prefer',
    in: 'header',
    description: 'RFC 7240: wait=N holds the answer until the work is done or N seconds (at most 25) are over.',
    schema: { type: 'string', examples: ['wait=20'] },
  }
  const key = {
    name: 'Idempotency-Key',
    in: 'header',
    required: true,
    description: 'Unpredictable, one per purchase, the same in every repeat of it.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9_.:-]{16,128}$' },
  }
  if (operation.access === 'payment') return [...path, key, prefer]
  return operation.access === 'recovery' ? [...path, prefer] : path
}

const text = (description: string) => ({ description, schema: { type: 'string' } })
const HEADERS = {
  'X-Service-Recovery-Token': text('Private bearer credential for the recovery address.'),
  'X-Service-Idempotent-Replay': text('`true` when an existing purchase is returned.'),
  'PAYMENT-RESPONSE': text('Base64 x402 settlement response.'),
  'PAYMENT-REQUIRED': text('Base64 x402 payment requirements.'),
  'Retry-After': text('Seconds.'),
  Location: text('The recovery address.'),
}
type HeaderName = keyof typeof HEADERS

const VERIFICATION_ANSWERS: Record<string, { about: string; headers?: HeaderName[]; only?: 'payment' }> = {
  202: {
    about: 'In progress, or the settlement outcome is unknown. Retry the same payment, never a new one.',
    headers: ['Retry-After', 'Location', 'X-Service-Recovery-Token'],
  },
  400: { about: 'Invalid request', only: 'payment' },
  402: { about: 'Payment required, invalid, or provably not settled', headers: ['PAYMENT-REQUIRED'] },
  404: { about: 'Unknown request, or the token is not its own' },
  409: { about: 'The key or the payment belongs to another request', only: 'payment' },
  410: { about: 'Quote or result expired' },
  415: { about: 'Content-Type must be application/json', only: 'payment' },
  422: { about: 'Retrieval or verification failed, or over budget. Not submitted for settlement.' },
  429: { about: 'Rate limited', headers: ['Retry-After'] },
  503: { about: 'Disabled, at capacity, or a provider is away. Retry the same request.' },
}

function responsesOf(operation: Operation) {
  const success = {
    description: 'Success',
    content: { 'application/json': { schema: z.toJSONSchema(operation.output) } },
    ...(operation.access !== 'public' && {
      headers: pick(['X-Service-Recovery-Token', 'X-Service-Idempotent-Replay', 'PAYMENT-RESPONSE']),
    }),
  }
  if (operation.access === 'public') return { 200: success }
  const others = Object.entries(VERIFICATION_ANSWERS)
    .filter(([, answer]) => !answer.only || answer.only === operation.access)
    .map(([status, { about, headers }]) => [
      status,
      {
        description: about,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/NonCompleted' } } },
        ...(headers && { headers: pick(headers) }),
      },
    ])
  return { 200: success, ...Object.fromEntries(others) }
}

function pick(names: HeaderName[]) {
  return Object.fromEntries(names.map((name) => [name, HEADERS[name]]))
}
