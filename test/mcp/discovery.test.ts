// Where clients discover the endpoint and what is sold: well-known file, pages, registry manifest.

import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CHECK_FACE } from '../../server/mcp/features.ts'
import { IDENTITY } from '../../server/mcp/server.ts'
import { openAccountHarness } from '../accounts/harness.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())

t.test('/.well-known/x402 names the paid resources, which answer 402', async (t) => {
  const answer = await office.call('GET', '/.well-known/x402')
  t.equal(answer.status, 200)
  t.match(answer.body, { version: 1, resources: [/^http/], instructions: /./ })
  const { endpoint, description } = (await office.call('GET', '/api/agent/v1/capabilities')).body
  const [door] = answer.body.resources as string[]
  t.same(answer.body.resources, [
    new URL('/api/agent/v1/buy', office.api.baseUrl).href,
    endpoint,
    new URL('/api/agent/v1/verify-claims', office.api.baseUrl).href,
  ])
  t.ok(description.includes(door), 'the door is named in the capabilities too')
  t.equal((await fetch(door ?? '')).status, 402, 'a catalogue reads the terms without knowing more')
  for (const resource of answer.body.resources as string[]) {
    const unpaid = await fetch(resource, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
      body: JSON.stringify({
        source_url: 'https://example.com/',
        ...(resource.endsWith('/verify-claims') ? { claims: ['x', 'y'] } : { claim: 'x' }),
      }),
    })
    t.equal(unpaid.status, 402, resource)
  }
})

t.test('the pages name the endpoint', async (t) => {
  for (const path of ['/', '/llms.txt']) {
    const page = (await office.call('GET', path)).bytes.toString()
    t.match(page, new URL('/mcp', office.api.baseUrl).href, path)
    t.match(page, 'service_verify_source', path)
  }
})

const manifest = (name: string) => JSON.parse(readFileSync(join(import.meta.dirname, '../..', name), 'utf8'))

t.test('server-check.json describes the endpoint without payment', async (t) => {
  const [server, own] = [manifest('server.json'), manifest('server-check.json')]
  t.same([own.$schema, own.version], [server.$schema, server.version])
  t.equal(own.name, `${server.name}-check`)
  t.equal(own.title, CHECK_FACE.identity.title)
  t.ok(own.description.length <= 100)
  t.match(own.remotes, [{ type: 'streamable-http', url: 'https://{host}/mcp/check' }])
  t.equal(own.remotes[0].headers, undefined, 'it needs no credential')
  t.notMatch(JSON.stringify(own), /x402|USDC|paid/)
})

t.test('server.json has the form that the registry requires', async (t) => {
  const server = manifest('server.json')
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
