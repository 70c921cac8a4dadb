// The journal over HTTP: exact bytes, conditional writes, and a limit that holds under concurrent writes.
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import t from 'tap'
import { type Account, type Answer, openAccountHarness } from '../accounts/harness.ts'

const harness = await openAccountHarness()
t.teardown(() => harness[Symbol.asyncDispose]())

const tagOf = (bytes: Buffer) => `"${createHash('sha256').update(bytes).digest('hex')}"`
const put = (account: Account, slot: string, bytes: Buffer, headers: Record<string, string> = {}) =>
  account.call('PUT', `/v1/journal/${slot}`, { body: bytes, headers })
const countBy = (answers: Answer[]) =>
  Object.fromEntries(
    Object.entries(Object.groupBy(answers, ({ status }) => status)).map(([status, group]) => [status, group?.length]),
  )

t.test('a read returns the written bytes, from 0 to 65,536 of them', async (t) => {
  const account = await harness.register()
  let status = 201
  for (const size of [0, 1, 1000, 65_536]) {
    const bytes = randomBytes(size)
    const written = await put(account, 'notes', bytes)
    t.equal(written.status, status)
    status = 200
    t.same(written.body, {
      slot: 'notes',
      bytes: size,
      sha256: tagOf(bytes).slice(1, -1),
      updated_at: written.body.updated_at,
    })
    t.ok(Math.abs(Date.parse(written.body.updated_at) - Date.now()) < 60_000)
    t.equal(written.headers.get('etag'), tagOf(bytes))
    const read = await account.call('GET', '/v1/journal/notes')
    t.equal(read.status, 200)
    t.ok(read.bytes.equals(bytes))
    t.equal(read.headers.get('content-type'), 'application/octet-stream')
    t.equal(read.headers.get('content-length'), String(size))
    t.equal(read.headers.get('etag'), tagOf(bytes))
    t.same((await account.call('GET', '/v1/journal')).body, { slots: [written.body] })
  }
  const head = await account.call('HEAD', '/v1/journal/notes')
  t.equal(head.status, 200)
  t.equal(head.headers.get('content-length'), '65536')
})

t.test('one byte more is refused, with and without Content-Length', async (t) => {
  const account = await harness.register()
  const bytes = randomBytes(65_537)
  const announced = await put(account, 'big', bytes)
  t.equal(announced.status, 413)
  t.equal(announced.body.error.code, 'body_too_large')
  t.match(announced.body.error.message, /65536/)

  const url = new URL('/v1/journal/big', harness.api.baseUrl)
  const headers = { authorization: `Bearer ${account.key}`, 'content-type': 'application/octet-stream' }
  const chunked = request(url, { method: 'PUT', headers })
  for (let at = 0; at < bytes.length; at += 8192) chunked.write(bytes.subarray(at, at + 8192))
  chunked.end()
  const [response] = await once(chunked, 'response')
  t.equal(response.statusCode, 413)
  response.resume()
  t.equal((await account.call('GET', '/v1/journal/big')).status, 404)
})

t.test('only application/octet-stream is accepted, and stored unchanged', async (t) => {
  const account = await harness.register()
  for (const type of ['application/json', 'text/plain', 'application/octet', '']) {
    const answer = await put(account, 'typed', Buffer.from('{}'), { 'content-type': type })
    t.equal(answer.status, 415, type)
    t.match(answer.body.error, { code: 'unsupported_media_type', message: /application\/octet-stream/ })
  }
  t.equal((await account.call('PUT', '/v1/journal/typed')).status, 415)
  const parameter = { 'content-type': 'application/octet-stream; charset=utf-8' }
  t.equal((await put(account, 'typed', Buffer.from('{'), parameter)).status, 201)
  t.equal((await account.call('GET', '/v1/journal/typed')).bytes.toString(), '{')
})

