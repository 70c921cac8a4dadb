// One POST: receivers that stall or flood, and receivers whose address changes between attempts.
import t, { type Test } from 'tap'
import { postAlert } from '../../server/alerts/post.ts'
import { makeCa, makeCertificate } from '../../server/fixture-tls.ts'
import { openOutbound } from '../../server/outbound/connection.ts'
import { noFixtures } from '../../server/outbound/url-policy.ts'
import { openNameServer, type Zone } from '../outbound/name-server.ts'
import { openFixture, openServer, type Script, send } from '../outbound/scripted-server.ts'

const message = (url: string) => ({
  url,
  headers: { 'webhook-id': 'wh_0' },
  body: Buffer.from('{"type":"watchdog.test"}'),
})

async function setUp(t: Test, script: Script) {
  const fixture = await openFixture(script, ['hook.test'])
  t.teardown(() => fixture[Symbol.asyncDispose]())
  return {
    ...fixture,
    post: (timeoutMs?: number) => postAlert(message('https://hook.test/in?x=1'), fixture.outbound, timeoutMs),
  }
}

t.test('the request', async (t) => {
  const { post, server } = await setUp(t, (socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'))
  t.same(await post(), { status: 204, retryAfterSeconds: null, disable: false })
  t.match(server.requests, [{ sni: 'hook.test', head: /^POST \/in\?x=1 HTTP\/1.1\r\nhost: hook.test\r\n/ }])
  t.match(server.requests[0]?.head, /content-length: 24\r\n/)
})

t.test('a receiver that stalls is given up after the timeout', async (t) => {
  const drip = (socket: Parameters<Script>[0], text: string) => {
    const dripping = setInterval(() => socket.write(text), 20)
    socket.once('close', () => clearInterval(dripping))
  }
  for (const [name, script] of Object.entries<Script>({
    'before its answer': () => {},
    'inside its head': (socket) => drip(socket, 'x'),
    'with headers that never end': (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      drip(socket, 'a: b\r\n')
    },
    'with answers that are none yet': (socket) => drip(socket, 'HTTP/1.1 102 Processing\r\n\r\n'),
  }))
    await t.test(name, async (t) => {
      const { post, sockets } = await setUp(t, script)
      await t.rejects(post(300), { code: /source_(timeout|protocol_error)/ })
      t.ok(sockets.every((socket) => socket.destroyed))
    })
  await t.test('after the headers, which are an answer', async (t) => {
    const { post, sockets } = await setUp(t, (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
      drip(socket, '1\r\nx\r\n')
    })
    t.match(await post(300), { status: 200 })
    t.ok(sockets.every((socket) => socket.destroyed))
  })
})

t.test('ten megabytes are not read', async (t) => {
  const bytes = 10 * 1024 * 1024
  const floods: Record<string, { script: Script; ends: unknown }> = {
    'of body': {
      script: async (socket) => {
        await send(socket, `HTTP/1.1 200 OK\r\ncontent-length: ${bytes}\r\n\r\n`)
        await send(socket, Buffer.alloc(bytes, 'x'))
      },
      ends: { status: 200 },
    },
    'of headers': {
      script: async (socket) => {
        await send(socket, 'HTTP/1.1 200 OK\r\n')
        await send(socket, `a: ${'b'.repeat(1000)}\r\n`.repeat(bytes / 1000))
      },
      ends: { code: 'source_headers_too_large' },
    },
    'of answers that are none yet': {
      script: (socket) => send(socket, 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(bytes / 27)),
      ends: { code: 'source_headers_too_large' },
    },
  }
  for (const [name, { script, ends }] of Object.entries(floods))
    await t.test(name, async (t) => {
      const { post, sockets } = await setUp(t, script)
      t.match(await post().catch((error) => error), ends)
      const read = sockets.reduce((sum, socket) => sum + socket.bytesRead, 0)
      t.ok(read < 200_000, `${read} bytes`)
      t.ok(sockets.every((socket) => socket.destroyed))
    })
})

t.test('the address is judged at every attempt', async (t) => {
  const ca = await makeCa()
  const server = await openServer(
    (socket) => socket.end('HTTP/1.1 500 x\r\n\r\n'),
    await makeCertificate(ca, ['*.example.com']),
  )
  const PUBLIC = '93.184.216.34'
  const zone: Zone = {
    'hook.example.com': (before) => ({ A: [before === 0 ? PUBLIC : '127.0.0.1'] }),
    'mixed.example.com': { A: [PUBLIC, '10.0.0.1'] },
  }
  const names = await openNameServer(zone)
  // The loopback address, if it were dialled, would lead to the server of this test.
  const seams = { nameServers: [names.address], dial: new Map([[PUBLIC, '127.0.0.1']]), port: server.port, ca: ca.cert }
  const outbound = openOutbound({ fixtures: noFixtures, seams })
  t.teardown(async () => {
    await outbound[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
    await names[Symbol.asyncDispose]()
  })
  t.match(await postAlert(message('https://hook.example.com/'), outbound), { status: 500 })
  for (const url of ['https://hook.example.com/', 'https://mixed.example.com/', 'https://127.0.0.1/', 'https://[::1]/'])
    await t.rejects(postAlert(message(url), outbound), { code: 'source_blocked' }, url)
  for (const url of ['http://hook.example.com/', 'https://hook.example.com:8443/', 'https://me@hook.example.com/'])
    await t.rejects(postAlert(message(url), outbound), { code: /source_blocked|invalid_request/ }, url)
  await t.rejects(postAlert(message('https://nowhere.example.com/'), outbound), { code: 'source_dns_failed' })
  t.equal(server.accepts, 1)
})
