import { inspect } from 'node:util'
import { queryObjects } from 'node:v8'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import t, { type Test } from 'tap'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { readBody, sha256Hex } from '../../client/bytes.ts'
import { Countersign, CountersignError, createIdempotencyKey, type Fetch } from '../../client/client.ts'
import { systemClock } from '../../client/clock.ts'
import { verifyResult } from '../../client/verification.ts'
import {
  answerWith,
  askForPayment,
  breakOff,
  buildClock,
  complete,
  hangUp,
  pending,
  pendingWithoutToken,
  play,
  REQUEST_ID,
  RESULT_BYTES,
  type Received,
  refuse,
  SETTLEMENT,
  type Step,
  TERMS,
  TOKEN,
} from './counterpart.ts'
import { issueResult, keys } from './issuer.ts'

const KEY = 'test-key.of:16-or-more_chars'
const INPUT = { source_url: 'https://example.org/bridge', claim: 'The bridge opened in 1932. \u{1F600}' }
const POST = 'POST /api/agent/v1/verify-source'
const GET = `GET /api/agent/v1/requests/${REQUEST_ID}`

/** Replaces a wallet: signs every text that it is given, once per call. */
const pay: Fetch = (url, init) =>
  fetch(url, { ...init, headers: { ...(init?.headers as object), 'payment-signature': 'signed' } })

const route = ({ method, url }: Received) => `${method} ${url}`
const signed = (received: Received[]) => received.map(({ headers }) => headers['payment-signature'] !== undefined)

async function failure(promise: Promise<unknown>): Promise<CountersignError> {
  const error = await promise.then(
    () => new Error('it succeeded'),
    (error: unknown) => error,
  )
  if (error instanceof CountersignError) return error
  throw error
}

t.test('without a payer the terms come back, with the key to repeat', async (t) => {
  const { baseUrl, received } = await play(t, askForPayment())
  const clock = buildClock()
  const error = await failure(new Countersign({ baseUrl, clock }).verifySource(INPUT))
  t.match(error, { code: 'payment_required', status: 402, retryable: true, requestId: REQUEST_ID, message: 'about' })
  t.same(error.paymentRequired, TERMS)
  t.match(error.idempotencyKey, /^[A-Za-z0-9_.:-]{16,128}$/)
  t.equal(received[0]?.headers['idempotency-key'], error.idempotencyKey)
  t.equal(received[0]?.headers['content-type'], 'application/json')
  t.equal(received[0]?.headers.prefer, 'wait=25')
  t.same(JSON.parse(received[0]?.body ?? ''), INPUT)
})

t.test('generated keys differ', async (t) => {
  t.equal(new Set(Array.from({ length: 100 }, createIdempotencyKey)).size, 100)
})

t.test('a purchase through the stock x402 fetch, from 402 to the verified result', async (t) => {
  const { baseUrl, received } = await play(
    t,
    askForPayment(),
    askForPayment(),
    pending(),
    pending({ 'retry-after': '3' }),
    complete(),
  )
  const clock = buildClock()
  const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())))
  const service = new Countersign({ baseUrl, fetch: wrapFetchWithPayment(fetch, wallet), clock })
  const purchase = await service.verifySource(INPUT, { idempotencyKey: KEY, wait: 10 })

  t.same(received.map(route), [POST, POST, POST, GET, GET])
  t.same(signed(received), [false, false, true, false, false], 'one authorization leaves the wallet')
  for (const { headers, body } of received.slice(0, 3)) {
    t.equal(headers['idempotency-key'], KEY)
    t.equal(body, JSON.stringify(INPUT))
  }
  for (const { headers } of received.slice(3)) {
    t.equal(headers.authorization, `Bearer ${TOKEN}`)
    t.equal(headers.prefer, 'wait=10')
  }
  t.same(clock.waits, [2000, 3000], 'as long as Retry-After said')
  t.ok(RESULT_BYTES.equals(purchase.bytes), 'the exact bytes')
  t.same(purchase.result, issueResult())
  t.ok(verifyResult(purchase.result, { keys }).ok)
  t.match(purchase, { replay: false, requestId: REQUEST_ID, recoveryToken: TOKEN, idempotencyKey: KEY })
})

