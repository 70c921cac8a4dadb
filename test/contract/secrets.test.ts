// No secret of a caller is in a log line, a metric, a trace or in clear in the database, for any outcome of the call.
import { randomUUID } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { holdPage } from '../site.ts'
import { harbourClaim, openScriptedFacilitator, PAGE, signPayment, startSystem, termsOf, VERIFY } from '../system.ts'
import { openTraceReceiver } from '../tracing/trace-receiver.ts'

const WAIT = { prefer: 'wait=20' }
const till = openScriptedFacilitator()
const traces = await openTraceReceiver()
const system = await startSystem({ overrides: { facilitator: till }, env: traces.env })
t.teardown(async () => {
  await system[Symbol.asyncDispose]()
  await traces[Symbol.asyncDispose]()
})

/** The secrets, by name. */
const secrets = new Map<string, string>()
const remember = (name: string, value: string) => {
  if (value.length < 16) throw new Error(`${name} is too short to search for`)
  secrets.set(name, value)
}

/** A new key and a payment for it, both remembered. */
async function enter(name: string, body: unknown) {
  const key = `key-${name}-${randomUUID()}`
  const terms = termsOf(await system.ask({ key, body }))
  const payment = await signPayment(terms)
  remember(`${name}: idempotency key`, key)
  remember(`${name}: payment header`, payment.header)
  // A part near the end, where the signature is: the rest repeats the terms, which are public.
  remember(`${name}: part of the payment header`, payment.header.slice(-500, -440))
  remember(`${name}: signature`, payment.signature.slice(2))
  remember(`${name}: nonce`, payment.nonce.slice(2))
  return { key, body, terms, headers: { ...payment.headers, ...WAIT } }
}

function keepToken(name: string, response: Response) {
  const token = response.headers.get('x-service-recovery-token')
  if (token) remember(`${name}: recovery token`, token)
}

const claim = (path: string) => ({ ...harbourClaim(system.site), source_url: system.site.url(path) })

/** Makes calls with every outcome, and leaves one request waiting for its page. */
async function walk() {
  const held = holdPage({ body: PAGE })
  system.site.pages.set('/held', held.page)
  system.site.pages.set('/held-anew', held.page)

  const bought = await enter('bought', claim('/harbour'))
  const done = await system.ask(bought)
  keepToken('bought', done)
  await system.ask(bought)
  const token = done.headers.get('x-service-recovery-token') ?? ''
  const id = ((await done.json()) as { request_id: string }).request_id
  await system.recover(id, token)
  await system.recover(id, `${token}x`)
  await system.recover(`${token}`, token)
  await fetch(system.url(`/api/agent/v1/requests/${id}?token=x`), { headers: { authorization: token } })
  await system.ask({ ...bought, body: claim('/another') })

  const failed = await enter('failed', claim('/not-there'))
  keepToken('failed', await system.ask(failed))

  till.outcomes.push(() => ({ kind: 'unpaid', reason: 'insufficient_funds' }))
  keepToken('unpaid', await system.ask(await enter('unpaid', claim('/harbour'))))

  till.outcomes.push(() => Promise.reject(new Error('socket hang up')))
  const thrown = await enter('thrown', claim('/harbour'))
  keepToken(
    'thrown',
    await system.ask({ ...thrown, headers: { 'payment-signature': thrown.headers['payment-signature'] } }),
  )

  const wrong = await enter('wrong', claim('/harbour'))
  const bad = await signPayment(wrong.terms, { authorization: { value: '1' } })
  remember('wrong: bad payment', bad.header)
  remember('wrong: bad signature', bad.signature.slice(2))
  for (const header of [bad.header, `${bad.header}=`, bad.header.slice(1), bad.header.replaceAll('A', '-')])
    await system.ask({ ...wrong, headers: { 'payment-signature': header } })
  await system.ask({ ...wrong, headers: { ...wrong.headers, 'content-type': 'text/plain' } })
  await system.ask({ ...wrong, body: `{"payment":"${bad.header}"` })

  const illegal = `illegal key/${randomUUID()}`
  remember('illegal: key', illegal)
  await system.ask({ ...bought, key: illegal })
  await fetch(system.url(`${VERIFY}/nowhere`), {
    method: 'PUT',
    headers: { ...wrong.headers, 'idempotency-key': illegal },
  })

  const faulty = await enter('faulty', claim('/harbour'))
  const add = system.service.api.admissions.add
  system.service.api.admissions.add = () => Promise.reject(new Error('the database is away'))
  await system.ask(faulty)
  system.service.api.admissions.add = add

  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(system.url(path), {
      method: path.startsWith('/v1/watchdog') ? 'PUT' : 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify(body),
    })
  const { api_key } = (await (await post('/v1/register', { handle: 'canary' })).json()) as { api_key: string }
  remember('account: API key', api_key)
  const bearer = { authorization: `Bearer ${api_key}` }
  const webhook_url = system.site.url('/hook')
  const watched = await post('/v1/watchdog/canary', { interval_s: 60, webhook_url }, bearer)
  const { webhook_secret } = (await watched.json()) as { webhook_secret: string }
  remember('account: webhook secret', webhook_secret)
  await post(`/v1/heartbeat/canary?api_key=${api_key}`, {}, { authorization: `Bearer ${api_key}x` })
  const call = { name: 'service_usage', arguments: { service_key: api_key } }
  await post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })
  await post('/v1/receipt', { subject_sha256: api_key }, bearer)

  const waiting = await enter('waiting', claim('/held'))
  const accepted = await system.ask({
    ...waiting,
    headers: { 'payment-signature': waiting.headers['payment-signature'] },
  })
  keepToken('waiting', accepted)
  const { request_id } = (await accepted.json()) as { request_id: string }
  await held.reached
  await system.ask({ ...waiting, headers: { 'payment-signature': wrong.headers['payment-signature'] } })
  return async () => {
    held.release()
    await system.recover(request_id, accepted.headers.get('x-service-recovery-token') ?? '', WAIT)
  }
}

