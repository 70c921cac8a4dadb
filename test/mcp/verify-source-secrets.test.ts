// Keys, payments and tokens of MCP calls appear in no log line, in no metric, and nowhere in the database in clear, however
// the call ends.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { holdPage } from '../site.ts'
import { harbourClaim, openScriptedFacilitator, PAGE, startSystem } from '../system.ts'
import { callTool, KEY, type Manner, PAYMENT, post, readAnswer, sign, TOKEN, TOOL } from './paid-tool.ts'
import { envelope } from './raw-client.ts'

const TASKS: Manner = { modern: true, capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } }

const till = openScriptedFacilitator()
const system = await startSystem({ overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())
const url = system.url('/')

/** The secrets that must not be found, by name. */
const secrets = new Map<string, string>()
function remember(name: string, value: unknown) {
  if (typeof value !== 'string' || value.length < 16) throw new Error(`${name} is too short to be looked for`)
  secrets.set(name, value)
}

/** A new order and its payment; their secrets are remembered. */
async function enter(name: string, page: { status?: number; body: string } = { body: PAGE }, given = true) {
  const held = holdPage(page)
  const path = `/${name}`
  system.site.pages.set(path, held.page)
  const args = { ...harbourClaim(system.site), source_url: system.site.url(path) }
  const key = given ? `key-${name}-${randomUUID()}` : undefined
  const { payment, key: used } = await sign(url, { args, ...(key && { meta: { [KEY]: key } }) })
  remember(`${name}: key`, used)
  const { signature } = payment.payload as { signature: string }
  remember(`${name}: signature`, signature.slice(2))
  remember(`${name}: middle of the payment`, Buffer.from(JSON.stringify(payment)).toString('base64').slice(700, 760))
  return { args, key: used, payment, held, meta: { ...(key && { [KEY]: key }), [PAYMENT]: payment } }
}

/** POSTs a body with headers. */
const send = (body: string, headers: Record<string, string> = {}) =>
  fetch(new URL('/mcp', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body,
  })

/** Makes calls with every outcome, and leaves one request waiting for its page. */
async function walk() {
  const bought = await enter('bought')
  bought.held.release()
  const done = await callTool(url, bought)
  remember('bought: token', done._meta?.[TOKEN])
  const token = String(done._meta?.[TOKEN])
  await callTool(url, bought)
  await callTool(url, { args: {}, meta: { [TOKEN]: token } })
  await callTool(url, { args: {}, meta: { [TOKEN]: `${token}x` } })
  await callTool(url, { args: { ...bought.args, claim: 'x' }, meta: bought.meta })

  const keyless = await enter('keyless', undefined, false)
  keyless.held.release()
  const first = await callTool(url, keyless)
  remember('keyless: key made of its payment', first._meta?.[KEY])
  await callTool(url, { ...keyless, meta: { [PAYMENT]: JSON.stringify(keyless.payment) } })

  const failed = await enter('failed', { status: 404, body: 'no' })
  failed.held.release()
  await callTool(url, failed)

  till.outcomes.push(() => ({ kind: 'unpaid', reason: 'insufficient_funds' }))
  const unpaid = await enter('unpaid')
  unpaid.held.release()
  await callTool(url, unpaid)

  const faulty = await enter('faulty')
  const { add } = system.service.api.admissions
  system.service.api.admissions.add = () => Promise.reject(new Error('the database is away'))
  await callTool(url, faulty)
  system.service.api.admissions.add = add

  const { payment, key, args } = await enter('wrong')
  const spoilt = JSON.stringify(payment).slice(1)
  for (const bad of [
    spoilt,
    `{${spoilt.slice(2)}`,
    { ...payment, accepted: {} },
    [payment],
    { ...payment, x402Version: 1 },
  ])
    await callTool(url, { args, meta: { [KEY]: key, [PAYMENT]: bad } })
  const illegal = `an illegal key/${randomUUID()}`
  remember('illegal key', illegal)
  await callTool(url, { args, meta: { [KEY]: illegal, [PAYMENT]: payment } })
  await callTool(url, { args: { ...args, payment, idempotency_key: key }, meta: { [KEY]: { key, payment } } })

  // Messages that the protocol refuses.
  const call = { name: TOOL, arguments: args, _meta: { [KEY]: key, [PAYMENT]: payment } }
  await readAnswer(await post(url, 'tools/call', { ...call, name: `${TOOL}${key}` }))
  await readAnswer(await post(url, `tools/${key}`, call, { modern: true }))
  await send(JSON.stringify(envelope('tools/call', call).body).slice(0, -1))
  await send(JSON.stringify({ jsonrpc: '2.0', id: { key }, method: 'tools/call', params: call }))
  const { body, headers } = envelope('tools/call', call, { era: 'modern' })
  await send(JSON.stringify(body), { ...headers, 'mcp-name': key })
  await send(JSON.stringify(body), { ...headers, 'mcp-protocol-version': key })

  const standing = await enter('standing')
  const task = await callTool(url, { ...standing, ...TASKS })
  remember('standing: task', task.taskId)
  await standing.held.reached
  const taskId = String(task.taskId)
  await readAnswer(await post(url, 'tasks/get', { taskId }, TASKS))
  await readAnswer(await post(url, 'tasks/get', { taskId: `${taskId}x` }, TASKS))
  const asked = envelope('tasks/get', { taskId }, { era: 'modern' })
  await send(JSON.stringify(asked.body), { ...asked.headers, 'mcp-name': `${taskId}x` })
  return async () => {
    standing.held.release()
    await callTool(url, standing)
  }
}

/** All rows of the database as text. */
async function dump(): Promise<string> {
  const tables = await system.sql(`
    select format('%I.%I', schemaname, tablename) name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema')`)
  const rows = await Promise.all(tables.map(({ name }) => system.sql(`select * from ${name}`)))
  return rows
    .flat()
    .flatMap((row) => Object.values(row).map(readable))
    .join('\n')
}

function readable(value: unknown): string {
  if (Buffer.isBuffer(value)) return ['latin1', 'hex', 'base64'].map((form) => value.toString(form as 'hex')).join('\n')
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

const PART = 16

/** The encodings in which a secret could be stored, whole or in part. */
function spellings(secret: string): string[] {
  const starts = [0, Math.floor((secret.length - PART) / 2), secret.length - PART]
  const parts = starts.map((start) => secret.slice(start, start + PART))
  const hex = Buffer.from(secret).toString('hex')
  const raw = /^[0-9a-f]+$/i.test(secret) ? [Buffer.from(secret, 'hex').toString('base64').slice(0, -2)] : []
  return [...parts, hex.slice(0, 32), Buffer.from(secret).toString('base64').slice(0, -3), ...raw]
}

function find(text: string): string[] {
  const lower = text.toLowerCase()
  return [...secrets]
    .filter(([, secret]) => spellings(secret).some((spelling) => lower.includes(spelling.toLowerCase())))
    .map(([name]) => name)
}

const texts = new Map<string, string>()
const finish = await walk()
texts.set('the database, while work stands', await dump())
await finish()
texts.set('the database, when it is done', await dump())
texts.set('the metrics', await (await fetch(system.url('/metrics'))).text())

t.test('the search finds a secret that was planted', async (t) => {
  t.ok(secrets.size >= 20)
  t.same(find(`xx${[...secrets.values()][0]?.toUpperCase()}yy`), [[...secrets.keys()][0]])
  t.match(texts.get('the database, when it is done'), /harbour/)
  t.ok(system.logged.some((line) => line.operation === 'mcp'))
  t.ok(
    system.logged.some((line) => line.event === 'request_failed'),
    'faults are logged',
  )
  t.ok(new Set(system.logged.map((line) => line.level)).size >= 2)
})

t.test('no log line holds a secret', async (t) => {
  const found = system.logged
    .map((line) => JSON.stringify(line))
    .flatMap((line) => find(line).map((name) => [name, line]))
  t.same(found, [])
})

t.test('no table and no metric holds a secret', async (t) => {
  for (const [about, text] of texts) t.same(find(text), [], about)
})
