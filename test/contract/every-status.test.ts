// Every status that the OpenAPI document names for an operation is an answer of the service: here each is provoked, and its body and
// headers are checked against the document (see documented-answers.ts).
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { KEY_SCOPES, type KeyKind } from '../../server/accounts/scopes.ts'
import { catalog } from '../../server/catalog.ts'
import { UnavailableError } from '../../server/errors.ts'
import type { Operation } from '../../server/operation.ts'
import type { SettlementOutcome } from '../../server/payments/x402.ts'
import type { Service } from '../../server/service.ts'
import { recoveryToken } from '../../server/verification/recovery-token.ts'
import { statusesOfOperations } from '../documented-answers.ts'
import { register } from '../quotes/harness.ts'
import { holdPage } from '../site.ts'
import { openScriptedFacilitator, PAGE, SELLERS, signPayment, startSystem, termsOf } from '../system.ts'

const till = openScriptedFacilitator()
const system = await startSystem({ env: { SOURCE_CAPTURE: 'on' }, overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())
const account = await register(system, 'pro')
const { documented, answered } = statusesOfOperations()

interface Ask {
  headers?: Record<string, string>
  /** Sent as JSON; a string as it is. */
  body?: unknown
  /** Sent as bearer token; null for none. By default the account's key. */
  key?: string | null
  at?: Service
}

/**
 * Calls once, and expects this status.
 * @param call method and path
 * Throws for an answer that is not documented.
 */
async function expectStatus(t: Test, status: number, call: string, how: Ask = {}) {
  const { headers, body, key = account.key, at = system.service } = how
  const [method = '', path = ''] = call.split(' ')
  const response = await fetch(new URL(path, at.address), {
    method,
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...headers,
    },
    body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.clone().text()
  t.equal(response.status, status, `${call} is answered ${text.slice(0, 300)}`)
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return { response, headers: response.headers, body: isJson ? JSON.parse(text) : text }
}

/** Runs once for each operation that documents the status. The path has `x` in place of its parameters. */
async function eachWith(status: number, run: (operation: Operation, call: string) => Promise<unknown>) {
  for (const operation of catalog) {
    const { method, path } = operation
    const call = `${method} ${path.replaceAll(/\{\w+\}/g, 'x')}`
    if (documented.includes(`${method.toLowerCase()} ${path} ${status}`)) await run(operation, call)
  }
}

t.test('keys: none is 401, and one of a kind that may not is 403', async (t) => {
  const keyOf = async (kind: KeyKind) =>
    (await expectStatus(t, 201, 'POST /v1/api-keys', { body: { kind, label: 'job' } })).body.api_key as string
  const keys = { heartbeat: await keyOf('heartbeat'), read_only: await keyOf('read_only') }
  await eachWith(401, (_operation, call) => expectStatus(t, 401, call, { key: null }))
  await eachWith(403, (operation, call) => {
    const scope = operation.access === 'account' ? operation.scope : null
    const kind = (['heartbeat', 'read_only'] as const).find((kind) => scope && !KEY_SCOPES[kind].includes(scope))
    return expectStatus(t, 403, call, { key: kind ? keys[kind] : '' })
  })
})

t.test('calls that cannot be read: 400, 413 and 415, and 404 for a path that cannot', async (t) => {
  // Without a payment `buy` is answered with any body.
  const payment = { 'payment-signature': 'x' }
  const own = { 'idempotency-key': randomUUID() }
  await eachWith(400, ({ method, rawBody, path }, call) => {
    if (rawBody) return expectStatus(t, 400, call.replace(/x$/, '!'), { headers: { 'content-type': BYTES }, body: '' })
    if (method === 'GET') return expectStatus(t, 400, `${call}?unknown=1`)
    return expectStatus(t, 400, call, { body: [], headers: path.endsWith('/buy') ? { ...payment, ...own } : own })
  })
  await eachWith(413, ({ rawBody }, call) =>
    expectStatus(t, 413, call, { body: 'x'.repeat(65_537), ...(rawBody && { headers: { 'content-type': BYTES } }) }),
  )
  await eachWith(415, (_operation, call) =>
    expectStatus(t, 415, call, { body: 'x', headers: { ...payment, 'content-type': 'text/plain' } }),
  )
  await eachWith(404, async ({ path }, call) => path.includes('{') && expectStatus(t, 404, call.replace('/x', '/%ff')))
})
const BYTES = 'application/octet-stream'

t.test('beyond the limit of an address: 429', async (t) => {
  const narrow = await system.openTwin({}, { RATE_LIMIT_PER_MINUTE: '1' })
  await expectStatus(t, 200, 'GET /v1/keys', { key: null, at: narrow })
  await eachWith(429, (_operation, call) => expectStatus(t, 429, call, { key: null, at: narrow }))
  await narrow[Symbol.asyncDispose]()
})

t.test('a database that does not answer is 503, and a fault is 500', async (t) => {
  await using away = await system.openTwin()
  const { db } = away.api
  const unavailable = new UnavailableError('provider_unavailable', 'The database does not answer.')
  const failWith = (error: Error) => new Proxy(db, { get: () => () => Promise.reject(error) })
  // This process has not seen the account's key, so it looks the key up, whatever the operation does.
  away.api.db = failWith(unavailable)
  await eachWith(503, (_operation, call) => expectStatus(t, 503, call, { at: away }))
  away.api.db = failWith(new Error('a fault'))
  await eachWith(500, (_operation, call) => expectStatus(t, 500, call, { at: away }))
  away.api.db = db
})

const CLAIM = 'The harbour was opened in 1874.'
const WAIT = { prefer: 'wait=25' }
const AT_ONCE = { prefer: 'wait=0' }

/** A page of its own, which can be held back. */
function newPage(page: Parameters<typeof holdPage>[0] = { body: PAGE }) {
  const held = holdPage(page)
  const path = `/${randomUUID()}`
  system.site.pages.set(path, held.page)
  return { held, source_url: system.site.url(path) }
}

/** Quotes a purchase and signs its payment. */
async function quote(t: Test, door: string, page = newPage()) {
  const claim = door === SELLERS.claims ? { claims: [CLAIM, 'Fishing ended in 1962.'] } : { claim: CLAIM }
  const own = { 'idempotency-key': randomUUID() }
  const body = { source_url: page.source_url, ...claim }
  const { response, body: challenge } = await expectStatus(t, 402, `POST ${door}`, { key: null, body, headers: own })
  const { headers: payment } = await signPayment(termsOf(response))
  const id: string = challenge.request_id
  const token = recoveryToken(system.service.api.secrets.recovery, id)
  return { id, token, body, own, payment, held: page.held, paid: { ...own, ...payment } }
}

const RECOVERED = '/api/agent/v1/requests'
const PAYMENTS = '/api/agent/v1/payments'
const DOORS = [SELLERS.source, SELLERS.claims, '/api/agent/v1/buy']
let completed: { id: string; token: string; evidence_id: string } | undefined

t.test('purchases', async (t) => {
  await expectStatus(t, 200, 'GET /api/agent/v1/capabilities')
  await expectStatus(t, 402, 'GET /api/agent/v1/buy', { key: null })
  for (const door of DOORS) {
    const { id, token, body, own, paid, held } = await quote(t, door)
    const post = (status: number, headers: Record<string, string>, changed = {}) =>
      expectStatus(t, status, `POST ${door}`, { key: null, headers, body: { ...body, ...changed } })
    await post(202, { ...paid, ...AT_ONCE })
    await expectStatus(t, 202, `GET ${RECOVERED}/${id}`, { key: token })
    await post(409, own, { source_url: system.site.url('/other') })
    held.release()
    const { body: result } = await post(200, { ...paid, ...WAIT })
    if (door === SELLERS.source) completed = { id, token, evidence_id: result.evidence[0].evidence_id }
    await expectStatus(t, 200, `GET ${RECOVERED}/${id}`, { key: token })
    if (door === SELLERS.source || door === SELLERS.claims)
      await expectStatus(t, 200, `GET ${door}/${id}/evidence`, { key: token })
    await expectStatus(t, 200, `GET ${PAYMENTS}/${id}`, { key: token })
    await post(422, { 'idempotency-key': randomUUID(), ...paymentOf(paid) }, { source_url: 'https://127.0.0.1/' })

    const late = await quote(t, door)
    await system.sql(`update verification_requests set quote_expires_at = now() - interval '1 second' where id = $1`, [
      late.id,
    ])
    await expectStatus(t, 410, `POST ${door}`, { key: null, headers: late.paid, body: late.body })
  }
})
const paymentOf = (headers: Record<string, string>) => ({ 'payment-signature': headers['payment-signature'] ?? '' })

t.test('recovery of what was not completed, and of what was deleted', async (t) => {
  const failing = await quote(t, SELLERS.source, newPage({ status: 404, body: '' }))
  failing.held.release()
  const buy = ({ body, paid }: typeof failing, status: number) =>
    expectStatus(t, status, `POST ${SELLERS.source}`, { key: null, body, headers: { ...paid, ...WAIT } })
  await buy(failing, 422)
  await expectStatus(t, 422, `GET ${RECOVERED}/${failing.id}`, { key: failing.token })

  till.outcomes.push((): SettlementOutcome => ({ kind: 'unpaid', reason: 'insufficient_funds' }))
  const unpaid = await quote(t, SELLERS.source)
  unpaid.held.release()
  await buy(unpaid, 402)
  await expectStatus(t, 402, `GET ${RECOVERED}/${unpaid.id}`, { key: unpaid.token })

  const old = await quote(t, SELLERS.source)
  old.held.release()
  await buy(old, 200)
  await expectStatus(t, 200, `GET ${PAYMENTS}`, { key: null, headers: old.payment })
  await expectStatus(t, 404, `GET ${PAYMENTS}`, { key: null })
  await system.sql(`update verification_requests set changed_at = now() - interval '1000 days' where id = $1`, [old.id])
  // Another process, which has not cached the result.
  await using twin = await system.openTwin()
  await expectStatus(t, 410, `GET ${RECOVERED}/${old.id}`, { key: old.token, at: twin })
})

t.test('what is explained, and accounts', async (t) => {
  await expectStatus(t, 200, 'GET /risk-flags')
  const { body: explained } = await expectStatus(t, 200, 'GET /methodology')
  const version = encodeURIComponent(explained.methodologies[0].methodology_version)
  await expectStatus(t, 200, `GET /methodology/${version}`)

  const handle = `h-${randomUUID()}`
  const { body: made } = await expectStatus(t, 201, 'POST /v1/register', { key: null, body: { handle } })
  await expectStatus(t, 409, 'POST /v1/register', { key: null, body: { handle } })
  const { body: listed } = await expectStatus(t, 200, 'GET /v1/api-keys')
  const { id } = listed.api_keys.find(({ label }: { label: string | null }) => label === 'job')
  await expectStatus(t, 200, `POST /v1/api-keys/${id}/revoke`)
  await expectStatus(t, 200, 'GET /v1/usage')

  const own = { key: made.api_key as string }
  await expectStatus(t, 404, 'POST /v1/billing-portal', own)
  const { body: checkout } = await expectStatus(t, 200, 'POST /v1/checkout', { ...own, body: { tier: 'dev' } })
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  await fetch(checkout.checkout_url, { method: 'POST', headers: form, body: 'action=pay', redirect: 'manual' })
  await expectStatus(t, 409, 'POST /v1/checkout', { ...own, body: { tier: 'dev' } })
  await expectStatus(t, 200, 'POST /v1/billing-portal', own)
})

t.test('leases, receipts and the chain', async (t) => {
  const terms = { agent: 'agent', action: 'buy', lim: '', ttl_s: 600 }
  const { body: granted } = await expectStatus(t, 201, 'POST /v1/lease', { body: terms })
  const lease = `/v1/lease/${granted.lease.lease_id}`
  await expectStatus(t, 200, 'GET /v1/lease')
  await expectStatus(t, 200, `GET ${lease}`)
  await expectStatus(t, 200, `POST ${lease}/verify`, { body: { agent: 'agent', action: 'buy' } })
  await expectStatus(t, 200, `POST ${lease}/renew`)
  await expectStatus(t, 200, `POST ${lease}/revoke`)
  await expectStatus(t, 409, `POST ${lease}/renew`)

  const headers = { 'idempotency-key': randomUUID() }
  const body = { subject_sha256: 'a'.repeat(64) }
  const { body: receipt } = await expectStatus(t, 201, 'POST /v1/receipt', { headers, body })
  await expectStatus(t, 200, 'POST /v1/receipt', { headers, body })
  await expectStatus(t, 409, 'POST /v1/receipt', { headers, body: { ...body, label: 'other' } })
  await expectStatus(t, 200, 'GET /v1/receipt')
  await expectStatus(t, 200, `GET /v1/receipt/${receipt.attestation.serial}`)
  await expectStatus(t, 200, 'POST /v1/receipt/verify', { body: { attestation: receipt.attestation } })

  for (const path of ['/v1/keys', '/v1/chain-head', '/v1/consistency?from=1', '/v1/chain/verify'])
    await expectStatus(t, 200, `GET ${path}`)
  const { headers: page } = await expectStatus(t, 200, 'GET /v1/chain')
  await expectStatus(t, 304, 'GET /v1/chain', { headers: { 'if-none-match': page.get('etag') ?? '' } })
  await expectStatus(t, 412, 'GET /v1/chain', { headers: { 'if-match': '"other"' } })
})

t.test('quote checks', async (t) => {
  const { held, source_url } = newPage()
  const body = { source_url, quotes: ['three piers'] }
  const { body: pending } = await expectStatus(t, 202, 'POST /v1/quote-check', { body })
  await expectStatus(t, 202, `GET /v1/quote-check/${pending.check_id}`)
  held.release()
  await expectStatus(t, 200, `GET /v1/quote-check/${pending.check_id}`, { headers: WAIT })
  await expectStatus(t, 200, 'POST /v1/quote-check', { body })

  const gone = newPage({ status: 404, body: '' })
  const failing = { body: { ...body, source_url: gone.source_url } }
  const { body: begun } = await expectStatus(t, 202, 'POST /v1/quote-check', failing)
  gone.held.release()
  await expectStatus(t, 422, `GET /v1/quote-check/${begun.check_id}`, { headers: WAIT })
  await expectStatus(t, 422, 'POST /v1/quote-check', failing)
})

for (const noun of ['citation-watch', 'watchdog'])
  t.test(`a ${noun} and its alerts`, async (t) => {
    const webhook_url = system.site.url('/hook')
    const watch = `/v1/${noun}/job`
    const { id = '', token = '', evidence_id } = completed ?? {}
    const citation = { webhook_url, request_id: id, recovery_token: token, evidence_id }
    const body = noun === 'watchdog' ? { webhook_url, interval_s: 3600 } : citation
    await expectStatus(t, 201, `PUT ${watch}`, { body })
    await expectStatus(t, 200, `PUT ${watch}`, { body })
    await expectStatus(t, 200, `GET ${watch}`)
    await expectStatus(t, 200, `GET /v1/${noun}`)
    const { body: tested } = await expectStatus(t, 200, `POST ${watch}/test`)
    await expectStatus(t, 200, `GET ${watch}/alerts`)
    await expectStatus(t, 202, `POST ${watch}/alerts/${tested.alert.id}/redeliver`)
    await expectStatus(t, 200, `POST ${watch}/secret`)
    if (noun === 'watchdog') {
      await expectStatus(t, 200, 'POST /v1/heartbeat/job', { body: {} })
      await expectStatus(t, 200, `POST ${watch}/pause`, { body: { paused: true } })
    } else {
      await expectStatus(t, 200, `POST ${watch}/check`)
      const { id: request_id, token: recovery_token } = await quote(t, SELLERS.source)
      await expectStatus(t, 410, `PUT ${watch}`, { body: { ...citation, request_id, recovery_token } })
    }
    await expectStatus(t, 204, `DELETE ${watch}`)
  })

t.test('slots of the journal', async (t) => {
  const slot = '/v1/journal/notes'
  const sent = { body: 'bytes', headers: { 'content-type': BYTES } }
  await expectStatus(t, 201, `PUT ${slot}`, sent)
  const { headers } = await expectStatus(t, 200, `PUT ${slot}`, sent)
  await expectStatus(t, 200, `GET ${slot}`)
  await expectStatus(t, 200, 'GET /v1/journal')
  await expectStatus(t, 304, `GET ${slot}`, { headers: { 'if-none-match': headers.get('etag') ?? '' } })
  const other = { 'if-match': '"other"' }
  await expectStatus(t, 412, `PUT ${slot}`, { ...sent, headers: { ...sent.headers, ...other } })
  for (const method of ['GET', 'DELETE']) await expectStatus(t, 412, `${method} ${slot}`, { headers: other })
  await expectStatus(t, 204, `DELETE ${slot}`)
})

t.test('every documented status was seen', async (t) => {
  t.ok(documented.length > catalog.length)
  t.same(
    documented.filter((one) => !answered.has(one)),
    [],
  )
})
