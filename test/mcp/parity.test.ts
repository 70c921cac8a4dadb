// Every control tool answers as its operation does over HTTP: the same body for the same account in the same state, and the
// same error. Tools that read are compared on one account; tools that write on two accounts with the same history, without
// the members that must differ between the two.
import { createHash, randomUUID } from 'node:crypto'
import t from 'tap'
import { type Account, openAccountHarness } from '../accounts/harness.ts'
import { ERAS, type Era, openRawClient } from './raw-client.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())
const { ask, call } = openRawClient(new URL('/mcp', office.api.baseUrl).href)

type Args = Record<string, unknown>
interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  reads?: true
  /** Needs no key. */
  open?: true
  /** Creates what the call needs, and returns arguments with which it succeeds. */
  example(owner: Account): Promise<Args>
}

const TERMS = { agent: 'agent-7', action: 'pay', ttl_s: 600, lim: 'amount<=5' }
const DIGEST = createHash('sha256').update('parity').digest('hex')
const HOOK = 'https://example.com/alert'
const DATA = Buffer.from([0, 1, 2, 255])

async function leased(owner: Account) {
  const { lease } = (await owner.call('POST', '/v1/lease', { body: TERMS })).body
  return { lease_id: lease.lease_id as string }
}

async function watched(owner: Account) {
  await owner.call('PUT', '/v1/watchdog/parity', { body: { interval_s: 60, webhook_url: HOOK } })
  return { name: 'parity' }
}

async function stored(owner: Account) {
  await owner.call('PUT', '/v1/journal/parity', { body: DATA })
  return { slot: 'parity' }
}

async function receipted(owner: Account) {
  const { attestation } = (await owner.call('POST', '/v1/receipt', { body: { subject_sha256: DIGEST } })).body
  return attestation
}

/** Arguments that do not depend on what `prepare` creates. */
function after(prepare: (owner: Account) => Promise<unknown>, args: Args) {
  return async (owner: Account) => {
    await prepare(owner)
    return args
  }
}

const ROUTES: Record<string, Route> = {
  service_register: {
    method: 'POST',
    path: '/v1/register',
    open: true,
    example: async () => ({ handle: `h-${randomUUID()}` }),
  },
  service_usage_get: {
    method: 'GET',
    path: '/v1/usage',
    reads: true,
    example: after(leased, {}),
  },
  service_checkout_create: { method: 'POST', path: '/v1/checkout', example: async () => ({ tier: 'pro' }) },
  service_lease_grant: { method: 'POST', path: '/v1/lease', example: async () => TERMS },
  service_lease_renew: { method: 'POST', path: '/v1/lease/{lease_id}/renew', example: leased },
  service_lease_verify: { method: 'POST', path: '/v1/lease/{lease_id}/verify', reads: true, example: leased },
  service_lease_revoke: { method: 'POST', path: '/v1/lease/{lease_id}/revoke', example: leased },
  service_lease_list: {
    method: 'GET',
    path: '/v1/lease',
    reads: true,
    example: after(leased, { state: 'active', limit: 5 }),
  },
  service_receipt_issue: {
    method: 'POST',
    path: '/v1/receipt',
    example: async () => ({ subject_sha256: DIGEST, label: 'parity', idempotency_key: 'parity-1' }),
  },
  service_receipt_get: {
    method: 'GET',
    path: '/v1/receipt/{serial}',
    reads: true,
    open: true,
    example: async (owner) => ({ serial: (await receipted(owner)).serial }),
  },
  service_receipt_verify: {
    method: 'POST',
    path: '/v1/receipt/verify',
    reads: true,
    open: true,
    example: async (owner) => ({ attestation: await receipted(owner) }),
  },
  service_receipt_list: {
    method: 'GET',
    path: '/v1/receipt',
    reads: true,
    example: after(receipted, {}),
  },
  service_chain_head: { method: 'GET', path: '/v1/chain-head', reads: true, open: true, example: async () => ({}) },
  service_chain_export: {
    method: 'GET',
    path: '/v1/chain',
    reads: true,
    open: true,
    example: after(receipted, { from: 1, to: 1 }),
  },
  service_chain_verify: {
    method: 'GET',
    path: '/v1/chain/verify',
    reads: true,
    open: true,
    example: after(receipted, { from: 1, to: 1 }),
  },
  service_watchdog_put: {
    method: 'PUT',
    path: '/v1/watchdog/{name}',
    example: async () => ({ name: 'parity', interval_s: 60, webhook_url: HOOK }),
  },
  service_watchdog_get: { method: 'GET', path: '/v1/watchdog/{name}', reads: true, example: watched },
  service_watchdog_list: {
    method: 'GET',
    path: '/v1/watchdog',
    reads: true,
    example: after(watched, {}),
  },
  service_watchdog_pause: {
    method: 'POST',
    path: '/v1/watchdog/{name}/pause',
    example: async (owner) => ({ ...(await watched(owner)), paused: true }),
  },
  service_watchdog_delete: { method: 'DELETE', path: '/v1/watchdog/{name}', example: watched },
  service_watchdog_heartbeat: {
    method: 'POST',
    path: '/v1/heartbeat/{name}',
    example: async (owner) => ({ ...(await watched(owner)), note: 'well' }),
  },
  service_journal_put: {
    method: 'PUT',
    path: '/v1/journal/{slot}',
    example: async () => ({ slot: 'parity', data_base64: DATA.toString('base64'), if_none_match: '*' }),
  },
  service_journal_get: { method: 'GET', path: '/v1/journal/{slot}', reads: true, example: stored },
  service_journal_list: {
    method: 'GET',
    path: '/v1/journal',
    reads: true,
    example: after(stored, {}),
  },
  service_journal_delete: { method: 'DELETE', path: '/v1/journal/{slot}', example: stored },
}