t.test('a purchase completed at once brings its settlement', async (t) => {
  const { baseUrl, received } = await play(t, askForPayment(), complete())
  const purchase = await new Countersign({ baseUrl, fetch: pay, clock: buildClock() }).verifySource(INPUT)
  t.same(purchase.settlement, SETTLEMENT)
  t.equal(purchase.replay, false)
  t.same(signed(received), [false, true])
})

t.test('an idempotency key that has bought a result is not paid again', async (t) => {
  const { baseUrl, received } = await play(t, complete({ 'x-service-idempotent-replay': 'true' }))
  const service = new Countersign({ baseUrl, fetch: pay, clock: buildClock() })
  const purchase = await service.verifySource(INPUT, { idempotencyKey: KEY })
  t.equal(purchase.replay, true)
  t.same(signed(received), [false])
})

t.test(
  'a Retry-After that names no time to come is a second: no answer makes the client ask without a pause',
  async (t) => {
    const values = ['0', '-5', '1.5', 'soon', '2']
    const { baseUrl } = await play(t, ...values.map((value) => pending({ 'retry-after': value })), complete())
    const clock = buildClock()
    await new Countersign({ baseUrl, clock }).verifySource(INPUT)
    t.same(clock.waits, [1000, 1000, 1000, 1000, 2000])
  },
)

t.test('a wait that is longer than timers last does not end at once', async (t) => {
  const { setTimeout: begin } = globalThis
  let longest: number | undefined
  // Only until the wait has begun: connections of other tests of this process have timers too.
  globalThis.setTimeout = ((work: () => void, ms?: number) => {
    longest = ms
    return begin(work, 0)
  }) as typeof setTimeout
  let waited: Promise<void>
  try {
    waited = systemClock.sleep(2 ** 40, new AbortController().signal)
  } finally {
    globalThis.setTimeout = begin
  }
  await waited
  t.equal(longest, 2 ** 31 - 1)
})

t.test('of an answer that arrives octet by octet, no piece is kept', async (t) => {
  const before = Number(queryObjects(Uint8Array))
  let pieces = 0
  let kept = 0
  const body = new ReadableStream({
    pull(controller) {
      if (pieces++ < 20_000) return controller.enqueue(Uint8Array.of(pieces % 251))
      kept = Number(queryObjects(Uint8Array)) - before
      controller.close()
    },
  })
  const read = await readBody(new Response(body), 20_000)
  t.equal(sha256Hex(read), sha256Hex(Uint8Array.from({ length: 20_000 }, (_, at) => (at + 1) % 251)))
  t.ok(kept < 1000, `${kept} pieces are kept`)
})

t.test('while a purchase under the key is pending, the client waits without paying', async (t) => {
  const { baseUrl, received } = await play(t, pending(), complete())
  await new Countersign({ baseUrl, fetch: pay, clock: buildClock() }).verifySource(INPUT, { idempotencyKey: KEY })
  t.same(received.map(route), [POST, GET])
  t.same(signed(received), [false, false])
})

t.test('an answer about the purchase is passed on and never repeated', async (t) => {
  const cases: [number, string, boolean][] = [
    [400, 'invalid_request', false],
    [409, 'idempotency_conflict', false],
    [409, 'payment_conflict', false],
    [410, 'quote_expired', false],
    [410, 'result_expired', false],
    [415, 'unsupported_media_type', false],
    [422, 'source_timeout', true],
    [422, 'budget_exceeded', false],
    [503, 'verification_disabled', false],
  ]
  for (const [status, code, retryable] of cases)
    await t.test(`${status} ${code}`, async (t) => {
      const { baseUrl } = await play(t, refuse(status, code, { retryable }))
      const service = new Countersign({ baseUrl, fetch: pay, clock: buildClock() })
      const error = await failure(service.verifySource(INPUT, { idempotencyKey: KEY }))
      t.match(error, { name: 'CountersignError', status, code, retryable, message: `about ${code}` })
      t.match(error, { requestId: REQUEST_ID, idempotencyKey: KEY, paymentRequired: null })
    })
})

t.test('a payment that is refused is not signed again', async (t) => {
  for (const code of ['payment_invalid', 'settlement_failed'])
    await t.test(code, async (t) => {
      const { baseUrl, received } = await play(t, askForPayment(), askForPayment(code))
      const error = await failure(new Countersign({ baseUrl, fetch: pay, clock: buildClock() }).verifySource(INPUT))
      t.match(error, { code, status: 402 })
      t.same(error.paymentRequired, TERMS)
      t.same(signed(received), [false, true])
    })
})

