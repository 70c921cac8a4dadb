// `doctor --listing`: a service that a catalogue would list passes every rule, and each fault is named.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { checkListing } from '../server/listing.ts'
import { checkManifests } from '../server/listing-manifests.ts'
import { runCli } from './cli-process.ts'
import { startSystem } from './system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

t.test('the service passes every rule but the one that only a public address passes', async (t) => {
  const found = await checkListing({ baseUrl: system.service.address, mcpRegistryAuth: undefined })
  t.same(
    found.filter(({ ok }) => !ok).map(({ subject }) => subject),
    ['https'],
  )
  for (const subject of [
    'POST without body or headers',
    'terms',
    'header size',
    'resource',
    'extensions.bazaar',
    'examples',
    'server.json',
    'server-check.json',
  ])
    t.ok(found.find((finding) => finding.subject === subject)?.ok, subject)
  for (const finding of found.filter(({ ok }) => !ok)) t.ok(finding.cure)
})

t.test('without BASE_URL nothing is checked', async (t) => {
  t.match(await checkListing({ baseUrl: undefined, mcpRegistryAuth: undefined }), [
    { ok: false, detail: /BASE_URL is not set/ },
  ])
})

/** A server that answers in front of the service, as a proxy may. */
async function front(answer: Parameters<typeof createServer>[1]): Promise<Server & { url: string }> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return Object.assign(server, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
}

const AUTH = '/.well-known/mcp-registry-auth'

t.test('each fault fails its rule', async (t) => {
  const failing = async (answer: Parameters<typeof createServer>[1]) => {
    const server = await front(answer)
    const found = await checkListing({ baseUrl: server.url, mcpRegistryAuth: 'x' })
    server.close()
    return found.filter(({ ok }) => !ok).map(({ subject }) => subject)
  }
  const checked = await failing((_request, response) => response.writeHead(400).end('{}'))
  for (const subject of ['POST without body or headers', 'terms', '/openapi.json', '/mcp/check', AUTH])
    t.ok(checked.includes(subject), subject)
  const terms = (await fetch(system.url('/api/agent/v1/buy'))).headers.get('payment-required') ?? ''
  const read = JSON.parse(Buffer.from(terms, 'base64').toString())
  const altered = async (change: (terms: typeof read) => void) => {
    const other = structuredClone(read)
    change(other)
    const header = Buffer.from(JSON.stringify(other)).toString('base64')
    return failing((_request, response) => response.writeHead(402, { 'payment-required': header }).end('{}'))
  }
  t.ok((await altered(() => {})).includes('resource'), 'the address of another service')
  t.ok((await altered((terms) => delete terms.extensions)).includes('extensions.bazaar'))
  t.ok((await altered((terms) => delete terms.extensions.bazaar.info.output.example)).includes('extensions.bazaar'))
  t.ok((await altered((terms) => (terms.extensions.bazaar.info.input.method = 'PUT'))).includes('examples'))
  t.ok((await altered((terms) => (terms.resource.description = 'x'.repeat(501)))).includes('description'))
  t.ok((await altered((terms) => (terms.error = 'x'.repeat(9000)))).includes('header size'))
  t.ok((await altered((terms) => (terms.x402Version = 1))).includes('terms'))
})

t.test('the files for the registry of MCP', async (t) => {
  t.match(await checkManifests('https://verify.example'), [
    { ok: true, subject: 'server.json', detail: /at verify\.example\/mcp$/ },
    { ok: true, subject: 'server-check.json', detail: /at verify\.example\/mcp\/check$/ },
  ])
  const folder = mkdtempSync(join(tmpdir(), 'countersign-manifests-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const names = ['server.json', 'server-check.json']
  t.match(
    await checkManifests('https://verify.example', folder),
    Array(2).fill({ ok: false, detail: /cannot be read/ }),
  )
  const own = JSON.parse(readFileSync(join(import.meta.dirname, '../server.json'), 'utf8'))
  const [remote] = own.remotes
  const filled = { ...own, remotes: [{ type: remote.type, url: 'https://verify.example/mcp' }] }
  for (const [change, ok, detail] of [
    [{}, true, /1\.0\.0/],
    [filled, true, /at verify\.example\/mcp/],
    [{ version: '9.9.9' }, false, /is of version 9\.9\.9/],
    [{ description: 'x'.repeat(101) }, false, /description/],
    [{ name: 'no-namespace' }, false, /name/],
    [{ $schema: 'https://example.com/' }, false, /\$schema/],
    [{ remotes: [] }, false, /remotes/],
    [{ remotes: [{ ...remote, url: 'https://{host}/other' }] }, false, /leads to verify\.example\/other/],
    [{ remotes: [{ ...remote, url: 'https://elsewhere.example/mcp' }] }, false, /leads to elsewhere\.example\/mcp/],
    [{ remotes: [{ ...remote, variables: {} }] }, false, /leads to \{host\}\/mcp/],
  ] as const) {
    for (const name of names) writeFileSync(join(folder, name), JSON.stringify({ ...own, ...change }))
    const [found] = await checkManifests('https://verify.example', folder)
    t.match(found, { ok, subject: 'server.json', detail }, JSON.stringify(change).slice(0, 60))
    if (!ok) t.ok(found?.cure)
  }
})

t.test('the command prints a line for each rule, or JSON, and says by its status whether all hold', async (t) => {
  const env = { BASE_URL: system.service.address }
  const printed = await runCli(env, 'doctor', '--listing')
  t.equal(printed.code, 1)
  for (const line of printed.stdout.trim().split('\n')) t.match(line, /^(ok {2}|FAIL) \S|^ {5}cure: /)
  t.match(printed.stdout, /^ok {3}POST without body or headers: answers 402$/m)
  const json = await runCli(env, 'doctor', '--listing', '--json')
  t.equal(json.code, 1)
  t.match(JSON.parse(json.stdout), [{ ok: false, subject: 'https' }])
})