/** Arguments that are headers in HTTP. */
const HEADERS: Record<string, string> = {
  idempotency_key: 'idempotency-key',
  if_match: 'if-match',
  if_none_match: 'if-none-match',
}

/** The same call over HTTP. */
function overHttp({ method, path }: Route, args: Args, key: string | undefined) {
  const headers: Record<string, string> = {}
  const rest: Args = {}
  let target = path
  for (const [name, value] of Object.entries(args)) {
    const header = HEADERS[name]
    if (header) headers[header] = String(value)
    else if (target.includes(`{${name}}`)) target = target.replace(`{${name}}`, encodeURIComponent(String(value)))
    else rest[name] = value
  }
  const { data_base64, ...body } = rest
  if (method === 'GET' && Object.keys(rest).length > 0)
    target += `?${new URLSearchParams(rest as Record<string, string>)}`
  const sent = data_base64 === undefined ? body : Buffer.from(String(data_base64), 'base64')
  return office.call(method, target, { key, headers, ...(method !== 'GET' && method !== 'DELETE' && { body: sent }) })
}

/** Members that differ between two accounts: names, times, random values, and signatures over them. */
const VOLATILE = new Set([
  'handle',
  'account',
  'api_key',
  'lease_id',
  'canonical_lease_base64',
  'canonical_revocation_base64',
  'sig_ed25519_hex',
  'receipts',
  'attestation',
  'inclusion',
  'checkpoint',
  'webhook_secret',
  'checkout_url',
  'expires_at',
  'created_at',
  'updated_at',
  'last_beat_at',
  'due_at',
  'paused_at',
  'server_now',
])

/** Members from the database's clock, which tests cannot set. */
const CLOCK = new Set(['server_now'])

function maskMembers(value: unknown, names: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((member) => maskMembers(member, names))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, names.has(name) ? typeof member : maskMembers(member, names)]),
  )
}

t.test('the tools are those in ROUTES and the paid one', async (t) => {
  const names = (await ask('tools/list')).body.result.tools.map(({ name }: { name: string }) => name)
  t.same(names.toSorted(), [...Object.keys(ROUTES), 'service_verify_source'].toSorted())
  t.equal(Object.keys(ROUTES).length, 25)
})

