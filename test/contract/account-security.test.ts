// One suite for every operation that needs an API key, made from the catalogue: an operation that is added there must get a
// valid example here, and then runs through the whole suite.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { catalog } from '../../server/catalog.ts'
import { buildDocument } from '../../server/http/openapi.ts'
import type { Operation } from '../../server/operation.ts'
import { type Account, type Answer, type Ask, openAccountHarness } from '../accounts/harness.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())
/** A process at which this address has used up its calls. */
const strict = await office.openApiProcess({ RATE_LIMIT_PER_MINUTE: '1' })
t.teardown(() => strict[Symbol.asyncDispose]())
const stranger = await office.register({ tier: 'pro' })

interface Example {
  path: string
  body?: unknown
  /** The same call for a thing that does not exist; for operations on an existing thing. */
  absent?: string
}

const TERMS = { agent: 'agent-7', action: 'pay', ttl_s: 600, lim: '' }
const NO_LEASE = 'ls_00000000000000000000000000000000'

async function leased(owner: Account, verb = '') {
  const { lease } = (await owner.call('POST', '/v1/lease', { body: TERMS })).body
  return { path: `/v1/lease/${lease.lease_id}${verb}`, absent: `/v1/lease/${NO_LEASE}${verb}` }
}

async function stored(owner: Account) {
  const path = `/v1/journal/${randomUUID()}`
  await owner.call('PUT', path, { body: Buffer.from('private') })
  return { path, absent: `/v1/journal/${randomUUID()}` }
}

/** Inserts a citation watch, because making one through the service needs a verification. */
async function watched(owner: Account, verb = '') {
  const name = randomUUID()
  await office.tables.query(
    `with hook as (insert into webhooks (id, account_id, url)
       select gen_random_uuid(), id, 'https://example.com/hook' from accounts where handle = $1 returning id, account_id)
     insert into citation_watches (id, account_id, name, webhook_id, request_id, evidence_id, source_url, quote,
                                   every_hours, last_seen, check_at)
     select gen_random_uuid(), account_id, $2, id, gen_random_uuid(), 'e1', 'https://example.com/', 'quote', 24, $3, now()
     from hook`,
    [owner.handle, name, { checked_at: '2026-01-01T00:00:00Z', ...DIGESTS, start: 0, end: 5 }],
  )
  return { path: `/v1/citation-watch/${name}${verb}`, absent: `/v1/citation-watch/${randomUUID()}${verb}` }
}
const DIGESTS = { content_sha256: '00'.repeat(32), text_sha256: '00'.repeat(32) }

const QUOTES = { source_url: 'https://example.com/', quotes: ['quote'] }
const TERMS_OF_WATCHDOG = { interval_s: 60, webhook_url: 'https://example.com/hook' }

async function guarded(owner: Account, verb = '') {
  const name = randomUUID()
  await owner.call('PUT', `/v1/watchdog/${name}`, { body: TERMS_OF_WATCHDOG })
  return { path: `/v1/watchdog/${name}${verb}`, absent: `/v1/watchdog/${randomUUID()}${verb}` }
}

/** A test alert of the thing. */
async function alerted(owner: Account, { path, absent }: { path: string; absent: string }) {
  await owner.call('POST', `${path}/test`)
  const [{ id }] = (await owner.call('GET', `${path}/alerts`)).body.alerts
  return { path: `${path}/alerts/${id}/redeliver`, absent: `${absent}/alerts/${id}/redeliver` }
}