t.test('a busy service is asked again with the same key, when it said so', async (t) => {
  const busy = (headers = {}) => refuse(503, 'capacity_exceeded', { retryable: true, headers })
  const limited = refuse(429, 'rate_limited', { retryable: true, headers: { 'retry-after': '7' } })
  const { baseUrl, received } = await play(
    t,
    busy({ 'retry-after': '5' }),
    busy(),
    limited,
    busy({ 'retry-after': 'Fri, 20 Nov 2026 00:00:30 GMT' }),
    answerWith(502, '<html>'),
    askForPayment(),
    complete(),
  )
  const clock = buildClock()
  await new Countersign({ baseUrl, fetch: pay, clock }).verifySource(INPUT, { idempotencyKey: KEY })
  // The fourth is a date: 30 s after the start of the clock, of which 14 s have passed.
  t.same(clock.waits, [5000, 2000, 7000, 16_000, 16_000])
  t.same(new Set(received.map(({ headers }) => headers['idempotency-key'])), new Set([KEY]))
  t.same(signed(received), [false, false, false, false, false, false, true])
})

t.test('the client does not repeat without end', async (t) => {
  const { baseUrl } = await play(t, ...Array.from({ length: 6 }, () => answerWith(502, '<html>')))
  const clock = buildClock()
  const error = await failure(new Countersign({ baseUrl, clock }).verifySource(INPUT, { idempotencyKey: KEY }))
  t.match(error, { code: 'unexpected_response', status: 502, retryable: true, idempotencyKey: KEY })
  t.same(clock.waits, [1000, 2000, 4000, 8000, 16_000])
})

t.test('an unreachable service is a network error with the key', async (t) => {
  const clock = buildClock()
  const plainFetch = () => Promise.reject(new TypeError('fetch failed'))
  const service = new Countersign({ baseUrl: 'http://127.0.0.1:1', plainFetch, clock })
  const error = await failure(service.verifySource(INPUT, { idempotencyKey: KEY }))
  t.match(error, { code: 'network_error', status: null, retryable: true, idempotencyKey: KEY })
  t.match(error.cause, { message: 'fetch failed' })
  t.equal(clock.waits.length, 5)
})

t.test('a connection lost before payment is repeated with the same key', async (t) => {
  const { baseUrl, received } = await play(t, hangUp(), askForPayment(), complete())
  await new Countersign({ baseUrl, fetch: pay, clock: buildClock() }).verifySource(INPUT, { idempotencyKey: KEY })
  t.same(signed(received), [false, false, true])
  t.same(
    received.map(({ headers }) => headers['idempotency-key']),
    [KEY, KEY, KEY],
  )
})

t.test('a connection lost after payment is never a reason to sign again', async (t) => {
  const replay = { 'x-service-idempotent-replay': 'true' }
  await t.test('the purchase was completed', async (t) => {
    const { baseUrl, received } = await play(t, askForPayment(), hangUp(), complete(replay))
    const service = new Countersign({ baseUrl, fetch: pay, clock: buildClock() })
    const purchase = await service.verifySource(INPUT, { idempotencyKey: KEY })
    t.equal(purchase.replay, true)
    t.same(purchase.settlement, SETTLEMENT)
    t.same(signed(received), [false, true, false])
    t.equal(new Set(received.map(({ body, headers }) => body + headers['idempotency-key'])).size, 1)
  })
  await t.test('the result broke off half-way', async (t) => {
    const { baseUrl, received } = await play(t, askForPayment(), breakOff(), hangUp(), complete(replay))
    const { bytes } = await new Countersign({ baseUrl, fetch: pay, clock: buildClock() }).verifySource(INPUT)
    t.ok(RESULT_BYTES.equals(bytes))
    t.same(signed(received), [false, true, false, false])
  })
  await t.test('the settlement is unknown', async (t) => {
    const busy = refuse(503, 'provider_unavailable', { retryable: true })
    const { baseUrl, received } = await play(t, askForPayment(), busy, pending(), hangUp(), complete())
    await new Countersign({ baseUrl, fetch: pay, clock: buildClock() }).verifySource(INPUT)
    t.same(received.map(route), [POST, POST, POST, GET, GET])
    t.same(signed(received), [false, true, false, false, false])
  })
  await t.test('the service knows of no payment', async (t) => {
    const { baseUrl, received } = await play(t, askForPayment(), hangUp(), askForPayment())
    const service = new Countersign({ baseUrl, fetch: pay, clock: buildClock() })
    const error = await failure(service.verifySource(INPUT, { idempotencyKey: KEY }))
    t.match(error, { code: 'payment_unresolved', retryable: true, status: 402, idempotencyKey: KEY })
    t.same(error.paymentRequired, TERMS)
    t.ok(error.cause, 'with what went wrong')
    t.same(signed(received), [false, true, false])
  })
  await t.test('through the stock x402 fetch', async (t) => {
    const { baseUrl, received } = await play(t, askForPayment(), askForPayment(), hangUp(), complete(replay))
    const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())))
    const service = new Countersign({ baseUrl, fetch: wrapFetchWithPayment(fetch, wallet), clock: buildClock() })
    await service.verifySource(INPUT)
    t.same(signed(received), [false, false, true, false])
  })
})

