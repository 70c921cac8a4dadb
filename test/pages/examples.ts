// Calls every operation of the catalogue once, on a service of its own, and keeps what was sent and what came back: the examples
// of the reference at /docs, and the results that the front page shows. examples.test.ts holds the stored ones to a new run.
import { createHash, randomUUID } from 'node:crypto'
import type { Operation } from '../../server/operation.ts'
import { A_FILE, type Example, type ExampleResults, type Examples } from '../../server/pages/examples/examples.ts'
import { modelEnv, openMessagesServer, verdictOn } from '../assessment/semantic/messages-server.ts'
import { payingFetch, type System, signPayment, startSystem, termsOf, VERIFY } from '../system.ts'
import { until } from '../until.ts'
import '../verifier-code.ts'

const PAGE = `<!doctype html><title>Kelby harbour</title><h1>The harbour of Kelby</h1>
<p>The harbour was opened in 1874 by the county engineer, two years later than planned. It has three piers and a lighthouse
21 metres high.</p><p>Fishing ended in 1962. The ferry to Orsay sails on Mondays and Thursdays.</p>`
export const CLAIM = 'The harbour of Kelby was opened in 1872.'
const PAGES = { '/harbour': PAGE, '/hook': { status: 204, body: '' } }

interface Sent {
  body?: unknown
  headers?: Record<string, string>
  /** In place of the operation's path with its parameters. */
  path?: string
}

/** By the name of the operation. */
export async function recordExamples(catalog: readonly Operation[]): Promise<Examples> {
  await using system = await startSystem({ pages: PAGES, env: { SOURCE_CAPTURE: 'on' } })
  const examples: Record<string, Example> = {}
  const book = new Map(catalog.map((operation) => [operation.name, operation]))
  const call = async (name: string, parameters: Record<string, string | number> = {}, sent: Sent = {}) => {
    const operation = book.get(name)
    if (!operation) throw new Error(`There is no operation ${name}.`)
    const path = sent.path ?? operation.path.replace(/\{(\w+)\}/g, (_, member) => String(parameters[member]))
    const example = await exchange(system, operation, path, sent)
    examples[name] = example
    // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
    return example.body as any
  }
  await recordPurchase(system, call, examples)
  await recordAccount(system, call)
  return Object.fromEntries([...book.keys()].flatMap((name) => (examples[name] ? [[name, examples[name]]] : [])))
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Call = (name: string, parameters?: Record<string, string | number>, sent?: Sent) => Promise<any>

let key = ''

async function exchange(
  system: System,
  operation: Operation,
  path: string,
  { body, headers = {} }: Sent,
): Promise<Example> {
  const isRaw = body instanceof Buffer
  const type = isRaw ? 'application/octet-stream' : 'application/json'
  const shown: Record<string, string> = {
    ...(body !== undefined && { 'Content-Type': type }),
    ...(operation.access === 'account' && { Authorization: `Bearer ${key}` }),
    ...headers,
  }
  const answer = await fetch(system.url(path), {
    method: operation.method,
    headers: shown,
    ...(body !== undefined && { body: isRaw ? new Uint8Array(body) : JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (!answer.ok && answer.status !== 402) throw new Error(`${operation.name}: ${answer.status} ${text}`)
  const isZip = text.startsWith('PK')
  const isJson = answer.headers.get('content-type')?.includes('json')
  const neutral = (value: unknown) => JSON.parse(JSON.stringify(value).replaceAll(system.service.address, '{base_url}'))
  return {
    path: neutral(path),
    headers: neutral(hide(shown)),
    ...(body !== undefined && { request: isRaw ? body.toString() : neutral(body) }),
    status: answer.status,
    answerHeaders: neutral(
      Object.fromEntries(SHOWN.flatMap((name) => (answer.headers.has(name) ? [[name, answer.headers.get(name)]] : []))),
    ),
    body: text === '' ? null : isJson ? neutral(JSON.parse(text)) : isZip ? A_FILE : text,
  }
}

/** The headers of an answer that a caller needs. */
const SHOWN = [
  'location',
  'retry-after',
  'etag',
  'payment-response',
  'x-service-recovery-token',
  'x-service-idempotent-replay',
]

/** Credentials stand in examples by the name of the thing, as they would in a shell. */
function hide(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      value.replace(/^Bearer ctk_.*/, 'Bearer $KEY').replace(/^Bearer (?!\$).*/, 'Bearer $TOKEN'),
    ]),
  )
}

async function recordPurchase(system: System, call: Call, examples: Record<string, Example>) {
  await call('get_capabilities')
  const order = { source_url: system.site.url('/harbour'), claim: CLAIM }
  const headers = { 'Idempotency-Key': 'an-example-4f1c7a2b9e', Prefer: 'wait=20' }
  const unpaid = await system.ask({ key: headers['Idempotency-Key'], body: order })
  const { header } = await signPayment(termsOf(unpaid))
  await call('verify_source', {}, { body: order, headers: { ...headers, 'PAYMENT-SIGNATURE': header } })
  const bought = examples.verify_source
  if (bought?.status !== 200) throw new Error('The purchase was not completed.')
  // Longer than anybody reads; the terms of a wallet make it.
  bought.headers['PAYMENT-SIGNATURE'] = '$SIGNATURE'
  const several = {
    source_url: order.source_url,
    claims: [CLAIM, 'It has three piers.'],
    context: 'The harbour of Kelby',
  }
  const path = '/api/agent/v1/verify-claims'
  const quoted = await fetch(system.url(path), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'an-example-77e0b39c1d' },
    body: JSON.stringify(several),
  })
  const { header: paid } = await signPayment(termsOf(quoted))
  const severalHeaders = { ...headers, 'Idempotency-Key': 'an-example-77e0b39c1d' }
  await call('verify_claims', {}, { body: several, headers: { ...severalHeaders, 'PAYMENT-SIGNATURE': paid } })
  if (examples.verify_claims) examples.verify_claims.headers['PAYMENT-SIGNATURE'] = '$SIGNATURE'
  await call('get_terms')
  const terms = termsOf(await fetch(system.url('/api/agent/v1/buy')))
  const { header: signature } = await signPayment(terms)
  await call('buy_source', {}, { body: order, headers: { 'PAYMENT-SIGNATURE': signature } })
  if (examples.buy_source) examples.buy_source.headers['PAYMENT-SIGNATURE'] = '$SIGNATURE'
  const { request_id } = bought.body as { request_id: string }
  const token = { Authorization: `Bearer ${bought.answerHeaders['x-service-recovery-token']}` }
  await call('get_request', { request_id }, { headers: token })
  await call('get_evidence', { request_id }, { headers: token })
  const { request_id: claims_id } = (examples.verify_claims?.body ?? {}) as { request_id: string }
  const claimsToken = `Bearer ${examples.verify_claims?.answerHeaders['x-service-recovery-token']}`
  await call('get_claims_evidence', { request_id: claims_id }, { headers: { Authorization: claimsToken } })
  await call('get_payment', { request_id }, { headers: token })
  await call('find_payment', {}, { headers: { 'PAYMENT-SIGNATURE': header } })
  if (examples.find_payment) examples.find_payment.headers['PAYMENT-SIGNATURE'] = '$SIGNATURE'
  await call('get_risk_flags')
  const { methodologies } = await call('get_methodologies')
  await call('get_methodology', { version: methodologies[0].methodology_version })
  await call('get_keys')
}