/** A call that succeeds for the owner; makes what the call needs. */
const examples: Record<string, (owner: Account) => Promise<Example>> = {
  list_api_keys: async () => ({ path: '/v1/api-keys' }),
  create_api_key: async () => ({ path: '/v1/api-keys', body: { kind: 'heartbeat' } }),
  async revoke_api_key(owner) {
    const { id } = (await owner.call('POST', '/v1/api-keys', { body: { kind: 'heartbeat' } })).body
    return { path: `/v1/api-keys/${id}/revoke`, absent: `/v1/api-keys/${randomUUID()}/revoke` }
  },
  get_usage: async () => ({ path: '/v1/usage' }),
  create_checkout: async () => ({ path: '/v1/checkout', body: { tier: 'dev' } }),
  async open_billing_portal(owner) {
    await owner.call('POST', '/v1/checkout', { body: { tier: 'dev' } })
    return { path: '/v1/billing-portal' }
  },
  grant_lease: async () => ({ path: '/v1/lease', body: TERMS }),
  renew_lease: (owner) => leased(owner, '/renew'),
  revoke_lease: (owner) => leased(owner, '/revoke'),
  get_lease: (owner) => leased(owner),
  list_leases: async () => ({ path: '/v1/lease' }),
  verify_lease: (owner) => leased(owner, '/verify'),
  create_receipt: async () => ({ path: '/v1/receipt', body: { subject_sha256: '00'.repeat(32) } }),
  list_receipts: async () => ({ path: '/v1/receipt' }),
  check_quotes: async () => ({ path: '/v1/quote-check', body: QUOTES }),
  async get_quote_check(owner) {
    const { check_id } = (await owner.call('POST', '/v1/quote-check', { body: QUOTES })).body
    return { path: `/v1/quote-check/${check_id}`, absent: `/v1/quote-check/${randomUUID()}` }
  },
  async put_citation_watch(owner) {
    const { path } = await watched(owner)
    return { path, body: { webhook_url: 'https://example.com/other' } }
  },
  get_citation_watch: (owner) => watched(owner),
  list_citation_watches: async () => ({ path: '/v1/citation-watch' }),
  delete_citation_watch: (owner) => watched(owner),
  check_citation_watch: (owner) => watched(owner, '/check'),
  test_citation_watch: (owner) => watched(owner, '/test'),
  list_citation_alerts: (owner) => watched(owner, '/alerts'),
  redeliver_citation_alert: async (owner) => alerted(owner, await watched(owner)),
  rotate_citation_webhook_secret: (owner) => watched(owner, '/secret'),
  put_watchdog: async () => ({ path: `/v1/watchdog/${randomUUID()}`, body: TERMS_OF_WATCHDOG }),
  async send_heartbeat(owner) {
    const { path, absent } = await guarded(owner)
    const beat = (path: string) => path.replace('watchdog', 'heartbeat')
    return { path: beat(path), absent: beat(absent) }
  },
  get_watchdog: (owner) => guarded(owner),
  list_watchdogs: async () => ({ path: '/v1/watchdog' }),
  pause_watchdog: async (owner) => ({ ...(await guarded(owner, '/pause')), body: { paused: true } }),
  test_watchdog: (owner) => guarded(owner, '/test'),
  delete_watchdog: (owner) => guarded(owner),
  list_alerts: (owner) => guarded(owner, '/alerts'),
  redeliver_alert: async (owner) => alerted(owner, await guarded(owner)),
  rotate_webhook_secret: (owner) => guarded(owner, '/secret'),
  put_journal_slot: async () => ({ path: `/v1/journal/${randomUUID()}`, body: Buffer.from('x') }),
  get_journal_slot: stored,
  delete_journal_slot: stored,
  list_journal_slots: async () => ({ path: '/v1/journal' }),
}

/** The scopes of a read-only key and of a heartbeat key. */
const READS = [
  'list_api_keys',
  'get_usage',
  'get_lease',
  'list_leases',
  'verify_lease',
  'list_receipts',
  'get_quote_check',
  'get_citation_watch',
  'list_citation_watches',
  'get_watchdog',
  'list_watchdogs',
  'list_alerts',
  'list_citation_alerts',
  'get_journal_slot',
  'list_journal_slots',
]
const BEATS = ['send_heartbeat']

const operations = catalog.filter((operation) => operation.access === 'account')
const documented = buildDocument({ config: office.api.config }, catalog).paths as Record<
  string,
  Record<string, { responses: Record<string, unknown>; security: unknown }>
>

t.test('the first call of the minute is admitted', async (t) => {
  t.equal((await strict.call('GET', '/v1/keys')).status, 200)
})

t.test('every operation that needs a key has an example', async (t) => {
  t.same(operations.map(({ name }) => name).sort(), Object.keys(examples).sort())
})

