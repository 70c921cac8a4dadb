// Where clients discover the endpoint and what is sold: well-known file, pages, registry manifest.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { IDENTITY } from '../../server/mcp/server.ts'
import { openAccountHarness } from '../accounts/harness.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())

t.test('/.well-known/x402 names the paid resource, which answers 402', async (t) => {
  const answer = await office.call('GET', '/.well-known/x402')
  t.equal(answer.status, 200)
  t.match(answer.body, { version: 1, resources: [/^http/], instructions: /./ })
  t.equal(answer.body.resources.length, 1)
  const [resource] = answer.body.resources as [string]
  const { endpoint } = (await office.call('GET', '/api/agent/v1/capabilities')).body
  t.equal(resource, endpoint)
  const unpaid = await fetch(resource, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'discovery-0123456789' },
    body: JSON.stringify({ source_url: 'https://example.com/', claim: 'x' }),
  })
  t.equal(unpaid.status, 402)
})

t.test('the pages name the endpoint', async (t) => {
  for (const path of ['/', '/llms.txt']) {
    const page = (await office.call('GET', path)).bytes.toString()
    t.match(page, new URL('/mcp', office.api.baseUrl).href, path)
    t.match(page, 'service_verify_source', path)
  }
})

t.test('server.json has the form that the registry requires', async (t) => {
  const server = JSON.parse(readFileSync(join(import.meta.dirname, '../../server.json'), 'utf8'))
  t.match(
    server.$schema,
    /^https:\/\/static\.modelcontextprotocol\.io\/schemas\/\d{4}-\d\d-\d\d\/server\.schema\.json$/,
  )
  t.match(server.name, /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
  t.ok(server.name.length <= 200)
  t.ok(server.description.length >= 1 && server.description.length <= 100, `${server.description.length} characters`)
  t.equal(server.version, IDENTITY.version)
  t.equal(server.title, IDENTITY.title)
  const [remote, ...others] = server.remotes
  t.same(others, [])
  t.equal(remote.type, 'streamable-http')
  t.equal(new URL(remote.url.replace('{host}', 'verify.example')).pathname, '/mcp')
  t.same(
    Object.keys(remote.variables),
    [...remote.url.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
  )
  t.match(remote.headers, [{ name: 'Authorization', isSecret: true }])
})
