// `Prefer: wait=N` holds the answer until the work is done, at most N seconds.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { CALLER_LIMITS } from '../../server/accounts/tiers.ts'
import { expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { TOKEN } from '../mcp/paid-tool.ts'
import { openRawClient } from '../mcp/raw-client.ts'
import { holdPage } from '../site.ts'
import { PAGE, signPayment, startSystem, termsOf } from '../system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

/** A paid request whose page is held; the first answer is a 202. */
async function buyHeld(path: string) {
  const held = holdPage({ body: PAGE })
  system.site.pages.set(path, held.page)
  const body = { source_url: system.site.url(path), claim: 'It has three piers.' }
  const key = randomUUID()
  const { headers } = await signPayment(termsOf(await system.ask({ key, body })))
  const accepted = await system.ask({ key, body, headers })
  const { request_id: id } = (await accepted.json()) as { request_id: string }
  await held.reached
  return { key, body, headers, id, token: accepted.headers.get('x-service-recovery-token') ?? '', held }
}

t.test('POST and GET are held until it is done', async (t) => {
  const { key, body, headers, id, token, held } = await buyHeld('/held')
  const answers: string[] = []
  const wait = async (name: string, response: Promise<Response>) => {
    const answered = await response
    answers.push(name)
    return answered
  }
  const held1 = wait('post', system.ask({ key, body, headers: { ...headers, prefer: 'wait=20' } }))
  const held2 = wait('unsigned post', system.ask({ key, body, headers: { prefer: 'respond-async, wait=20' } }))
  const held3 = wait('get', system.recover(id, token, { prefer: 'wait=20' }))
  const now = await wait('now', system.recover(id, token))
  await expectNonCompleted(t, now, 202)
  t.same(answers, ['now'], 'a call without the preference is answered at once, the others wait')
  held.release()
  const bodies = new Set<string>()
  for (const response of await Promise.all([held1, held2, held3])) {
    t.equal(response.headers.get('preference-applied'), 'wait=20')
    bodies.add((await expectCompleted(t, response)).bytes)
  }
  t.equal(bodies.size, 1)
})

t.test('after N seconds the answer is 202', async (t) => {
  const { key, body, headers, id, token, held } = await buyHeld('/too-long')
  const began = performance.now()
  const [post, get] = await Promise.all([
    system.ask({ key, body, headers: { ...headers, prefer: 'wait=1' } }),
    system.recover(id, token, { prefer: 'wait=1' }),
  ])
  const took = performance.now() - began
  t.ok(took > 900 && took < 15_000, `${took} ms`)
  for (const response of [post, get]) {
    t.equal(response.headers.get('preference-applied'), 'wait=1')
    t.match(response.headers.get('retry-after'), /^[1-9][0-9]*$/)
    await expectNonCompleted(t, response, 202)
  }
  held.release()
  await expectCompleted(t, await system.recover(id, token, { prefer: 'wait=20' }))
})

t.test('a failure ends the wait too', async (t) => {
  const held = holdPage({ status: 404, body: '' })
  system.site.pages.set('/failing', held.page)
  const body = { source_url: system.site.url('/failing'), claim: 'It has three piers.' }
  const key = randomUUID()
  const { headers } = await signPayment(termsOf(await system.ask({ key, body })))
  const waiting = system.ask({ key, body, headers: { ...headers, prefer: 'wait=20' } })
  await held.reached
  held.release()
  await expectNonCompleted(t, await waiting, 422)
})

t.test('forms of the preference', async (t) => {
  const { id, token, held } = await buyHeld('/forms')
  held.release()
  await expectCompleted(t, await system.recover(id, token, { prefer: 'wait=20' }))
  const forms: [prefer: string, applied: RegExp | null][] = [
    ['wait=25', /^wait=25$/],
    ['wait=26', /^wait=25$/],
    ['wait=100', /^wait=25$/],
    ['wait=99999999999999999999', /^wait=25$/],
    ['Wait=5', /^wait=5$/i],
    ['wait="5"', /^wait=("5"|5)$/],
    ['wait = 5', /^wait=5$/],
    ['respond-async, wait=5', /^wait=5$/],
    ['wait=5; foo=bar', /^wait=5$/],
    ['handling=lenient;wait=9', null],
    ['wait', null],
    ['wait=', null],
    ['wait=-1', null],
    ['wait=soon', null],
    ['wait=1.5', null],
    ['await=5', null],
    ['respond-async', null],
    ['', null],
  ]
  for (const [prefer, applied] of forms) {
    const response = await system.recover(id, token, { prefer })
    const header = response.headers.get('preference-applied')
    if (applied) t.match(header, applied, prefer)
    else t.equal(header, null, `${prefer} is not applied`)
    await expectCompleted(t, response)
  }
})

t.test('a call that gets no seat is answered at once, without Preference-Applied', async (t) => {
  const { key, body, headers, id, token, held } = await buyHeld('/crowded')
  await using twin = await system.openTwin()
  const seats = Array.from({ length: CALLER_LIMITS.waiting_calls }, () => twin.api.seats.take('127.0.0.1'))
  t.ok(seats.every(Boolean))
  for (const answer of [
    await system.recover(id, token, { prefer: 'wait=25' }, twin),
    await system.ask({ key, body, headers: { ...headers, prefer: 'wait=25' }, at: twin }),
  ]) {
    t.equal(answer.headers.get('preference-applied'), null)
    await expectNonCompleted(t, answer, 202)
  }
  const { call } = openRawClient(new URL('/mcp', twin.address).href)
  const asked = await call('service_verify_source', {}, { meta: { [TOKEN]: token } })
  t.match(asked.structuredContent, { status: 'pending' }, 'the paid tool does not wait without a seat')
  seats[0]?.[Symbol.dispose]()
  const { take } = twin.api.seats
  const taken = Promise.withResolvers<void>()
  twin.api.seats.take = (holder) => {
    taken.resolve()
    return take(holder)
  }
  const waiting = system.recover(id, token, { prefer: 'wait=25' }, twin)
  await taken.promise
  t.equal(take('127.0.0.1'), null, 'the last seat is taken')
  held.release()
  const answered = await waiting
  t.equal(answered.headers.get('preference-applied'), 'wait=25')
  await expectCompleted(t, answered)
  t.ok(take('127.0.0.1'), 'and freed again')
})

t.test('a refusal does not wait, and waiting calls are answered when the service drains', async (t) => {
  const { key, body, headers, id, token, held } = await buyHeld('/drained')
  await using twin = await system.openTwin()
  const waiting = system.recover(id, token, { prefer: 'wait=25' }, twin)
  // This answer comes from the same process, so the call before it is held already.
  await (await fetch(new URL('/healthz', twin.address))).text()
  twin.api.drain()
  await expectNonCompleted(t, await waiting, 202)
  const began = performance.now()
  const wrong = await system.recover(id, `${token}x`, { prefer: 'wait=25' })
  await expectNonCompleted(t, wrong, 404)
  const conflict = await system.ask({ key, body: { ...body, claim: 'x' }, headers: { ...headers, prefer: 'wait=25' } })
  await expectNonCompleted(t, conflict, 409)
  await expectNonCompleted(t, await system.ask({ key: randomUUID(), headers: { prefer: 'wait=25' } }), 402)
  t.ok(performance.now() - began < 20_000)
  held.release()
  await expectCompleted(t, await system.recover(id, token, { prefer: 'wait=20' }))
})

t.test('a service that closes also closes the connections of the waiting calls it answered', async (t) => {
  const { id, token, held } = await buyHeld('/closing')
  const twin = await system.openTwin()
  const { hostname, port } = new URL(twin.address)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(
    `GET /api/agent/v1/requests/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nPrefer: wait=25\r\n\r\n`,
  )
  await (await fetch(new URL('/healthz', twin.address))).text()
  // A limit, not a wait: the stop has 30 s in all, and a client that keeps its connection must not use them up.
  const closed = once(socket, 'close', { signal: AbortSignal.timeout(10_000) }).then(
    () => true,
    () => false,
  )
  const answer = once(socket, 'data')
  const closing = twin[Symbol.asyncDispose]()
  t.match(String((await answer)[0]), /^HTTP\/1\.1 202 /)
  t.equal(await closed, true, 'the connection is closed by the service')
  socket.destroy()
  await closing
  held.release()
  await expectCompleted(t, await system.recover(id, token, { prefer: 'wait=20' }))
})
