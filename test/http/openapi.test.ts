// The OpenAPI document is complete and resolvable, and agrees with the service.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import t from 'tap'
import { catalog } from '../../server/catalog.ts'
import { UnavailableError } from '../../server/errors.ts'
import { expectDocumented } from '../documented-answers.ts'
import { openAjv } from '../interface.schema.ts'
import { startSystem, VERIFY } from '../system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

type Node = Record<string, unknown>
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

async function load(): Promise<Node> {
  return (await (await fetch(system.url('/openapi.json'))).json()) as Node
}

function* walk(value: unknown, path = '#'): Generator<[path: string, node: Node]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [path, value as Node]
  for (const [name, member] of Object.entries(value))
    yield* walk(member, `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`)
}

function resolve(document: Node, pointer: string): unknown {
  const steps = decodeURIComponent(pointer.slice(1)).split('/').slice(1)
  return steps.reduce<unknown>(
    (at, step) => (at as Node | undefined)?.[step.replaceAll('~1', '/').replaceAll('~0', '~')],
    document,
  )
}

/** The operations of a document, with their references resolved. */
function listOperations(document: Node) {
  return Object.entries(document.paths as Record<string, Node>).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => METHODS.includes(method))
      .map(([method, operation]) => ({ path, method, operation: operation as Node, item })),
  )
}

const follow = (document: Node, node: unknown): Node => {
  const { $ref } = node as Node
  return (typeof $ref === 'string' ? resolve(document, $ref) : node) as Node
}

t.test('its structure is that of OpenAPI 3.1', async (t) => {
  const response = await fetch(system.url('/openapi.json'))
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /json/)
  const document = (await response.json()) as Node
  t.match(document.openapi, /^3\.1\.\d+$/)
  t.match(document.info, { title: /./, version: '1.0.0' }, 'the version of the interface description')
  for (const server of document.servers as Node[]) t.ok(URL.canParse(String(server.url), system.service.address))
  const ids = new Set<unknown>()
  for (const { path, method, operation, item } of listOperations(document)) {
    const about = `${method} ${path}`
    t.match(path, /^\//)
    t.type(operation.operationId, 'string', about)
    t.notOk(ids.has(operation.operationId), `${about}: operationId is its own`)
    ids.add(operation.operationId)
    const parameters = [...((item.parameters ?? []) as unknown[]), ...((operation.parameters ?? []) as unknown[])].map(
      (parameter) => follow(document, parameter),
    )
    const declared = parameters.filter((parameter) => parameter.in === 'path')
    const templated = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name)
    t.same(declared.map((parameter) => parameter.name).sort(), templated.sort(), `${about}: path parameters`)
    for (const parameter of declared) t.equal(parameter.required, true, about)
    for (const parameter of parameters) t.ok(parameter.schema || parameter.content, `${about}: ${parameter.name}`)
    const responses = Object.entries(operation.responses as Node)
    t.ok(responses.length > 0, about)
    for (const [status, response] of responses) {
      t.match(status, /^([1-5](\d\d|XX)|default)$/, about)
      t.type(follow(document, response).description, 'string', `${about} ${status}`)
    }
    for (const requirement of (operation.security ?? document.security ?? []) as Node[])
      for (const name of Object.keys(requirement))
        t.ok(resolve(document, `#/components/securitySchemes/${name}`), `${about}: security scheme ${name}`)
  }
})

t.test('every reference resolves', async (t) => {
  const document = await load()
  for (const [path, node] of walk(document)) {
    if (typeof node.$ref !== 'string') continue
    t.match(node.$ref, /^#\//, `${path} stays within the document`)
    t.not(resolve(document, node.$ref), undefined, `${path} → ${node.$ref}`)
  }
})

t.test('every schema compiles', async (t) => {
  const document = await load()
  const ajv = openAjv()
  for (const keyword of ['openapi', 'info', 'servers', 'paths', 'components', 'tags', 'security', 'jsonSchemaDialect'])
    ajv.addKeyword(keyword)
  for (const keyword of ['example', 'discriminator', 'xml', 'externalDocs']) ajv.addKeyword(keyword)
  ajv.addSchema(document, 'openapi')
  const pointers = [...walk(document)].flatMap(([path, node]) => {
    if (path.startsWith('#/components/schemas/') && path.split('/').length === 4) return [path]
    return 'schema' in node ? [`${path}/schema`] : []
  })
  t.ok(pointers.length > catalog.length)
  for (const pointer of pointers) t.doesNotThrow(() => ajv.compile({ $ref: `openapi${encodeURI(pointer)}` }), pointer)
})

t.test('the bounds of a heartbeat and of the URLs of webhooks are published', async (t) => {
  const document = await load()
  const accepts = (path: string, method: string, body: object) => {
    const found = listOperations(document).find((one) => one.path === path && one.method === method)
    const schema = resolve({ ...found?.operation }, '#/requestBody/content/application~1json/schema') as Node
    return openAjv().compile(schema)(body)
  }
  const note = (text: string) => accepts('/v1/heartbeat/{name}', 'post', { note: text })
  t.equal(note('\u{1F40C}'.repeat(200)), true, 'characters are code points')
  t.equal(note('x'.repeat(201)), false)
  for (const [path, rest] of [
    ['/v1/watchdog/{name}', { interval_s: 60 }],
    ['/v1/citation-watch/{name}', {}],
  ] as const) {
    const hook = (webhook_url: string) => accepts(path, 'put', { ...rest, webhook_url })
    t.equal(hook('https://example.com/hook'), true, path)
    for (const url of ['http://example.com/', 'example.com', 'https://', 'https://example.com/a b', ''])
      t.equal(hook(url), false, `${path} ${url}`)
  }
})

t.test('the document has every operation, and every route of it exists', async (t) => {
  const document = await load()
  const named = listOperations(document).map(({ method, path }) => `${method.toUpperCase()} ${path}`)
  for (const { method, path } of catalog) t.ok(named.includes(`${method} ${path}`), `${method} ${path}`)
  for (const { method, path } of listOperations(document)) {
    const response = await fetch(system.url(path.replaceAll(/\{[^}]+\}/g, 'x')), { method })
    t.notMatch(await response.text(), /nothing at this address/, `${method} ${path} is routed`)
  }
})