t.test('an error caused by a wallet that refuses to pay has the error of the wallet as its cause', async (t) => {
  const { baseUrl, received } = await play(t, askForPayment(), askForPayment())
  const refusal = new Error('above the spending limit')
  const service = new Countersign({ baseUrl, fetch: () => Promise.reject(refusal), clock: buildClock() })
  const error = await failure(service.verifySource(INPUT))
  t.equal(error.code, 'payment_unresolved')
  t.equal(error.cause, refusal)
  t.same(signed(received), [false, false])
})

t.test('a pending purchase can end badly', async (t) => {
  const cases: [string, ReturnType<typeof refuse>, object][] = [
    ['failed', refuse(422, 'source_timeout', { retryable: true }), { code: 'source_timeout', status: 422 }],
    ['unpaid', askForPayment('settlement_failed'), { code: 'settlement_failed', status: 402, paymentRequired: TERMS }],
    ['expired', refuse(410, 'result_expired'), { code: 'result_expired', status: 410 }],
    ['unknown', refuse(404, 'not_found'), { code: 'not_found', status: 404 }],
  ]
  for (const [name, end, expected] of cases)
    await t.test(name, async (t) => {
      const { baseUrl } = await play(t, askForPayment(), pending(), end)
      const service = new Countersign({ baseUrl, fetch: pay, clock: buildClock() })
      t.match(await failure(service.verifySource(INPUT, { idempotencyKey: KEY })), { ...expected, idempotencyKey: KEY })
    })
})

t.test('a pending answer without a token is repeated as the identical POST, unpaid', async (t) => {
  const { baseUrl, received } = await play(t, askForPayment(), pendingWithoutToken(), pendingWithoutToken(), complete())
  await new Countersign({ baseUrl, fetch: pay, clock: buildClock() }).verifySource(INPUT, { idempotencyKey: KEY })
  t.same(received.map(route), [POST, POST, POST, POST])
  t.same(signed(received), [false, true, false, false])
  t.equal(new Set(received.map(({ body }) => body)).size, 1)
})

t.test('the deadline leaves everything needed to come back', async (t) => {
  const { baseUrl, received } = await play(t, pending({ 'retry-after': '100' }), pending({ 'retry-after': '100' }))
  const clock = buildClock()
  const error = await failure(new Countersign({ baseUrl, clock }).verifySource(INPUT, { timeoutMs: 110_000 }))
  t.match(error, { code: 'deadline_exceeded', retryable: true, requestId: REQUEST_ID, status: null })
  t.equal(error.recoveryToken, TOKEN)
  t.match(error.idempotencyKey, /^cs_/)
  t.same(clock.waits, [100_000], 'a wait that is longer than the time left is not begun')
  t.same(
    received.map(({ headers }) => headers.prefer),
    ['wait=25', 'wait=10'],
    'nor asked of the service',
  )
  for (const printed of [inspect(error, { depth: 9, showHidden: true }), JSON.stringify(error), String(error.stack)])
    t.notOk(printed.includes(TOKEN), 'the token is not printed with the error')
})