/** The body of the tool for an answer that HTTP gives in bytes and headers, or by its status. */
async function bodyOfHttp(name: string, args: Args, answer: Awaited<ReturnType<typeof overHttp>>, owner: Account) {
  if (name === 'service_journal_get' && answer.status === 200) {
    const { slots } = (await owner.call('GET', '/v1/journal')).body
    const listed = slots.find(({ slot }: { slot: string }) => slot === args.slot)
    return { ...listed, data_base64: answer.bytes.toString('base64') }
  }
  if (answer.status !== 204) return answer.body
  const named = 'slot' in args ? { slot: args.slot } : { name: args.name }
  return { ...named, deleted: true }
}

for (const [name, route] of Object.entries(ROUTES))
  for (const era of ERAS)
    t.test(`${name}, ${era}`, async (t) => {
      await succeeds(t, name, route, era)
      await fails(t, name, route, era)
    })

async function succeeds(t: import('tap').Test, name: string, route: Route, era: Era) {
  const left = await office.register({ tier: 'pro' })
  const right = route.reads ? left : await office.register({ tier: 'pro' })
  const leftArgs = await route.example(left)
  const rightArgs = route.reads ? leftArgs : await route.example(right)
  const http = await overHttp(route, leftArgs, route.open ? undefined : left.key)
  t.ok(http.status >= 200 && http.status < 300, `${name}: ${http.status} ${http.bytes}`)
  const expected = await bodyOfHttp(name, leftArgs, http, left)
  const result = await call(name, { ...rightArgs, ...(!route.open && { service_key: right.key }) }, { era })
  t.not(result.isError, true, result.content[0].text)
  const volatile = route.reads ? CLOCK : VOLATILE
  t.same(maskMembers(result.structuredContent, volatile), maskMembers(expected, volatile))
  const json = JSON.stringify(result.structuredContent)
  t.ok([...result.content[0].text].length <= 2000)
  if (json.length <= 2000) t.same(result.content, [{ type: 'text', text: json }])
}

/** Makes the same invalid calls over HTTP and MCP. */
async function fails(t: import('tap').Test, name: string, route: Route, era: Era) {
  const owner = await office.register({ tier: 'pro' })
  const reader = (await owner.call('POST', '/v1/api-keys', { body: { kind: 'heartbeat' } })).body.api_key
  const args = await route.example(owner)
  const compare = async (what: string, wrong: Args, key: string | undefined) => {
    const http = await overHttp(route, wrong, key)
    const result = await call(name, { ...wrong, ...(key !== undefined && { service_key: key }) }, { era })
    t.ok(http.status >= 400, `${what}: ${http.status} over HTTP`)
    t.equal(result.isError, true, what)
    t.same(result.structuredContent, http.body, what)
    t.same(JSON.parse(result.content[0].text), http.body, what)
  }
  if (!route.open) {
    await compare('no key', args, undefined)
    await compare('a key typed wrong', args, `${owner.key.slice(0, -1)}_`)
    if (name !== 'service_watchdog_heartbeat') await compare('a key without the right', args, reader)
  }
  const key = route.open ? undefined : owner.key
  if (route.method !== 'DELETE' && name !== 'service_journal_put' && name !== 'service_journal_get')
    await compare('an unknown member', { ...args, surprise: '1' }, key)
  for (const [member, absent] of [
    ['lease_id', 'ls_00000000000000000000000000000000'],
    ['name', 'absent'],
    ['slot', 'absent'],
    ['serial', 4_000_000],
  ] as const)
    if (member in args && route.path.includes(`{${member}}`) && route.method !== 'PUT')
      await compare(`no such ${member}`, { ...args, [member]: absent }, key)
}