t.test('the verification routes have the statuses, headers and parameters of the interface', async (t) => {
  const document = await load()
  const operation = (method: string, path: string) =>
    resolve(document, `#/paths/${path.replaceAll('/', '~1')}/${method}`) as Node
  const verify = operation('post', VERIFY)
  const responses = verify.responses as Record<string, Node>
  for (const status of ['200', '202', '400', '402', '409', '410', '415', '422', '429', '503'])
    t.ok(responses[status], `verify-source ${status}`)
  const headersOf = (status: string) => Object.keys((follow(document, responses[status]).headers ?? {}) as Node)
  t.ok(headersOf('402').includes('PAYMENT-REQUIRED'))
  t.ok(headersOf('202').includes('Retry-After') && headersOf('202').includes('X-Service-Recovery-Token'))
  for (const name of ['PAYMENT-RESPONSE', 'X-Service-Idempotent-Replay', 'X-Service-Recovery-Token'])
    t.ok(headersOf('200').includes(name), name)
  const parameters = (verify.parameters as unknown[]).map((parameter) => follow(document, parameter))
  const header = (name: string) => parameters.find((parameter) => parameter.in === 'header' && parameter.name === name)
  t.equal(header('Idempotency-Key')?.required, true)
  t.match(header('Idempotency-Key')?.schema, { pattern: '^[A-Za-z0-9_.:-]{16,128}$' })
  // A security scheme in a header takes the place of a header parameter. It must not be required, nor may a bearer token.
  const schemes = ((verify.security ?? []) as Node[]).map((requirement) => Object.keys(requirement))
  const required = schemes.map((names) =>
    names.map((name) => resolve(document, `#/components/securitySchemes/${name}`)),
  )
  const payment = { type: 'apiKey', in: 'header', name: 'PAYMENT-SIGNATURE' }
  if (header('PAYMENT-SIGNATURE')) t.not(header('PAYMENT-SIGNATURE')?.required, true)
  else {
    t.ok(
      required.some(([scheme]) => scheme !== undefined && t.match(scheme, payment)),
      'PAYMENT-SIGNATURE is described',
    )
    t.ok(
      schemes.some((names) => names.length === 0),
      'and may be left out',
    )
  }
  t.notOk(JSON.stringify(required).includes('"bearer"'), 'no bearer token')
  t.equal((follow(document, verify.requestBody) as Node).required, true)

  const recovery = operation('get', '/api/agent/v1/requests/{request_id}')
  for (const status of ['200', '202', '404', '410']) t.ok((recovery.responses as Node)[status], `recovery ${status}`)
  t.ok(recovery.security, 'recovery takes a bearer token')
})

t.test(
  'a path parameter that cannot be decoded is answered as documented, by every operation that has one',
  async (t) => {
    const withParameter = listOperations(await load()).filter(({ path }) => path.includes('{'))
    t.ok(withParameter.length > 0)
    for (const { path, method } of withParameter)
      for (const parameter of path.match(/\{\w+\}/g) ?? [])
        for (const broken of ['%ff', '%', '%zz', 'x%e2%82', '%c0%af', '%ed%a0%80']) {
          const address = path.replace(parameter, broken).replaceAll(/\{\w+\}/g, 'x')
          // `fetch` rejects here if the document does not have the answer.
          const response = await fetch(system.url(address), { method })
          t.equal(response.status, 404, `${method} ${address}`)
          t.match(await response.json(), { error: { code: 'not_found', retryable: false } })
        }
  },
)

