// Edge cases of the three routes: methods, paths, ids, tokens, headers, and internal errors. Every answer has a status and
// error shape of the interface.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { holdPage } from '../site.ts'
import { harbourClaim, PAGE, payingFetch, signPayment, startSystem, termsOf, VERIFY } from '../system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const body = JSON.stringify(harbourClaim(system.site))

/** Sends raw bytes, which no HTTP client would send, and reads the answer. */
async function talk(lines: string): Promise<Response> {
  const { hostname, port } = new URL(system.service.address)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(lines)
  const [head = '', ...rest] = (await buffer(socket)).toString('latin1').split('\r\n\r\n')
  const [line = '', ...fields] = head.split('\r\n')
  const headers = fields.map((field): [string, string] => {
    const colon = field.indexOf(':')
    return [field.slice(0, colon), field.slice(colon + 1).trim()]
  })
  return new Response(rest.join('\r\n\r\n'), { status: Number(line.split(' ')[1]), headers })
}

t.test('wrong methods and unknown paths: 404 in the error shape', async (t) => {
  const recovery = `/api/agent/v1/requests/${randomUUID()}`
  const wrong: [path: string, methods: string[]][] = [
    [VERIFY, ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/api/agent/v1/capabilities', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    [recovery, ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/api/agent/v1/nothing', ['GET', 'POST']],
    ['/api/agent/v1/requests', ['GET', 'POST']],
    ['/api/agent/v1/requests/', ['GET']],
    [`${recovery}/more`, ['GET']],
    [`${VERIFY}/`, ['POST']],
    ['/api/agent/v2/verify-source', ['POST']],
  ]
  for (const [path, methods] of wrong) {
    for (const method of methods) {
      const response = await fetch(system.url(path), {
        method,
        headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
        body: method === 'GET' || method === 'OPTIONS' ? null : body,
      })
      const { error } = await expectNonCompleted(t, response, 404, `${method} ${path}`)
      t.equal(error.code, 'not_found')
    }
  }
  t.equal((await fetch(system.url(VERIFY), { method: 'HEAD' })).status, 404)
  for (const method of ['PUT', 'PATCH', 'DELETE'])
    for (const unreadable of ['{', body.padEnd(65_537)]) {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(system.url(VERIFY), { method, headers, body: unreadable })
      await expectNonCompleted(t, response, 404, `${method} with a body of ${unreadable.length} bytes`)
    }
  for (const method of ['TRACE', 'PROPFIND']) {
    const response = await talk(`${method} ${VERIFY} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    await expectNonCompleted(t, response, 404, method)
  }
})

t.test('a route is the same, however its path is spelled', async (t) => {
  const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID() }
  for (const path of ['/%61pi/agent/v1/verify-source', '/api/agent/v1/verify%2dsource']) {
    const post = (body: string) => fetch(system.url(path), { method: 'POST', headers, body })
    await expectNonCompleted(t, await post(body.padEnd(65_537)), 400, path)
    await expectNonCompleted(t, await post('{'), 400, path)
    await expectNonCompleted(t, await post(body), 402, path)
  }
  // As a client writes it to a proxy (RFC 9112 section 3.2.2).
  const absolute = await talk(
    `POST http://x${VERIFY} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{`,
  )
  await expectNonCompleted(t, absolute, 400, 'the whole address')
  const page = await fetch(system.url(`/%61pi/agent/v1/requests/${randomUUID()}`), { headers: { accept: 'text/html' } })
  await expectNonCompleted(t, page, 404, 'to a browser too')
})

t.test('recovery: malformed ids are 404, and wrong tokens get the answer of an unknown request', async (t) => {
  const held = holdPage({ body: PAGE })
  system.site.pages.set('/recovered', held.page)
  const own = { source_url: system.site.url('/recovered'), claim: 'It has three piers.' }
  const accepted = await system.ask({ key: randomUUID(), body: own, fetch: payingFetch() })
  const token = accepted.headers.get('x-service-recovery-token') ?? ''
  const { request_id: id = '' } = await expectNonCompleted(t, accepted, 202)
  const { request_id: unpaid = '' } = await expectNonCompleted(t, await system.ask({ key: randomUUID() }), 402)
  const another = await system.ask({ key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=20' } })
  const anothers = another.headers.get('x-service-recovery-token') ?? ''
  t.not(anothers, token)

  const unknown = await (await system.recover(randomUUID(), token)).text()
  const expectUnknown = async (about: string, path: string, authorization?: string) => {
    const response = await fetch(system.url(`/api/agent/v1/requests/${path}`), {
      headers: authorization === undefined ? {} : { authorization },
    })
    t.equal(await response.clone().text(), unknown, `${about} gets the same answer`)
    t.equal(response.headers.has('x-service-recovery-token'), false, about)
    await expectNonCompleted(t, response, 404, about)
  }
  const ids = [
    '1',
    'not-a-uuid',
    `${id}0`,
    id.slice(1),
    `${id}%00`,
    '%00',
    '%F0%9F%9A%A2',
    '%ff',
    '..%2f..',
    'a'.repeat(900),
  ]
  for (const malformed of ids)
    await expectNonCompleted(t, await system.recover(malformed, token), 404, malformed.slice(0, 40))

  const credentials: [about: string, authorization?: string][] = [
    ['no token'],
    ['an empty field', ''],
    ['an empty token', 'Bearer '],
    ['the scheme alone', 'Bearer'],
    ['another scheme', `Basic ${token}`],
    ['no scheme', token],
    ['a token cut', `Bearer ${token.slice(0, -1)}`],
    ['a token with one letter more', `Bearer ${token}A`],
    [
      'a token with one letter changed',
      `Bearer ${token.slice(0, -2)}${token.at(-2) === 'A' ? 'B' : 'A'}${token.at(-1)}`,
    ],
    ['a token in another case', `Bearer ${token.toUpperCase()}`],
    ['a token twice', `Bearer ${token} ${token}`],
    ["another request's token", `Bearer ${anothers}`],
    ['a long token', `Bearer ${'a'.repeat(8000)}`],
    ['a token that is not ASCII', 'Bearer é\u00ff'],
  ]
  for (const [about, authorization] of credentials) await expectUnknown(about, id, authorization)
  await expectUnknown('a request not paid, by a stranger', unpaid, `Bearer ${token}`)

  held.release()
  await expectCompleted(t, await system.recover(id, token, { prefer: 'wait=20' }))
  for (const [about, authorization] of credentials) await expectUnknown(`completed, ${about}`, id, authorization)
  const lower = await fetch(system.url(`/api/agent/v1/requests/${id}`), {
    headers: { authorization: `bearer ${token}` },
  })
  await expectCompleted(t, lower)
  await expectCompleted(
    t,
    await fetch(system.url(`/api/agent/v1/requests/${id}?again=1`), {
      headers: { authorization: `Bearer ${token}` },
    }),
  )
})

t.test('refusals by the HTTP parser have the same shape', async (t) => {
  const head = `POST ${VERIFY} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n`
  const good = `${head}Idempotency-Key: ${randomUUID()}\r\nContent-Length: ${body.length}\r\n`
  const cases: [about: string, lines: string, status: number][] = [
    ['a valid request', `${good}\r\n${body}`, 402],
    ['64 KiB of headers', `${good}X-Long: ${'a'.repeat(65_536)}\r\n\r\n${body}`, 400],
    ['a payment of 64 KiB', `${good}PAYMENT-SIGNATURE: ${'A'.repeat(65_536)}\r\n\r\n${body}`, 400],
    ['three thousand headers', `${good}${'X-A: b\r\n'.repeat(3000)}\r\n${body}`, 400],
    ['a long target', good.replace(VERIFY, `${VERIFY}?${'a'.repeat(65_536)}`), 400],
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['a length that is not a number', `${head}Content-Length: many\r\n\r\n${body}`, 400],
    ['two lengths', `${good}Content-Length: 5\r\n\r\n${body}`, 400],
    ['length and chunks', `${good}Transfer-Encoding: chunked\r\n\r\n${body}`, 400],
    ['malformed chunks', `${head}Idempotency-Key: ${randomUUID()}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`, 400],
    ['an expectation that cannot be met', `${good}Expect: cakes\r\n\r\n${body}`, 400],
    ['a header without a name', `${good}: x\r\n\r\n${body}`, 400],
    ['two hosts', good.replace('Host: x\r\n', 'Host: x\r\nHost: y\r\n').concat('\r\n', body), 400],
    ['two equal hosts', good.replace('Host: x\r\n', 'Host: x\r\nhOST: x\r\n').concat('\r\n', body), 400],
    ['no host', good.replace('Host: x\r\n', '').concat('\r\n', body), 400],
  ]
  for (const [about, lines, status] of cases) {
    const response = await talk(lines)
    await expectNonCompleted(t, response, status, about)
  }
})

t.test('a content coding of the request is not decoded: a listed status', async (t) => {
  const response = await fetch(system.url(VERIFY), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-encoding': 'gzip', 'idempotency-key': randomUUID() },
    body: new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]),
  })
  t.ok([400, 415].includes(response.status), String(response.status))
  await expectNonCompleted(t, response, response.status)
})

