// The OpenAPI document agrees with the catalogue about bodies, parameters, bytes and failures.
import t from 'tap'
import { catalog } from '../../server/catalog.ts'
import { readConfig } from '../../server/config.ts'
import { errorTable } from '../../server/errors.ts'
import { buildDocument } from '../../server/http/openapi.ts'

interface Described {
  operationId: string
  parameters: { name: string; in: string; required?: boolean; schema?: unknown }[]
  requestBody?: { required: boolean; content: Record<string, { schema: Record<string, unknown> }> }
  responses: Record<
    string,
    { content?: Record<string, unknown>; headers?: Record<string, unknown>; description: string }
  >
}

const document = buildDocument({ config: readConfig({}) }, catalog)
const paths = document.paths as Record<string, Record<string, Described>>
const find = (id: string) =>
  Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .find(({ operationId }) => operationId === id) as Described

t.test('every operation is described once, every path parameter has a schema, every reference resolves', async (t) => {
  const described = Object.values(paths).flatMap((methods) => Object.values(methods))
  t.same(described.map(({ operationId }) => operationId).sort(), catalog.map(({ name }) => name).sort())
  for (const [path, methods] of Object.entries(paths))
    for (const { operationId, parameters } of Object.values(methods)) {
      const inPath = parameters.filter((parameter) => parameter.in === 'path')
      t.same(
        inPath.map(({ name }) => name).sort(),
        [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort(),
        operationId,
      )
      t.ok(
        parameters.every(({ schema }) => schema !== undefined),
        operationId,
      )
    }
  const references = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name)
  t.same([...new Set(references)].sort(), ['Failure', 'NonCompleted', 'Offer'])
  t.same(Object.keys(document.components.schemas).sort(), ['Failure', 'NonCompleted', 'Offer'])
})

t.test('bodies: JSON for members, bytes for a raw body, none without input', async (t) => {
  const { requestBody } = find('grant_lease')
  t.match(requestBody, { required: true })
  t.match(requestBody?.content['application/json']?.schema, {
    required: ['agent', 'action', 'lim', 'ttl_s'],
    properties: { ttl_s: { minimum: 1, maximum: 86_400 }, agent: { minLength: 1, maxLength: 200 } },
    additionalProperties: false,
  })
  const revoke = find('revoke_api_key').requestBody
  t.equal(revoke?.required, false)
  t.same(Object.keys(revoke?.content['application/json']?.schema.properties ?? {}), ['after_s'])
  t.same(Object.keys(find('put_journal_slot').requestBody?.content ?? {}), ['application/octet-stream'])
  for (const id of ['renew_lease', 'revoke_lease', 'delete_journal_slot', 'get_lease', 'get_usage'])
    t.equal(find(id).requestBody, undefined, id)
})

t.test('queries and conditional headers are parameters', async (t) => {
  const names = (id: string, place: string) =>
    find(id)
      .parameters.filter((parameter) => parameter.in === place)
      .map(({ name, required }) => `${name}${required ? '!' : ''}`)
  t.same(names('list_leases', 'query'), ['state', 'limit', 'before'])
  t.same(names('get_chain', 'query'), ['from', 'to'])
  t.same(names('get_consistency', 'query'), ['from!', 'to'])
  for (const id of ['put_journal_slot', 'get_journal_slot', 'delete_journal_slot'])
    t.same(names(id, 'header'), ['If-Match', 'If-None-Match'], id)
  t.same(names('create_receipt', 'header'), ['Idempotency-Key'])
  t.same(names('verify_source', 'header'), ['Idempotency-Key!', 'Prefer'])
})

t.test('answers: the statuses of success, bytes as bytes, and every failure by its code', async (t) => {
  const statuses = (id: string) => Object.keys(find(id).responses)
  t.same(statuses('put_journal_slot'), [
    '200',
    '201',
    '400',
    '401',
    '403',
    '404',
    '412',
    '413',
    '415',
    '429',
    '500',
    '503',
  ])
  t.same(statuses('get_journal_slot'), ['200', '304', '400', '401', '403', '404', '412', '429', '500', '503'])
  t.same(statuses('delete_journal_slot'), ['204', '400', '401', '403', '404', '412', '413', '415', '429', '500', '503'])
  t.same(statuses('renew_lease'), ['200', '400', '401', '403', '404', '409', '413', '415', '429', '500', '503'])
  t.same(statuses('register'), ['201', '400', '409', '413', '415', '429', '500', '503'])
  const { responses } = find('get_journal_slot')
  t.same(Object.keys(responses[200]?.content ?? {}), ['application/octet-stream'])
  t.ok(responses[200]?.headers?.ETag && responses[304]?.headers?.ETag)
  t.equal(responses[304]?.content, undefined)
  t.ok(find('create_receipt').responses[429]?.headers?.['Retry-After'])
  t.match(find('grant_lease').responses[403]?.description, `\`tier_limit\`: ${errorTable.tier_limit.about}`)
})
