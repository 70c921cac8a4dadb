// Both kinds of outage of the database: it refuses connections, or it is frozen and its sockets stay open. Every call in
// progress and every new one is answered 503 within five seconds, and all calls succeed within ten seconds after its
// return.
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readConfig } from '../server/config.ts'
import { migrate } from '../server/db/migrate.ts'
import { within } from '../server/payments/timeout.ts'
import { openService } from '../server/service.ts'
import { openLog } from '../server/telemetry.ts'
import { openPrivatePostgres } from './private-postgres.ts'
import { openSite } from './site.ts'
import { harbourClaim, PAGE, payingFetch, query, signPayment, termsOf, VERIFY } from './system.ts'

const MAX_ANSWER_MS = 5000
const MAX_RETURN_MS = 10_000
/** Figures and readiness are kept for one. */
const MAX_FIGURES_MS = 2000
/** Twice the time that a process has. */
const MAX_CLOSE_MS = 60_000

const server = await openPrivatePostgres()
t.teardown(() => server[Symbol.asyncDispose]())
await migrate(server.url)
const site = await openSite({ '/harbour': PAGE })
t.teardown(() => site[Symbol.asyncDispose]())
const dataDir = await mkdtemp(join(tmpdir(), 'countersign-data-'))
t.teardown(() => rm(dataDir, { recursive: true, force: true }))
const logged: Record<string, unknown>[] = []
const log = openLog('info', { write: (line) => logged.push(JSON.parse(line)) })
const own = { PORT: '0', DATA_DIR: dataDir, ASSESSMENT: 'literal', RATE_LIMIT_PER_MINUTE: '0' }
const config = readConfig({ ...own, ...site.env })
const service = await openService(config, server.url, { log })
t.teardown(() => service[Symbol.asyncDispose]())

interface Answered {
  name: string
  status: number
  code: string | undefined
  retryAfter: string | null
  ms: number
  body: Record<string, unknown>
}

type Send = () => Promise<Response>

const at = (path: string) => new URL(path, service.address).href

function post(path: string, body: unknown, headers: Record<string, string> = {}): Send {
  const text = JSON.stringify(body)
  return () =>
    fetch(at(path), { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: text })
}

function tool(name: string, args: object, headers: Record<string, string> = {}): Send {
  const params = { name, arguments: args }
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
  return post('/mcp', message, { accept: 'application/json, text/event-stream', ...headers })
}

/** Calls of every kind, each of which needs the database. The paid ones carry a payment that was signed before. */
async function prepareCalls() {
  const handle = `h${randomUUID().slice(0, 8)}`
  const registered = (await (await post('/v1/register', { handle })()).json()) as { api_key: string }
  const key = { authorization: `Bearer ${registered.api_key}` }
  const done = await payingFetch()(at(VERIFY), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), prefer: 'wait=25' },
    body: JSON.stringify(harbourClaim(site)),
  })
  const { request_id } = (await done.json()) as { request_id: string }
  const token = done.headers.get('x-service-recovery-token') ?? ''
  // The process caches results; this one must be read from the database.
  service.api.results.clear()
  const get =
    (path: string, headers = {}) =>
    () =>
      fetch(at(path), { headers })
  const paid: Record<string, { key: string; send: Send }> = {}
  for (let n = 0; n < 6; n++) {
    const idempotencyKey = randomUUID()
    const asked = await post(VERIFY, harbourClaim(site), { 'idempotency-key': idempotencyKey })()
    const { headers } = await signPayment(termsOf(asked))
    const send = post(VERIFY, harbourClaim(site), { 'idempotency-key': idempotencyKey, ...headers })
    paid[`paid ${n}`] = { key: idempotencyKey, send }
  }
  const sends: Record<string, Send> = {
    ...Object.fromEntries(Object.entries(paid).map(([name, { send }]) => [name, send])),
    usage: get('/v1/usage', key),
    leases: get('/v1/lease', key),
    journal: get('/v1/journal', key),
    chain: get('/v1/chain?from=1'),
    readyz: get('/readyz'),
    metrics: get('/metrics'),
    recovery: get(`/api/agent/v1/requests/${request_id}`, { authorization: `Bearer ${token}` }),
    lease: post('/v1/lease', { agent: 'a', action: 'b', lim: '1', ttl_s: 60 }, key),
    receipt: post('/v1/receipt', { subject_sha256: 'ab'.repeat(32) }, { ...key, 'idempotency-key': randomUUID() }),
    register: post('/v1/register', { handle: `h${randomUUID().slice(0, 8)}` }),
    slot: () =>
      fetch(at('/v1/journal/s'), {
        method: 'PUT',
        headers: { ...key, 'content-type': 'application/octet-stream' },
        body: 'x',
      }),
    watchdog: () =>
      fetch(at('/v1/watchdog/w'), {
        method: 'PUT',
        headers: { ...key, 'content-type': 'application/json' },
        body: JSON.stringify({ interval_s: 3600, webhook_url: site.url('/harbour') }),
      }),
    'MCP usage': tool('service_usage', {}, key),
    'MCP lease': tool('service_lease_grant', { agent: 'a', action: 'b', lim: '1', ttl_s: 60 }, key),
    'MCP verify': tool('service_verify_source', harbourClaim(site)),
  }
  for (let n = 0; n < 8; n++)
    sends[`quote ${n}`] = post(VERIFY, harbourClaim(site), { 'idempotency-key': randomUUID() })
  for (let n = 0; n < 8; n++) sends[`receipt ${n}`] = post('/v1/receipt', { subject_sha256: 'cd'.repeat(32) }, key)
  return { sends, paid }
}