t.test('without the database, answers are as documented', async (t) => {
  await using away = await system.openTwin()
  const { db } = away.api
  const unavailable = new UnavailableError('provider_unavailable', 'The database does not answer.')
  away.api.db = new Proxy(db, { get: () => () => Promise.reject(unavailable) })
  for (const [method, path, body] of [
    ['get', '/v1/keys'],
    ['post', '/v1/register', '{"handle":"away"}'],
  ] as const) {
    const response = await fetch(new URL(path, away.address), {
      method,
      ...(body && { body, headers: { 'content-type': 'application/json' } }),
    })
    t.equal(response.status, 503, `${path} without its database`)
  }
  away.api.db = db
})

t.test('the tests notice an answer that is not as documented', async (t) => {
  const answers: [
    path: string,
    status: number,
    body: unknown,
    headers: Record<string, string>,
    problem: RegExp | null,
  ][] = [
    ['/v1/keys', 200, { keys: [] }, {}, null],
    ['/v1/keys', 200, { keys: 1 }, {}, /must be array/],
    ['/v1/keys', 418, {}, {}, /the status is not documented/],
    ['/v1/keys', 200, { keys: [] }, { 'retry-after': '1' }, /the header Retry-After is not documented/],
    [`/api/agent/v1/requests/x`, 404, nonCompleted('not_found'), {}, null],
    [`/api/agent/v1/requests/x`, 404, nonCompleted('Not found'), {}, /must match pattern/],
    [`/api/agent/v1/requests/x`, 404, { ...nonCompleted('not_found'), request_id: 'x' }, {}, /format "uuid"/],
    ['/elsewhere', 418, {}, {}, null],
    ['/v1/keys', 200, { keys: [] }, { 'cache-control': 'private, no-cache' }, /caches may keep it/],
  ]
  for (const [path, status, body, headers, problem] of answers) {
    const server = createServer((_request, response) => {
      const usual = { 'content-type': 'application/json', 'cache-control': 'no-store' }
      response.writeHead(status, { ...usual, ...headers }).end(JSON.stringify(body))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    using _ = expectDocumented(address)
    const asked = fetch(address + path)
    if (problem) await t.rejects(asked, problem)
    else await t.resolves(asked)
    server.closeAllConnections()
    server.close()
  }
})

function nonCompleted(code: string) {
  return { schema_version: '1.0.0', status: 'failed', error: { code, message: 'x', retryable: false } }
}

t.test('a stock linter finds no error', async (t) => {
  const config = await createConfig({ extends: ['recommended'] })
  const source = await (await fetch(system.url('/openapi.json'))).text()
  const problems = await lintFromString({ source, config, absoluteRef: 'openapi.json' })
  const found = problems.map(({ ruleId, severity, location }) => `${severity} ${ruleId} ${location[0]?.pointer}`)
  const meant = [
    'warn operation-4xx-response #/paths/~1api~1agent~1v1~1capabilities/get/responses',
    'warn operation-2xx-response #/paths/~1api~1agent~1v1~1buy/get/responses',
  ]
  t.same(found, meant, 'capabilities is 200 only, and the terms are always a 402')
})

t.test('it documents what is', async (t) => {
  const document = await load()
  const operation = (path: string, method: string) =>
    resolve(document, `#/paths/${path.replaceAll('/', '~1')}/${method}`) as Node
  t.notOk((operation(VERIFY, 'post').responses as Node)['404'])
  const recovered = (operation('/api/agent/v1/requests/{request_id}', 'get').responses as Record<string, Node>)['200']
  t.same(Object.keys(recovered?.headers as Node), ['X-Service-Recovery-Token', 'Preference-Applied'])
  const parameters = operation('/v1/chain', 'get').parameters as { name: string; schema: Node }[]
  t.equal(parameters.find(({ name }) => name === 'from')?.schema.default, 1)
  for (const { path, method, operation } of listOperations(document))
    t.ok(Array.isArray(operation.security), `${method} ${path} says what it asks for`)
  t.same(operation('/v1/register', 'post').security, [])
})

t.test('recovery can answer every outcome of a purchase, and the document says so', async (t) => {
  const document = await load()
  const { get } = (document.paths as Record<string, { get: { responses: Record<string, Node> } }>)[
    '/api/agent/v1/requests/{request_id}'
  ]!
  t.same(Object.keys(get.responses).sort(), ['200', '202', '402', '404', '410', '422', '429', '503'])
  t.match(get.responses['422'], {
    description: /retryable.*Until a payment is bound to it, recovery answers 422 as before\./,
  })
  for (const status of ['202', '429']) t.match(get.responses[status], { headers: { 'Retry-After': {} } })
  t.match(get.responses['402'], { headers: { 'PAYMENT-REQUIRED': {} } })
})