t.test('names: 1 to 128 letters, digits, dots, underscores, hyphens; case-sensitive', async (t) => {
  const account = await harness.register({ tier: 'dev' })
  for (const slot of ['a', 'A', '0', '-', '_', '...', 'a.b-c_d', 'x'.repeat(128)])
    t.equal((await put(account, slot, Buffer.from(slot))).status, 201, slot)
  t.equal((await account.call('GET', '/v1/journal/A')).bytes.toString(), 'A')
  const { slots } = (await account.call('GET', '/v1/journal')).body
  t.same(
    slots.map((one: { slot: string }) => one.slot),
    ['-', '...', '0', 'A', '_', 'a', 'a.b-c_d', 'x'.repeat(128)],
  )
  for (const slot of ['x'.repeat(129), 'x'.repeat(5000), 'a%20b', 'a%2Fb', '%00', '%C3%A9', 'a:b', 'a+b', 'a~b'])
    for (const method of ['GET', 'DELETE'])
      t.equal((await account.call(method, `/v1/journal/${slot}`)).status, 400, slot)
  t.equal((await put(account, 'a%20b', Buffer.alloc(1))).status, 400)
})

t.test('a removed slot does not exist', async (t) => {
  const account = await harness.register()
  await put(account, 'gone', Buffer.from('x'))
  const removed = await account.call('DELETE', '/v1/journal/gone')
  t.equal(removed.status, 204)
  t.equal(removed.bytes.length, 0)
  for (const method of ['DELETE', 'GET', 'HEAD'])
    t.equal((await account.call(method, '/v1/journal/gone')).status, 404, method)
  t.same((await account.call('GET', '/v1/journal')).body, { slots: [] })
  t.equal((await put(account, 'gone', Buffer.from('y'))).status, 201)
})

t.test('If-Match and If-None-Match', async (t) => {
  const account = await harness.register()
  const one = Buffer.from('one')
  const [same, other, weak] = [tagOf(one), tagOf(Buffer.from('another')), `W/${tagOf(one)}`]
  const path = '/v1/journal/c'
  const ask = async (method: string, headers: Record<string, string>, expected: number) => {
    const body = method === 'PUT' ? one : undefined
    const answer = await account.call(method, path, { body, headers })
    t.equal(answer.status, expected, `${method} ${JSON.stringify(headers)}`)
    if (expected === 412) t.equal(answer.body.error.code, 'precondition_failed')
    return answer
  }
  // The slot does not exist yet.
  await ask('PUT', { 'if-match': '*' }, 412)
  await ask('PUT', { 'if-match': same }, 412)
  await ask('GET', { 'if-match': same }, 404)
  await ask('DELETE', { 'if-none-match': '*' }, 404)
  await ask('PUT', { 'if-none-match': '*' }, 201)
  // The slot exists.
  await ask('PUT', { 'if-none-match': '*' }, 412)
  await ask('PUT', { 'if-none-match': same }, 412)
  await ask('PUT', { 'if-none-match': weak }, 412)
  await ask('PUT', { 'if-none-match': `${other}, ${same}` }, 412)
  await ask('PUT', { 'if-none-match': other }, 200)
  await ask('PUT', { 'if-match': other }, 412)
  await ask('PUT', { 'if-match': weak }, 412)
  await ask('PUT', { 'if-match': same, 'if-none-match': '*' }, 412)
  await ask('PUT', { 'if-match': same }, 200)
  await ask('PUT', { 'if-match': '*' }, 200)
  await ask('PUT', { 'if-match': `${other} ,${same}` }, 200)

  const unchanged = await ask('GET', { 'if-none-match': same }, 304)
  t.equal(unchanged.bytes.length, 0)
  t.equal(unchanged.headers.get('etag'), same)
  t.notOk(unchanged.headers.has('content-length'))
  await ask('GET', { 'if-none-match': weak }, 304)
  await ask('GET', { 'if-none-match': '*' }, 304)
  t.ok((await ask('GET', { 'if-none-match': other }, 200)).bytes.equals(one))
  await ask('GET', { 'if-match': same }, 200)
  await ask('GET', { 'if-match': '*' }, 200)
  await ask('GET', { 'if-match': other }, 412)
  await ask('GET', { 'if-match': other, 'if-none-match': same }, 412)

  for (const malformed of ['abc', '"abc', '', `${same} ${same}`, `${same}x`, '*, "a"'])
    for (const header of ['if-match', 'if-none-match'])
      for (const method of ['PUT', 'GET', 'DELETE']) await ask(method, { [header]: malformed }, 400)

  await ask('DELETE', { 'if-match': other }, 412)
  await ask('DELETE', { 'if-none-match': '*' }, 412)
  await ask('DELETE', { 'if-match': same }, 204)
})