async function call(name: string, send: Send): Promise<Answered> {
  const started = performance.now()
  const response = await send()
  const text = await response.text()
  const ms = performance.now() - started
  const body = response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : {}
  const content = body.result?.structuredContent ?? body.error?.data ?? body
  // A tool that could not answer has the HTTP status 200.
  const refused = body.result?.isError && /unavailable|internal|capacity/.test(content.error?.code)
  const status = refused ? 503 : response.status
  return { name, status, code: content.error?.code, retryAfter: response.headers.get('retry-after'), ms, body }
}

const callAll = (sends: Record<string, Send>) =>
  Promise.all(Object.entries(sends).map(([name, send]) => call(name, send)))

async function expectOutage(t: Test, begin: () => Promise<void>, end: () => Promise<void>) {
  const { sends, paid } = await prepareCalls()
  t.ok(Object.keys(sends).length >= 35, `${Object.keys(sends).length} calls at once`)
  const before = logged.length
  await begin()
  const first = await callAll(sends)
  // One after another: how long a call takes beside 35 others depends on the machine.
  const again: Answered[] = []
  for (const [name, send] of Object.entries(sends)) again.push(await call(name, send))
  for (const [round, answers] of Object.entries({ first, again })) {
    // The figures of the answering process need no database. What they and `/readyz` said before the outage serves for a second.
    const isDue = (name: string, status: number) =>
      name === 'metrics' ? status === 200 : status === 503 || (name === 'readyz' && status === 200)
    const wrong = answers.filter(({ name, status, ms }) => !isDue(name, status) || ms > MAX_ANSWER_MS)
    t.same(wrong, [], `${round}: slowest ${Math.round(Math.max(...answers.map(({ ms }) => ms)))} ms`)
  }
  t.ok(Math.max(...again.map(({ ms }) => ms)) < 1000, 'once it is known, calls are refused at once')
  for (const { name, code, retryAfter, body } of again.filter(({ name }) => !/readyz|metrics/.test(name))) {
    t.equal(code, 'provider_unavailable', name)
    if (!/^MCP/.test(name)) t.match(retryAfter, /^[1-4]$/, name)
    t.match(JSON.stringify(body), /not known whether/, name)
    t.notMatch(JSON.stringify(body), /nothing was charged/i, name)
  }
  t.equal((await fetch(at('/healthz'))).status, 200)
  const seen = performance.now()
  const isRecent = () => performance.now() - seen < MAX_FIGURES_MS
  const readiness = async () => (await fetch(at('/readyz'))).status
  while ((await readiness()) !== 503 && isRecent());
  t.equal(await readiness(), 503)
  const figures = async () => await (await fetch(at('/metrics'))).text()
  let shown = await figures()
  while (!/^countersign_database_up 0$/m.test(shown) && isRecent()) shown = await figures()
  t.match(shown, /^countersign_database_up 0$/m)

  await end()
  const returned = performance.now()
  while ((await fetch(at('/readyz'))).status !== 200)
    if (performance.now() - returned > MAX_RETURN_MS) throw new Error('it is not well again')
  const well = await callAll(sends)
  t.ok(performance.now() - returned < MAX_RETURN_MS, `well after ${Math.round(performance.now() - returned)} ms`)
  t.same(
    well.filter(({ status }) => status >= 500).map(({ name, body }) => ({ name, body })),
    [],
  )

  // Each paid call, repeated with its key, comes to one result and one charge.
  for (const { send } of Object.values(paid)) {
    let answer = await send()
    while (answer.status === 202) {
      await answer.body?.cancel()
      answer = await send()
    }
    t.equal(answer.status, 200, await answer.text())
  }
  const rows = await query(
    server.url,
    `select count(*)::int n from payment_ledger group by request_id having count(*) > 1 or max(outcome) <> 'settled'`,
  )
  t.same(rows, [])

  const lines = logged.slice(before)
  const about = (event: string) => lines.filter((line) => line.event === event && line.dependency === 'database')
  t.equal(about('dependency_away').length, 1, 'the outage is logged once')
  t.equal(about('dependency_back').length, 1, 'and its end')
  t.same(
    lines.filter((line) => line.event === 'request_failed'),
    [],
    'no call is logged as a fault',
  )
  t.ok(lines.length < 40, `${lines.length} lines`)
}

t.test('a frozen server, whose sockets stay open', (t) => expectOutage(t, server.freeze, server.thaw))
t.test('a server that refuses connections', (t) => expectOutage(t, server.stop, server.start))

t.test('a service that is closed while its database is frozen ends', async (t) => {
  await server.freeze()
  try {
    const close = async () => {
      await service[Symbol.asyncDispose]()
      return 'closed'
    }
    t.equal(await within(MAX_CLOSE_MS, close()), 'closed')
  } finally {
    await server.thaw()
  }
})