async function recordAccount(system: System, call: Call) {
  key = (await call('register', {}, { body: { handle: 'kelby-archive' } })).api_key
  // The simulated provider of subscriptions belongs to this service; a paid tier has room for every example.
  await system.sql("update accounts set tier = 'dev' where handle = 'kelby-archive'")
  const { id } = await call('create_api_key', {}, { body: { kind: 'heartbeat', label: 'nightly jobs' } })
  await call('list_api_keys')
  await call('revoke_api_key', { id }, { body: { after_s: 3600 } })
  await call('get_usage')
  await recordLeases(call)
  await recordReceipts(call)
  await recordQuotes(system, call)
  await recordWatches(system, call)
  await call('put_journal_slot', { slot: 'notes' }, { body: Buffer.from('an encrypted note') })
  await call('get_journal_slot', { slot: 'notes' })
  await call('list_journal_slots')
  await call('delete_journal_slot', { slot: 'notes' })
  await call('create_checkout', {}, { body: { tier: 'pro' } })
  await system.sql("update accounts set tier = 'free' where handle = 'kelby-archive'")
  await recordPortal(system, call)
}

/** The billing portal is for those who subscribe. */
async function recordPortal(system: System, call: Call) {
  const { checkout_url } = await (
    await fetch(system.url('/v1/checkout'), {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ tier: 'dev' }),
    })
  ).json()
  await fetch(checkout_url, { method: 'POST', body: new URLSearchParams({ action: 'pay' }), redirect: 'manual' })
  await call('open_billing_portal')
}

async function recordLeases(call: Call) {
  const terms = { agent: 'buyer-7', action: 'pay', ttl_s: 3600, lim: 'usd<=20' }
  const { lease } = await call('grant_lease', {}, { body: terms })
  const { lease_id } = lease
  await call('renew_lease', { lease_id })
  await call('verify_lease', { lease_id }, { body: { agent: 'buyer-7', action: 'pay' } })
  await call('get_lease', { lease_id })
  await call('list_leases', {}, { path: '/v1/lease?state=active' })
  await call('revoke_lease', { lease_id })
}