for (const operation of operations) {
  t.test(operation.name, async (t) => {
    const owner = await office.register({ tier: 'pro' })
    const example = () => examples[operation.name]?.(owner) ?? t.fail('no example')
    const suite = { t, operation, owner, example: example as () => Promise<Example> }
    await keys(suite)
    await kinds(suite)
    await others(suite)
    await inputs(suite)
    await limits(suite)
  })
}

interface Suite {
  t: import('tap').Test
  operation: Operation
  owner: Account
  example: () => Promise<Example>
}

/** Checks that the OpenAPI document has the answer's status, and that a failure has the error shape. */
async function ask({ t, operation }: Suite, path: string, given: Ask, expected: number | 'success', code?: string) {
  return check({ t, operation }, await office.call(operation.method, path, given), expected, code)
}

function check(
  { t, operation }: Pick<Suite, 't' | 'operation'>,
  answer: Answer,
  expected: number | 'success',
  code?: string,
) {
  const about = `${operation.name}: ${code ?? expected}`
  if (expected === 'success') t.ok(answer.status >= 200 && answer.status < 300, `${about}, not ${answer.status}`)
  else t.equal(answer.status, expected, about)
  const responses = documented[operation.path]?.[operation.method.toLowerCase()]?.responses ?? {}
  t.ok(Object.hasOwn(responses, answer.status), `${about}: ${answer.status} is documented`)
  if (!code) return answer
  t.same(
    answer.body,
    { error: { code, message: answer.body?.error?.message, retryable: code === 'rate_limited' } },
    about,
  )
  t.equal(typeof answer.body?.error?.message, 'string')
  return answer
}

/** No key, a mistyped, an unknown, a revoked and an expired key get the same answer. */
async function keys(suite: Suite) {
  const { t, owner, example } = suite
  const { path, body } = await example()
  const make = async () => (await owner.call('POST', '/v1/api-keys', { body: { kind: 'full' } })).body
  const [revoked, expired] = [await make(), await make()]
  await owner.call('POST', `/v1/api-keys/${revoked.id}/revoke`)
  await office.tables.query(`update api_keys set expires_at = now() - interval '1 second' where id = $1`, [expired.id])
  const wrong = [
    undefined,
    'x',
    `${owner.key.slice(0, -1)}${owner.key.endsWith('A') ? 'B' : 'A'}`,
    owner.key.slice(0, -6),
    owner.key.toUpperCase(),
    `ctk_${'0'.repeat(43)}0${'0'.repeat(5)}`,
    revoked.api_key,
    expired.api_key,
  ]
  const bodies = new Set<string>()
  for (const key of wrong) {
    const answer = await ask(suite, path, { key, body }, 401, 'unauthenticated')
    t.equal(answer.headers.get('www-authenticate'), 'Bearer')
    bodies.add(answer.bytes.toString())
  }
  t.equal(bodies.size, 1, 'the answers to all wrong keys are the same')
  for (const key of [undefined, 'x']) await ask(suite, path, { key }, 401, 'unauthenticated')
  const basic = { authorization: `Basic ${owner.key}` }
  await ask(suite, path, { body, headers: basic }, 401, 'unauthenticated')
  await ask(suite, path, { key: owner.key, body }, 'success')
}

/** Each kind of key can do what its scopes allow and nothing else. */
async function kinds(suite: Suite) {
  const { t, owner, operation, example } = suite
  for (const [kind, allowed] of [
    ['read_only', READS],
    ['heartbeat', BEATS],
  ] as const) {
    const { api_key } = (await owner.call('POST', '/v1/api-keys', { body: { kind } })).body
    const { path, body } = await example()
    if (allowed.includes(operation.name)) {
      await ask(suite, path, { key: api_key, body }, 'success')
      continue
    }
    const answer = await ask(suite, path, { key: api_key, body }, 403, 'forbidden')
    if (operation.access === 'account')
      t.match(answer.body.error.message, operation.scope, 'the missing right is named')
  }
}