t.test('the free tier has four slots; replacing is allowed, and a removed slot does not count', async (t) => {
  const account = await harness.register()
  for (const slot of ['a', 'b', 'c', 'd']) t.equal((await put(account, slot, Buffer.from('1'))).status, 201)
  const fifth = await put(account, 'e', Buffer.from('1'))
  t.equal(fifth.status, 403)
  t.match(fifth.body.error, { code: 'tier_limit', message: /journal_slots.*free tier has 4/, retryable: false })
  t.equal((await put(account, 'd', Buffer.from('2'))).status, 200)
  t.match((await account.call('GET', '/v1/usage')).body.used, { journal_slots: 4 })
  t.equal((await account.call('DELETE', '/v1/journal/b')).status, 204)
  t.equal((await put(account, 'e', Buffer.from('1'))).status, 201)
})

t.test('thirty concurrent new slots through two processes: exactly four succeed', async (t) => {
  await using other = await harness.openApiProcess()
  const account = await harness.register()
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, n) =>
      (n % 2 ? harness : other).call('PUT', `/v1/journal/s${n}`, { key: account.key, body: Buffer.from([n]) }),
    ),
  )
  t.same(countBy(answers), { 201: 4, 403: 26 })
  t.equal((await account.call('GET', '/v1/journal')).body.slots.length, 4)
})

t.test(
  'twenty concurrent writes of one slot: one creates it, and one of those with the same ETag replaces it',
  async (t) => {
    await using other = await harness.openApiProcess()
    const account = await harness.register()
    const race = (slot: string, first: number, headers: Record<string, string> = {}) =>
      Promise.all(
        Array.from({ length: 20 }, (_, n) => {
          const ask = { key: account.key, body: Buffer.from([first + n]), headers }
          return (n % 2 ? harness : other).call('PUT', `/v1/journal/${slot}`, ask)
        }),
      )
    t.same(countBy(await race('once', 0, { 'if-none-match': '*' })), { 201: 1, 412: 19 })
    t.same(countBy(await race('again', 0)), { 200: 19, 201: 1 })
    const { headers } = await account.call('GET', '/v1/journal/once')
    t.same(countBy(await race('once', 100, { 'if-match': headers.get('etag') ?? '' })), { 200: 1, 412: 19 })
  },
)

t.test('concurrent writes and removals never exceed the limit', async (t) => {
  const account = await harness.register()
  const tasks = Array.from({ length: 40 }, (_, n) => {
    const path = `/v1/journal/s${n % 6}`
    return n % 3 === 0 ? account.call('DELETE', path) : account.call('PUT', path, { body: Buffer.from([n]) })
  })
  const answers = await Promise.all(tasks)
  t.same(
    answers.map((answer) => answer.status).filter((status) => ![200, 201, 204, 403, 404].includes(status)),
    [],
  )
  const { slots } = (await account.call('GET', '/v1/journal')).body
  t.ok(slots.length <= 4, `${slots.length} slots`)
  t.equal((await account.call('GET', '/v1/usage')).body.used.journal_slots, slots.length)
})

t.test('slots of one name in two accounts are independent', async (t) => {
  const [ours, theirs] = [await harness.register(), await harness.register()]
  await put(ours, 'shared', Buffer.from('ours'))
  t.equal((await put(theirs, 'shared', Buffer.from('theirs'))).status, 201)
  await theirs.call('DELETE', '/v1/journal/shared')
  t.equal((await ours.call('GET', '/v1/journal/shared')).bytes.toString(), 'ours')
})