/** Each column of each table, with bytes as text, as hexadecimal and as they are. */
async function dump(): Promise<Record<string, string>> {
  const tables = await system.sql(
    `select quote_ident(schemaname) || '.' || quote_ident(tablename) name from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema')`,
  )
  const dumped: Record<string, string> = {}
  for (const { name } of tables) {
    const rows = await system.sql(`select * from ${name}`)
    dumped[String(name)] = rows.flatMap((row) => Object.values(row).map(readable)).join('\n')
  }
  return dumped
}

function readable(value: unknown): string {
  if (Buffer.isBuffer(value))
    return [value.toString('latin1'), value.toString('hex'), value.toString('base64')].join('\n')
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

const PART = 16

/** The encodings of a secret, whole and in parts. */
function spellings(secret: string): string[] {
  const raw = /^[0-9a-f]+$/i.test(secret) ? [Buffer.from(secret, 'hex').toString('base64').slice(0, -2)] : []
  const bytes = Buffer.from(secret)
  return [...partsOf(secret), bytes.toString('base64').slice(0, -3), ...partsOf(bytes.toString('hex')), ...raw]
}

/** Only the whole of a payment header: parts of it repeat the terms, which are public. */
function partsOf(secret: string): string[] {
  if (secret.length > 200) return [secret]
  const starts = [0, Math.floor((secret.length - PART) / 2), secret.length - PART]
  return starts.map((start) => secret.slice(start, start + PART))
}

function find(text: string): string[] {
  const lower = text.toLowerCase()
  return [...secrets]
    .filter(([, secret]) => spellings(secret).some((spelling) => lower.includes(spelling.toLowerCase())))
    .map(([name]) => name)
}

const finish = await walk()
/** The database while one request waits for its page, and at the end. */
const during = await dump()
await finish()
const finished = await dump()
const isNonce = (name: string) => name.endsWith(': nonce')

t.test('the search finds stored text', async (t) => {
  t.ok(secrets.size >= 30)
  t.same(find(`xx${[...secrets.values()][0]?.toUpperCase()}yy`), [[...secrets.keys()][0]])
  t.ok(Object.keys(during).some((name) => name.startsWith('graphile_worker.')))
  t.match(during['public.verification_requests'], /harbour/, 'a public text is found')
  t.match(system.logged.map((line) => JSON.stringify(line)).join('\n'), /\/api\/agent\/v1\/verify-source|verify_source/)
})

t.test('no log line holds one', async (t) => {
  const levels = new Set(system.logged.map((line) => line.level))
  t.ok(levels.size >= 2, `levels seen: ${[...levels]}`)
  for (const line of system.logged) {
    const found = find(JSON.stringify(line))
    if (found.length > 0) t.same(found, [], JSON.stringify(line).slice(0, 600))
  }
})

t.test('the database holds no secret in clear, during the work and after it', async (t) => {
  for (const [when, dumped] of Object.entries({ during, finished })) {
    for (const [table, text] of Object.entries(dumped)) {
      const found = find(text).filter((name) => !isNonce(name))
      t.same(found, [], `${table}, ${when}`)
    }
  }
})

t.test('a nonce, which is public on a chain, is stored only in claims, payments and the ledger', async (t) => {
  const known = ['public.verification_requests', 'public.payment_claims', 'public.payment_ledger']
  for (const [table, text] of Object.entries(finished))
    if (!known.includes(table)) t.same(find(text).filter(isNonce), [], table)
})

t.test('no metric holds one, shown or published for other processes', async (t) => {
  const shown = await (await fetch(system.url('/metrics'))).text()
  t.match(shown, 'countersign_requests_total')
  t.same(find(shown), [])
  const published = await system.sql('select figures from processes')
  t.ok(published.length > 0)
  for (const { figures } of published) t.same(find(gunzipSync(figures as Buffer).toString()), [])
})

t.test('no trace holds one, nor what callers ask about', async (t) => {
  // The end of the service exports what waits.
  await system.service[Symbol.asyncDispose]()
  const names = new Set(traces.spans.map(({ name }) => name))
  for (const name of ['facilitator.settle', 'GET', 'receipt.append', 'POST /mcp', 'POST /v1/heartbeat/:name'])
    t.ok(names.has(name), name)
  const exported = traces.bodies.join('\n')
  t.same(find(exported), [])
  t.notMatch(exported, /opened in 1874|not-there|socket hang up|canary/)
})