/** Another account's thing gets the same bytes as a missing one. */
async function others(suite: Suite) {
  const { t, owner, operation, example } = suite
  const { path, absent, body } = await example()
  if (absent === undefined) {
    t.ok(
      !/\{\w+\}/.test(operation.path) || operation.method === 'PUT',
      'only an operation that makes the thing works without it',
    )
    return
  }
  const shown = ({ status, bytes, headers }: Answer) => ({
    status,
    body: bytes.toString(),
    headers: [...headers].filter(([name]) => name !== 'date'),
  })
  const foreign = await ask(suite, path, { key: stranger.key, body }, 404, 'not_found')
  const missing = await ask(suite, absent, { key: stranger.key, body }, 404, 'not_found')
  t.same(shown(foreign), shown(missing))
  await ask(suite, path, { key: owner.key, body }, 'success')
}

/** Unknown members, bodies of the wrong type or size, and bodies that are not JSON. */
async function inputs(suite: Suite) {
  const { owner, operation, example } = suite
  const { path, body } = await example()
  const { key } = owner
  if (operation.path.includes('{')) {
    // A name with U+0000, which is not valid text for the database.
    const { status } = await office.call(operation.method, operation.path.replace(/\{\w+\}/g, 'a%00b'), { key, body })
    suite.t.ok(status === 400 || status === 404, `${operation.name}: a name with U+0000 gets ${status}`)
  }
  const json = { 'content-type': 'application/json' }
  if (operation.method === 'GET') {
    await ask(suite, `${path}?surprise=1`, { key }, 400, 'invalid_request')
    return
  }
  if (operation.rawBody) {
    const large = Buffer.alloc(operation.rawBody.limit + 1)
    await ask(suite, path, { key, body: large }, 413, 'body_too_large')
    await ask(suite, path, { key, body: {} }, 415, 'unsupported_media_type')
    return
  }
  const members = (body ?? {}) as object
  await ask(suite, path, { key, body: { ...members, surprise: 1 } }, 400, 'invalid_request')
  await ask(suite, path, { key, body: { ...members, handle: stranger.handle } }, 400, 'invalid_request')
  for (const name of operation.path.match(/(?<=\{)\w+(?=\})/g) ?? [])
    await ask(suite, path, { key, body: { ...members, [name]: 'x' } }, 400, 'invalid_request')
  await ask(suite, path, { key, body: [members] }, 400, 'invalid_request')
  await ask(suite, path, { key, body: Buffer.from('{'), headers: json }, 400, 'invalid_request')
  await ask(suite, path, { key, body: Buffer.from([0x22, 0xff, 0x22]), headers: json }, 400, 'invalid_request')
  await ask(suite, path, { key, body: { ...members, surprise: 'x'.repeat(70_000) } }, 413, 'body_too_large')
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/octet-stream'])
    await ask(suite, path, { key, body: members, headers: { 'content-type': type } }, 415, 'unsupported_media_type')
  const nothing = { key, body: Buffer.alloc(0), headers: { 'content-type': 'application/x-www-form-urlencoded' } }
  if (body === undefined) await ask(suite, path, nothing, 'success')
  else await ask(suite, path, nothing, 415, 'unsupported_media_type')
}

/** Calls without a valid key count against the address; calls with one do not. */
async function limits({ t, operation, owner, example }: Suite) {
  const { path, body } = await example()
  for (const key of [undefined, 'x', owner.key.slice(0, -1)]) {
    const answer = check(
      { t, operation },
      await strict.call(operation.method, path, { key, body }),
      429,
      'rate_limited',
    )
    t.match(answer.headers.get('retry-after'), /^[1-9]\d?$/)
  }
  check({ t, operation }, await strict.call(operation.method, path, { key: owner.key, body }), 'success')
}

t.test('the document requires the key where the service does', async (t) => {
  for (const { path, method, access, name } of catalog.filter(({ family }) => family === 'control'))
    t.same(documented[path]?.[method.toLowerCase()]?.security, access === 'account' ? [{ apiKey: [] }] : [], name)
})

t.test('no cache keeps an error that a browser shows', async (t) => {
  for (const path of ['/v1/api-keys', '/v1/receipt/x', '/v1/nothing', '/mcp', '/mcp/check']) {
    const { status, headers } = await office.call('GET', path, { headers: { accept: 'text/html' } })
    t.ok(status >= 400, path)
    t.match(headers.get('content-type'), 'text/html', path)
    t.equal(headers.get('cache-control'), 'no-store', path)
  }
})