async function recordReceipts(call: Call) {
  const subject_sha256 = createHash('sha256').update('report of 22 November').digest('hex')
  const { attestation } = await call('create_receipt', {}, { body: { subject_sha256, label: 'report-2026-11-22' } })
  const { serial } = attestation
  await call('get_receipt', { serial })
  await call('list_receipts', {}, { path: '/v1/receipt?limit=2' })
  await call('verify_receipt', {}, { body: { attestation } })
  await call('get_chain_head')
  await call('get_chain', {}, { path: `/v1/chain?from=${serial}&to=${serial}` })
  await call('get_consistency', {}, { path: `/v1/consistency?from=1&to=${serial}` })
  await call('verify_chain', {}, { path: `/v1/chain/verify?from=1&to=${serial}` })
}

async function recordQuotes(system: System, call: Call) {
  const quotes = ['opened in 1874 by the county engineer', 'opened in 1872']
  const body = { source_url: system.site.url('/harbour'), quotes }
  await call('check_quotes', {}, { body, headers: { Prefer: 'wait=20' } })
  await fetch(system.url('/v1/quote-check'), {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, quotes: quotes.slice(0, 1) }),
  })
  // Its answer names it only if it is pending, and the page was read before.
  const [latest] = await system.sql('select id from quote_checks order by created_at desc limit 1')
  const check_id = String(latest?.id)
  await call('get_quote_check', { check_id }, { headers: { Prefer: 'wait=20' } })
}

async function recordWatches(system: System, call: Call) {
  const webhook_url = system.site.url('/hook')
  const bought = await system.ask({ key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=20' } })
  const { request_id } = (await bought.json()) as { request_id: string }
  const recovery_token = bought.headers.get('x-service-recovery-token')
  for (const [kind, put, body] of [
    ['citation', 'put_citation_watch', { webhook_url, request_id, recovery_token, evidence_id: 'e1' }],
    ['', 'put_watchdog', { interval_s: 3600, webhook_url }],
  ] as const) {
    const name = kind ? 'harbour-year' : 'nightly-backup'
    await call(put, { name }, { body })
    await recordWatch(call, name, kind === 'citation')
  }
}

async function recordWatch(call: Call, name: string, isCitation: boolean) {
  const named = (operation: string) => operation.replace('*', isCitation ? 'citation_watch' : 'watchdog')
  const alerts = isCitation ? 'list_citation_alerts' : 'list_alerts'
  if (!isCitation) await call('send_heartbeat', { name }, { body: { status: 'ok', note: '412 files' } })
  await call(named('get_*'), { name })
  await call(isCitation ? 'list_citation_watches' : 'list_watchdogs')
  await call(named('test_*'), { name })
  if (isCitation) await call('check_citation_watch', { name })
  const [{ id }] = (await call(alerts, { name })).alerts
  await call(isCitation ? 'redeliver_citation_alert' : 'redeliver_alert', { name, id })
  if (!isCitation) await call('pause_watchdog', { name }, { body: { paused: true } })
  await call(isCitation ? 'rotate_citation_webhook_secret' : 'rotate_webhook_secret', { name })
  await call(named('delete_*'), { name })
}

/** One result by each kind of assessment. The model's part is played by a script; everything else is the service. */
export async function recordResults(): Promise<ExampleResults> {
  const semantic = await buyWith(async (asked) => verdictOn(asked, 'opened in 1874', 'contradicts', 'other_value'))
  return {
    literal: await buyWith(null),
    local: await buyWith(null, { ASSESSMENT: 'local', VERIFIER_THREADS: '1' }),
    semantic,
  }
}

async function buyWith(script: Parameters<typeof openMessagesServer>[0] | null, env: Record<string, string> = {}) {
  await using model = script && (await openMessagesServer(script))
  await using system = await startSystem({ pages: PAGES, env: model ? modelEnv(model) : env })
  await until(async () => ((await fetch(system.url('/readyz'))).ok ? true : undefined))
  const body = { source_url: system.site.url('/harbour'), claim: CLAIM }
  const key = randomUUID()
  return await until(async () => {
    const bought = await system.ask({ key, body, fetch: payingFetch(), headers: { prefer: 'wait=25' } })
    if (bought.status === 202) return undefined
    if (bought.status !== 200) throw new Error(`${VERIFY}: ${bought.status} ${await bought.text()}`)
    return JSON.parse(await bought.text())
  })
}