t.test('waiting for an answer can be ended', async (t) => {
  const held = async (t: Test) => {
    const arrived = Promise.withResolvers<void>()
    const { baseUrl } = await play(t, askForPayment(), () => arrived.resolve())
    return { baseUrl, arrived: arrived.promise }
  }
  await t.test('by the caller', async (t) => {
    const { baseUrl, arrived } = await held(t)
    const caller = new AbortController()
    const service = new Countersign({ baseUrl, fetch: pay, clock: buildClock() })
    const waiting = failure(service.verifySource(INPUT, { idempotencyKey: KEY, signal: caller.signal }))
    await arrived
    caller.abort(new Error('never mind'))
    const error = await waiting
    t.match(error, { code: 'aborted', idempotencyKey: KEY, requestId: REQUEST_ID, retryable: true })
    t.match(error.cause, { message: 'never mind' })
  })
  await t.test('by the deadline', async (t) => {
    const { baseUrl, arrived } = await held(t)
    const clock = buildClock()
    const waiting = failure(new Countersign({ baseUrl, fetch: pay, clock }).verifySource(INPUT))
    await arrived
    clock.expire()
    t.match(await waiting, { code: 'deadline_exceeded', requestId: REQUEST_ID })
  })
  await t.test('between two answers', async (t) => {
    const { baseUrl } = await play(t, pending())
    const caller = new AbortController()
    const clock = { ...buildClock(), sleep: async (_ms: number, signal: AbortSignal) => stop(caller, signal) }
    const error = await failure(new Countersign({ baseUrl, clock }).verifySource(INPUT, { signal: caller.signal }))
    t.match(error, { code: 'aborted', requestId: REQUEST_ID })
    t.equal(error.recoveryToken, TOKEN)
  })
  await t.test('before the first request', async (t) => {
    const { baseUrl, received } = await play(t)
    const service = new Countersign({ baseUrl, clock: buildClock() })
    t.match(await failure(service.verifySource(INPUT, { signal: AbortSignal.abort() })), { code: 'aborted' })
    t.same(received, [])
  })
})

t.test('the system clock sleeps until it is stopped', async (t) => {
  const { baseUrl } = await play(t, pending({ 'retry-after': '60' }))
  const caller = new AbortController()
  const plainFetch: Fetch = async (url, init) => {
    const response = await fetch(url, init)
    // Once the answer is read, the client is asleep or about to be.
    setImmediate(() => caller.abort())
    return response
  }
  const error = await failure(new Countersign({ baseUrl, plainFetch }).verifySource(INPUT, { signal: caller.signal }))
  t.equal(error.code, 'aborted')
})

t.test('waiting at the service', async (t) => {
  const cases: [number | undefined, string | undefined][] = [
    [undefined, 'wait=25'],
    [60, 'wait=25'],
    [3.9, 'wait=3'],
    [0, undefined],
    [-1, undefined],
  ]
  for (const [wait, expected] of cases)
    await t.test(`${wait}`, async (t) => {
      const { baseUrl, received } = await play(t, complete())
      await new Countersign({ baseUrl, clock: buildClock() }).verifySource(INPUT, { wait })
      t.equal(received[0]?.headers.prefer, expected)
    })
})

t.test('recovery', async (t) => {
  await t.test('waits until the request has ended, and keeps the bytes', async (t) => {
    const { baseUrl, received } = await play(t, hangUp(), pending(), complete())
    const clock = buildClock()
    const service = new Countersign({ baseUrl, fetch: () => Promise.reject(new Error('never paid')), clock })
    const purchase = await service.recover(REQUEST_ID, TOKEN)
    t.same(received.map(route), [GET, GET, GET])
    t.same(clock.waits, [1000, 2000])
    t.ok(RESULT_BYTES.equals(purchase.bytes))
    t.match(purchase, { requestId: REQUEST_ID, recoveryToken: TOKEN, idempotencyKey: null })
    for (const { headers } of received) t.equal(headers.authorization, `Bearer ${TOKEN}`)
  })
  await t.test('reports the error', async (t) => {
    const { baseUrl } = await play(t, refuse(404, 'not_found'))
    const error = await failure(new Countersign({ baseUrl, clock: buildClock() }).recover(REQUEST_ID, 'wrong'))
    t.match(error, { code: 'not_found', status: 404, retryable: false, idempotencyKey: null })
  })
  await t.test('escapes an unusual request id in the path', async (t) => {
    const { baseUrl, received } = await play(t, refuse(404, 'not_found'))
    await failure(new Countersign({ baseUrl, clock: buildClock() }).recover('../../v1/keys?x', TOKEN))
    t.equal(received[0]?.url, '/api/agent/v1/requests/..%2F..%2Fv1%2Fkeys%3Fx')
  })
})