t.test('an internal error: 503, retryable, without details', async (t) => {
  const { api } = system.service
  const key = randomUUID()
  const payment = await signPayment(termsOf(await system.ask({ key })))
  const add = api.admissions.add
  api.admissions.add = () => Promise.reject(new Error('relation "secret_table" does not exist'))
  for (const headers of [undefined, payment.headers]) {
    const response = await system.ask({ key: headers ? key : randomUUID(), headers })
    t.notMatch(await response.clone().text(), /secret_table/)
    const { error } = await expectNonCompleted(t, response, 503)
    t.equal(error.code, 'internal_error')
    t.equal(error.retryable, true)
  }
  api.admissions.add = () => {
    throw new TypeError("Cannot read properties of undefined (reading 'secret_table')")
  }
  await expectNonCompleted(t, await system.ask({ key, headers: payment.headers }), 503)
  api.admissions.add = add
  await expectCompleted(t, await system.ask({ key, headers: { ...payment.headers, prefer: 'wait=20' } }))
})

t.test('without its database: 503 on both routes, and 200 again with it', async (t) => {
  const done = await system.ask({ key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=20' } })
  const token = done.headers.get('x-service-recovery-token') ?? ''
  const { result, bytes } = await expectCompleted(t, done)
  // Another process, which has not cached the result.
  await using twin = await system.openTwin()
  const recover = () => system.recover(result.request_id, token, {}, twin)
  const ask = () => system.ask({ key: randomUUID(), at: twin })
  const { db } = twin.api
  twin.api.db = new Proxy(db, { get: () => () => Promise.reject(new Error('Connection terminated unexpectedly')) })
  for (const response of [await ask(), await recover()]) {
    t.notMatch(await response.clone().text(), /terminated/)
    t.equal((await expectNonCompleted(t, response, 503)).error.retryable, true)
  }
  twin.api.db = db
  await expectNonCompleted(t, await ask(), 402)
  t.equal((await expectCompleted(t, await recover())).bytes, bytes)
})
