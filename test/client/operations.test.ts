// The client has a method for every operation of the catalogue, with the same path, credential and types, and each sends
// what the service's routes expect.
import t from 'tap'
import type { z } from 'zod'
import { Countersign, CountersignError, OPERATIONS, type Operations } from '../../client/client.ts'
import type { ConditionalCallOptions, KeyedCallOptions } from '../../client/operations/call-options.ts'
import { PURCHASE } from '../../client/operations/operations.ts'
import type * as accounts from '../../server/accounts/operations.ts'
import type * as billing from '../../server/billing/operations.ts'
import { catalog } from '../../server/catalog.ts'
import type * as citations from '../../server/citations/operations.ts'
import type * as journal from '../../server/journal/operations.ts'
import type * as leases from '../../server/leases/operations.ts'
import type * as quotes from '../../server/quotes/operations.ts'
import type * as chain from '../../server/receipts/chain-operations.ts'
import type * as checks from '../../server/receipts/check-operations.ts'
import type * as receipts from '../../server/receipts/operations.ts'
import type * as evidence from '../../server/verification/evidence-operations.ts'
import type * as methodology from '../../server/verification/offer/methodology.ts'
import type * as riskFlags from '../../server/verification/offer/risk-flag-advice.ts'
import type * as purchases from '../../server/verification/operations.ts'
import type * as payments from '../../server/verification/payment-status.ts'
import type * as watchdogs from '../../server/watchdogs/operations.ts'
import { answerWith, buildClock, hangUp, play } from './counterpart.ts'

type Served = typeof accounts &
  typeof billing &
  typeof citations &
  typeof journal &
  typeof leases &
  typeof chain &
  typeof checks &
  typeof receipts &
  typeof evidence &
  typeof methodology &
  typeof purchases &
  typeof payments &
  typeof riskFlags &
  typeof watchdogs &
  typeof quotes

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Without names, intersections, modifiers of the schemas and the server's own class of bytes. */
type Plain<T> = T extends Uint8Array
  ? 'bytes'
  : T extends object
    ? IsOpen<T> extends true
      ? 'an object'
      : { -readonly [K in keyof T]: Plain<T[K]> }
    : T
/** No member is named. */
type IsOpen<T> = string extends keyof T ? true : [keyof T] extends [never] ? true : false
/** The named members: bodies of the verification family admit others, which mean nothing. */
type Named<T> = { [K in keyof T as string extends K ? never : K]: T[K] }
/** Members that the service reads from text have no type there. */
type Unread<S, C> = {
  [K in keyof S]: unknown extends S[K] ? (K extends keyof C ? C[K] : never) : S[K]
}
type InputOf<N extends keyof Operations> = NonNullable<Parameters<Operations[N]>[0]>
type AnswerOf<N extends keyof Operations> = Awaited<ReturnType<Operations[N]>>
type SameInput<C, S> = Same<Plain<C>, Plain<Unread<Named<S>, C>>>
/** Nothing is `null` in the catalogue, and bytes come with their entity tag. */
type SameAnswer<C, S> = S extends null ? Same<C, void> : S extends Uint8Array ? true : Same<Plain<C>, Plain<S>>

type Disagreement<N extends keyof Operations> =
  SameInput<InputOf<N>, z.input<Served[N]['input']>> extends true
    ? SameAnswer<AnswerOf<N>, z.output<Served[N]['output']>> extends true
      ? never
      : 'another answer'
    : 'another input'

/** A member that is not `never` names an operation whose types differ from the catalogue's. */
type Disagreements = { [N in keyof Operations as Disagreement<N> extends never ? never : N]: Disagreement<N> }

const camelCase = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
/** `recover` also waits. */
const methodOf = (name: string) => (name === 'get_request' ? 'recover' : camelCase(name))