t.test('a redirect is not followed: neither key nor token goes elsewhere', async (t) => {
  const elsewhere = await play(t)
  const { baseUrl } = await play(t, pending(), answerWith(307, '', { location: elsewhere.baseUrl }))
  const error = await failure(new Countersign({ baseUrl, clock: buildClock() }).verifySource(INPUT))
  t.match(error, { code: 'unexpected_response', status: 307, retryable: false, requestId: REQUEST_ID })
  t.same(elsewhere.received, [])
})

t.test('a 200 that is no result is not taken for one', async (t) => {
  for (const body of ['', 'null', '[]', '{"status":"pending"}', '<html>'])
    await t.test(JSON.stringify(body), async (t) => {
      const { baseUrl } = await play(t, answerWith(200, body))
      const error = await failure(new Countersign({ baseUrl, clock: buildClock() }).verifySource(INPUT))
      t.match(error, { code: 'unexpected_response', status: 200 })
    })
})

t.test('a malformed key is refused before anything is sent', async (t) => {
  const { baseUrl, received } = await play(t)
  const service = new Countersign({ baseUrl, clock: buildClock() })
  for (const idempotencyKey of ['', 'short', 'x'.repeat(129), `${KEY}\n`, `${KEY}\u00e9`]) {
    const error = await failure(service.verifySource(INPUT, { idempotencyKey }))
    t.match(error, { code: 'invalid_idempotency_key', retryable: false, status: null })
  }
  t.same(received, [])
})

t.test('discovery', async (t) => {
  const published = { keys: [{ ...keys[0], use: 'receipt', status: 'active' }] }
  const { baseUrl, received } = await play(
    t,
    answerWith(200, JSON.stringify({ price: { usd: '0.03' } })),
    answerWith(200, JSON.stringify(published)),
    answerWith(429, JSON.stringify({ error: { code: 'rate_limited', message: 'Slower.', retryable: true } })),
    answerWith(200, '{}'),
    hangUp(),
  )
  const service = new Countersign({ baseUrl: `${baseUrl}/` })
  t.same(await service.getCapabilities(), { price: { usd: '0.03' } })
  t.same(await service.keys(), published.keys)
  t.match(await failure(service.keys()), { code: 'rate_limited', message: 'Slower.', status: 429, retryable: true })
  t.match(await failure(service.keys()), { code: 'unexpected_response' })
  t.match(await failure(service.getCapabilities()), { code: 'network_error', status: null })
  const paths = ['/api/agent/v1/capabilities', '/v1/keys', '/v1/keys', '/v1/keys', '/api/agent/v1/capabilities']
  t.same(
    received.map(({ url }) => url),
    paths,
  )
})

t.test('a response that is too long, or never ends, is an error', async (t) => {
  const clock = buildClock()
  const dripping: Step = (response) => {
    response.writeHead(200)
    response.write('{"serial":', clock.expire)
  }
  const { baseUrl } = await play(t, answerWith(200, `{"keys":["${'x'.repeat(17 * 1024 * 1024)}"]}`), dripping)
  const service = new Countersign({ baseUrl, clock })
  const tooLong = await failure(service.keys())
  t.match(tooLong, { code: 'unexpected_response', retryable: false, message: /more than 16 MB/ })
  t.match(await failure(service.chainHead()), { code: 'network_error', retryable: true })
})

t.test('a base URL may have a path', async (t) => {
  const { baseUrl, received } = await play(t, complete())
  await new Countersign({ baseUrl: new URL('/behind/here', baseUrl), clock: buildClock() }).verifySource(INPUT)
  t.equal(received[0]?.url, '/behind/here/api/agent/v1/verify-source')
})

async function stop(caller: AbortController, signal: AbortSignal): Promise<void> {
  caller.abort()
  signal.throwIfAborted()
}