t.test('errors of single operations are the same over HTTP and MCP', async (t) => {
  const owner = await office.register()
  const over = async (name: string, args: Args, code: string) => {
    const http = await overHttp(ROUTES[name]!, args, owner.key)
    const result = await call(name, { ...args, ...(!ROUTES[name]!.open && { service_key: owner.key }) })
    t.equal(http.body?.error?.code, code)
    t.same(result.structuredContent, http.body, `${name}: ${code}`)
    return result
  }
  await leased(owner)
  await over('service_lease_grant', TERMS, 'tier_limit')
  await watched(owner)
  await over('service_watchdog_put', { name: 'two', interval_s: 60, webhook_url: HOOK }, 'tier_limit')
  await over(
    'service_watchdog_put',
    { name: 'two', interval_s: 60, webhook_url: 'https://10.0.0.1/' },
    'invalid_request',
  )
  await over('service_register', { handle: owner.handle }, 'handle_taken')
  await over('service_register', { handle: 'Upper' }, 'invalid_request')
  await over('service_chain_export', { from: 5, to: 4 }, 'invalid_request')
  const { sha256 } = (await owner.call('PUT', '/v1/journal/a', { body: DATA })).body
  await over('service_journal_put', { slot: 'a', data_base64: '', if_none_match: '*' }, 'precondition_failed')
  await over('service_journal_put', { slot: 'a', data_base64: '', if_match: `"${DIGEST}"` }, 'precondition_failed')
  await over('service_journal_delete', { slot: 'a', if_match: '"x"' }, 'precondition_failed')
  const matched = await call('service_journal_delete', { slot: 'a', if_match: sha256, service_key: owner.key })
  t.same(matched.structuredContent, { slot: 'a', deleted: true }, 'a digest is accepted as an entity tag')
  for (let receipt = 0; receipt < 10; receipt++) await receipted(owner)
  const limited = await over('service_receipt_issue', { subject_sha256: DIGEST }, 'daily_limit')
  t.ok(limited._meta['service/retry-after-seconds'] > 0)
})

t.test('one idempotency key makes one receipt', async (t) => {
  const owner = await office.register()
  const args = { subject_sha256: DIGEST, idempotency_key: 'the-same', service_key: owner.key }
  const first = await call('service_receipt_issue', args)
  const again = await call('service_receipt_issue', args)
  t.same(again.structuredContent.attestation, first.structuredContent.attestation)
  const http = await owner.call('POST', '/v1/receipt', {
    body: { subject_sha256: DIGEST },
    headers: { 'idempotency-key': 'the-same' },
  })
  t.equal(http.status, 200)
  t.same(http.body.attestation, first.structuredContent.attestation)
  const other = await call('service_receipt_issue', { ...args, label: 'another' })
  t.equal(other.structuredContent.error.code, 'idempotency_conflict')
})

t.test('the key may come as an argument, in Authorization, or the same key in both', async (t) => {
  const owner = await office.register()
  const other = await office.register()
  const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })
  const handle = async (args: Args, key?: string) =>
    (await call('service_usage_get', args, key === undefined ? {} : bearer(key))).structuredContent.handle
  t.equal(await handle({ service_key: owner.key }), owner.handle)
  t.equal(await handle({}, owner.key), owner.handle)
  t.equal(await handle({ service_key: owner.key }, owner.key), owner.handle)
  for (const [given, header] of [
    [owner.key, other.key],
    ['', owner.key],
  ] as const) {
    const both = await call('service_usage_get', { service_key: given }, bearer(header))
    t.equal(both.structuredContent.error.code, 'invalid_request')
    t.notMatch(JSON.stringify(both), /ctk_/)
  }
})

t.test('bytes of any length are returned unchanged', async (t) => {
  const owner = await office.register()
  for (const length of [0, 1, 2, 3, 65_536]) {
    const bytes = Buffer.alloc(length, 0xe9)
    const args = { slot: 'bytes', service_key: owner.key }
    const put = await call('service_journal_put', { ...args, data_base64: bytes.toString('base64') })
    t.equal(put.structuredContent.bytes, length)
    t.same((await owner.call('GET', '/v1/journal/bytes')).bytes, bytes)
    const got = await call('service_journal_get', args)
    t.same(Buffer.from(got.structuredContent.data_base64, 'base64'), bytes)
  }
  const put = async (data_base64: unknown) =>
    (await call('service_journal_put', { slot: 'bytes', service_key: owner.key, data_base64 })).structuredContent.error
      ?.code
  t.equal(await put(Buffer.alloc(65_537).toString('base64')), 'body_too_large')
  for (const wrong of ['A', 'AAA', 'A===', '%%%%', 'AA-_', ' AAAA', 5, null, undefined])
    t.equal(await put(wrong), 'invalid_request')
})