t.test('every operation has its method, and there is no other', async (t) => {
  const table = { ...PURCHASE, ...OPERATIONS }
  // The other door of the same purchase is for clients that are not this one.
  const own = catalog.filter((operation) => operation.answers !== 'verification' || operation.through !== 'buy')
  t.same(Object.keys(table).sort(), own.map(({ name }) => methodOf(name)).sort())
  const prototype = Countersign.prototype as unknown as Record<string, unknown>
  for (const { name, method, path, access, rawBody, rawAnswer, errors, pending } of own) {
    const keyed = access === 'payment' || errors?.includes('idempotency_conflict')
    const expected = {
      method,
      path,
      access,
      ...(keyed && { keyed }),
      ...(pending && { waits: true }),
      ...(rawBody && { rawBody: true }),
      ...(rawAnswer && { rawAnswer: true }),
    }
    t.same(table[methodOf(name) as keyof typeof table], expected, name)
    t.equal(rawBody?.member ?? 'data', 'data', 'the name that the client sends as bytes')
    t.type(prototype[methodOf(name)], 'function', name)
  }
})

t.test('the types of inputs and answers are those of the schemas', async (t) => {
  const disagreements: Disagreements = {}
  t.same(disagreements, {})
  const same: [Same<{ a?: 1 }, { a?: 1 }>, Same<Plain<{ a: 1 } & { b: 2 }>, Plain<{ a: 1; b: 2 }>>] = [true, true]
  const other: [Same<{ a?: 1 }, { a: 1 }>, Same<Plain<{ a: 1 }>, Plain<{ a: 1; b?: 2 }>>, Same<1 | 2, 1>] = [
    false,
    false,
    false,
  ]
  t.same(
    [same, other],
    [
      [true, true],
      [false, false, false],
    ],
    'the comparison sees optional and missing members',
  )
  // Every method takes at most the options of one of these kinds.
  const keyed: KeyedCallOptions = {} satisfies NonNullable<Parameters<Operations['createReceipt']>[1]>
  const conditional: ConditionalCallOptions = {} satisfies NonNullable<Parameters<Operations['putJournalSlot']>[1]>
  t.same([keyed, conditional], [{}, {}])
})

const KEY = 'ctk_a-secret'
const ok = (body: unknown = {}, headers = {}) => answerWith(200, JSON.stringify(body), headers)

async function failure(promise: Promise<unknown>): Promise<CountersignError> {
  const error = await promise.then(
    () => new Error('it succeeded'),
    (error: unknown) => error,
  )
  if (error instanceof CountersignError) return error
  throw error
}

t.test('each member goes where the route takes it from, with the credential of the operation', async (t) => {
  const script = Array.from({ length: 9 }, () => ok())
  const { baseUrl, received } = await play(t, ...script)
  const service = new Countersign({ baseUrl, apiKey: KEY })
  await service.grantLease({ agent: 'a', action: 'pay', lim: 'usd<=5', ttl_s: 60 })
  await service.renewLease({ lease_id: 'l/1' })
  await service.listLeases({ state: 'all', limit: undefined, before: 'x&y' })
  await service.listAlerts({ name: 'n', limit: 5 })
  await service.getChain({ from: 1, to: 2 })
  await service.getUsage()
  await service.putJournalSlot({ slot: 's', data: new Uint8Array([0, 255]) }, { ifNoneMatch: '*' })
  await service.getPayment({ request_id: 'r' }, { recoveryToken: 'token' })
  await service.findPayment({}, { paymentSignature: 'signed' })
  const account = { authorization: `Bearer ${KEY}` }
  const expected = [
    ['POST', '/v1/lease', account, '{"agent":"a","action":"pay","lim":"usd<=5","ttl_s":60}'],
    ['POST', '/v1/lease/l%2F1/renew', account, ''],
    ['GET', '/v1/lease?state=all&before=x%26y', account, ''],
    ['GET', '/v1/watchdog/n/alerts?limit=5', account, ''],
    ['GET', '/v1/chain?from=1&to=2', {}, ''],
    ['GET', '/v1/usage', account, ''],
    ['PUT', '/v1/journal/s', { ...account, 'if-none-match': '*', 'content-type': 'application/octet-stream' }, null],
    ['GET', '/api/agent/v1/payments/r', { authorization: 'Bearer token' }, ''],
    ['GET', '/api/agent/v1/payments', { 'payment-signature': 'signed' }, ''],
  ] as const
  for (const [i, [method, url, headers, body]] of expected.entries()) {
    t.match(received[i], { method, url, headers, ...(body !== null && { body }) }, url)
    if (!('authorization' in headers)) t.equal(received[i]?.headers.authorization, undefined, 'no key without need')
  }
  t.equal(received[0]?.headers['content-type'], 'application/json')
  t.equal(received[1]?.headers['content-type'], undefined)
})

t.test('bytes are returned unchanged, with their entity tag', async (t) => {
  const { baseUrl } = await play(
    t,
    answerWith(200, 'a\u0000b', { etag: '"tag"' }),
    answerWith(304, '', { etag: '"tag"' }),
    answerWith(204, ''),
  )
  const service = new Countersign({ baseUrl, apiKey: KEY })
  const { data, etag } = await service.getJournalSlot({ slot: 's' })
  t.same([...data], [97, 0, 98])
  t.equal(etag, '"tag"')
  t.equal(await service.getJournalSlot({ slot: 's' }, { ifNoneMatch: etag }), null)
  t.equal(await service.deleteJournalSlot({ slot: 's' }, { ifMatch: etag }), undefined)
})

t.test('errors have code, retryable, status and the time to wait; no call is repeated', async (t) => {
  const error = { code: 'daily_limit', message: 'Tomorrow.', retryable: true }
  const elsewhere = await play(t)
  const { baseUrl, received } = await play(
    t,
    answerWith(429, JSON.stringify({ error }), { 'retry-after': '120' }),
    hangUp(),
    answerWith(307, '', { location: elsewhere.baseUrl }),
    answerWith(200, '<html>'),
  )
  const service = new Countersign({ baseUrl, apiKey: KEY })
  const receipt = { subject_sha256: 'a'.repeat(64) }
  const limited = await failure(service.createReceipt(receipt, { idempotencyKey: 'mine' }))
  t.match(limited, { ...error, status: 429, retryAfter: 120, idempotencyKey: 'mine' })
  const broken = await failure(service.createReceipt(receipt))
  t.match(broken, { code: 'network_error', retryable: true, status: null, retryAfter: null })
  t.equal(broken.idempotencyKey, received[1]?.headers['idempotency-key'], 'the key to repeat with')
  t.match(broken.idempotencyKey, /^cs_/)
  t.match(await failure(service.getUsage()), { code: 'unexpected_response', status: 307, idempotencyKey: null })
  t.same(elsewhere.received, [], 'a redirect does not get the key')
  t.match(await failure(service.getUsage()), { code: 'unexpected_response', status: 200 })
})

t.test('input that cannot be sent is refused before any call', async (t) => {
  const { baseUrl, received } = await play(t)
  const missing = await failure(new Countersign({ baseUrl }).getUsage())
  t.match(missing, { code: 'api_key_missing', retryable: false, status: null })
  const service = new Countersign({ baseUrl, apiKey: KEY })
  for (const name of ['', '.', '..'])
    t.match(await failure(service.deleteWatchdog({ name })), { code: 'invalid_input', retryable: false })
  t.same(received, [])
})

t.test('an operation that waits repeats its call at each 202, after the time that the service asks for', async (t) => {
  const answer = { source: {}, quotes: [] }
  const later = answerWith(202, '{"status":"pending"}', { 'retry-after': '7' })
  const { baseUrl, received } = await play(t, later, later, ok(answer))
  const clock = buildClock()
  const service = new Countersign({ baseUrl, apiKey: KEY, clock })
  t.same(await service.checkQuotes({ source_url: 'https://page.test/', quotes: ['a'] }), answer)
  t.same(clock.waits, [7000, 7000])
  t.equal(received.length, 3)
  t.equal(received[0]?.headers.prefer, 'wait=25')
})

t.test('the caller can stop waiting', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const { baseUrl } = await play(t, () => arrived.resolve())
  const caller = new AbortController()
  const waiting = failure(new Countersign({ baseUrl, apiKey: KEY }).getUsage({}, { signal: caller.signal }))
  await arrived.promise
  caller.abort()
  t.match(await waiting, { code: 'aborted', status: null })
})
