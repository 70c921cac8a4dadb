// Outbound connections: what resolve and connect accept, refuse, check and clean up.
import { once } from 'node:events'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import type { TlsOptions } from 'node:tls'
import t, { type Test } from 'tap'
import { type Certificate, makeCa, makeCertificate } from '../../server/fixture-tls.ts'
import { type OutboundOptions, openOutbound } from '../../server/outbound/connection.ts'
import { outboundFailure } from '../../server/outbound/failures.ts'
import { noFixtures } from '../../server/outbound/url-policy.ts'
import { openNameServer, type Zone } from './name-server.ts'
import { ok, openServer } from './scripted-server.ts'

const forever = new AbortController().signal
const patient = { signal: forever, timeoutMs: 5000 }
const PUBLIC = '93.184.216.34'
const ca = await makeCa()
const good = await makeCertificate(ca, ['good.example.com', '*.wild.example.com', '1.1.1.1', '2606:4700:4700::1111'])

/** A TLS server, a name server whose zone leads to it, and an Outbound that trusts its CA. */
async function setUp(
  t: Test,
  tls: TlsOptions = good,
  options: { zone?: Zone; seams?: object } & Partial<OutboundOptions> = {},
) {
  const server = await openServer((socket) => socket.end(ok('Content-Length: 2\r\n', 'hi')), tls)
  const { zone = { 'good.example.com': { A: [PUBLIC] } }, seams, ...others } = options
  const names = await openNameServer(zone)
  const dial = new Map([PUBLIC, '1.1.1.1', '2606:4700:4700::1111'].map((address) => [address, '127.0.0.1']))
  const outbound = openOutbound({
    fixtures: noFixtures,
    ...others,
    seams: { nameServers: [names.address], dial, port: server.port, ca: ca.cert, ...seams },
  })
  t.teardown(async () => {
    await outbound[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
    await names[Symbol.asyncDispose]()
  })
  const connect = async (url: string) => outbound.connect(await outbound.resolve(new URL(url), forever), patient)
  return { server, names, outbound, connect }
}

t.test('a verified connection describes itself', async (t) => {
  const { connect, server } = await setUp(t)
  await using connection = await connect('https://good.example.com/')
  t.equal(connection.tls.protocol, 'TLSv1.3')
  t.match(connection.tls.cipher, /^TLS_AES_/)
  t.match(connection.tls.fingerprint256, /^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)
  t.ok(connection.tls.validTo > new Date())
  t.equal(connection.address, '127.0.0.1')
  const response = await connection.buildClient().request({ method: 'GET', path: '/x' })
  t.equal(await response.body.text(), 'hi')
  t.match(server.requests, [{ sni: 'good.example.com', head: /^GET \/x HTTP\/1.1\r\nhost: good.example.com\r\n/ }])
})

t.test('a connection serves one request', async (t) => {
  const { connect, server } = await setUp(t)
  await using connection = await connect('https://good.example.com/')
  const client = connection.buildClient()
  await (await client.request({ method: 'GET', path: '/' })).body.dump()
  await t.rejects(client.request({ method: 'GET', path: '/' }), /one request only/)
  t.equal(server.accepts, 1)
})

t.test('no session is resumed', async (t) => {
  const { connect } = await setUp(t)
  for (let i = 0; i < 3; i++) {
    await using connection = await connect('https://good.example.com/')
    t.equal(connection.socket.isSessionReused(), false)
    // TLS 1.3 sends its tickets with the first data.
    await (await connection.buildClient().request({ method: 'GET', path: '/' })).body.dump()
  }
})

t.test(
  'a public literal is reached without DNS and without SNI, its certificate checked for the address',
  async (t) => {
    const { connect, server, names } = await setUp(t)
    for (const url of ['https://1.1.1.1/', 'https://0x01010101/', 'https://[2606:4700:4700::1111]/']) {
      await using connection = await connect(url)
      await (await connection.buildClient().request({ method: 'GET', path: '/' })).body.dump()
    }
    t.match(server.requests, [
      { sni: false, head: /host: 1.1.1.1\r\n/ },
      { sni: false, head: /host: 1.1.1.1\r\n/ },
      { sni: false, head: /host: \[2606:4700:4700::1111\]\r\n/ },
    ])
    t.same(names.questions, ['ipv4only.arpa AAAA'], 'only whether this network has NAT64')
    await t.rejects(connect(`https://${PUBLIC}/`), { code: 'source_tls_invalid' }, 'another address than certified')
  },
)

t.test('certificates and handshakes', async (t) => {
  const day = 86_400_000
  const from = (days: number) => new Date(Date.now() + days * day)
  const host: [string] = ['good.example.com']
  const rsaCa = await makeCa({ rsaBits: 2048 })
  const rsa = await makeCertificate(rsaCa, host, { rsaBits: 2048 })
  const intermediate = await makeCa({ parent: ca })
  const leaf = await makeCertificate(intermediate, host)
  const weak = { ciphers: 'DEFAULT@SECLEVEL=0' }
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1' } as const
  const rows: [what: string, certificate: TlsOptions, reason: RegExp | null, trusted?: Certificate][] = [
    ['good', await makeCertificate(ca, host), null],
    ['good, by an intermediate that is sent', { ...leaf, cert: leaf.cert + intermediate.cert }, null],
    ['good wildcard', await makeCertificate(ca, ['*.example.com']), null],
    ['good, TLS 1.2', { ...good, maxVersion: 'TLSv1.2' }, null],
    ['good, RSA', rsa, null, rsaCa],
    ['another host', await makeCertificate(ca, ['other.example.com']), /ERR_TLS_CERT_ALTNAME_INVALID/],
    ['wildcard of another level', await makeCertificate(ca, ['*.com']), /ERR_TLS_CERT_ALTNAME_INVALID/],
    ['wildcard alone', await makeCertificate(ca, ['*']), /ERR_TLS_CERT_ALTNAME_INVALID/],
    [
      'common name without SAN',
      await makeCertificate(ca, host, { commonNameOnly: true }),
      /ERR_TLS_CERT_ALTNAME_INVALID/,
    ],
    [
      'unknown CA',
      await makeCertificate(await makeCa(), host),
      /UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_SIGNATURE_FAILURE/,
    ],
    ['self-signed', await makeCertificate(undefined, host), /DEPTH_ZERO_SELF_SIGNED_CERT/],
    ['missing intermediate', leaf, /UNABLE_TO_VERIFY_LEAF_SIGNATURE/],
    ['expired', await makeCertificate(ca, host, { notBefore: from(-9), notAfter: from(-1) }), /CERT_HAS_EXPIRED/],
    ['not valid yet', await makeCertificate(ca, host, { notBefore: from(1), notAfter: from(9) }), /CERT_NOT_YET_VALID/],
    ['for clients only', await makeCertificate(ca, host, { usage: 'client' }), /INVALID_PURPOSE/],
    [
      'signed with SHA-1',
      { ...(await makeCertificate(ca, host, { hash: 'sha1' })), ...weak },
      /certificate .* not valid/,
    ],
    [
      'RSA 1024',
      { ...(await makeCertificate(rsaCa, host, { rsaBits: 1024 })), ...weak },
      /certificate .* not valid/,
      rsaCa,
    ],
    ['TLS 1.1', { ...good, ...weak, ...old }, /ERR_SSL/],
    [
      'a key exchange in a group of its choice',
      { ...rsa, dhparam: 'auto', ciphers: 'kDHE', maxVersion: 'TLSv1.2' },
      /ERR_SSL/,
      rsaCa,
    ],
    ['no encryption', { ...good, ciphers: 'eNULL@SECLEVEL=0', maxVersion: 'TLSv1.2' }, /ERR_SSL/],
  ]
  for (const [what, certificate, reason, trusted = ca] of rows) {
    const { connect, server } = await setUp(t, certificate, { seams: { ca: trusted.cert } })
    if (reason) {
      await t.rejects(connect('https://good.example.com/'), { code: 'source_tls_invalid', message: reason }, what)
      t.equal(server.requests.length, 0, `${what}: nothing was sent`)
    } else {
      await using connection = await connect('https://good.example.com/')
      t.ok(connection.socket.authorized, what)
    }
  }
})

t.test('no second handshake is made when the first was verified', async (t) => {
  const { connect, server } = await setUp(t, { ...good, maxVersion: 'TLSv1.2' })
  server.script = (socket) => socket.renegotiate({ rejectUnauthorized: false }, () => socket.end(ok('', 'hi')))
  await using connection = await connect('https://good.example.com/')
  const error = await connection
    .buildClient()
    .request({ method: 'GET', path: '/' })
    .catch((thrown) => thrown)
  const failure = outboundFailure(error, 'good.example.com', connection.socket)
  t.match(failure, { code: 'source_tls_invalid' })
})

t.test('without a CA of the tests, the certificate must verify by the public CAs', async (t) => {
  const { connect } = await setUp(t, good, { seams: { ca: undefined } })
  await t.rejects(connect('https://good.example.com/'), { code: 'source_tls_invalid' })
})

/** A server that speaks TCP and no TLS. */
async function openTcp(t: Test, onConnection: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    onConnection(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

t.test('a server that does not speak TLS', async (t) => {
  const rows: [string, (socket: Socket) => void, object][] = [
    ['plain HTTP', (s) => s.end('HTTP/1.1 400 Bad Request\r\n\r\n'), { code: 'source_tls_invalid' }],
    ['closes at once', (s) => s.end(), { code: 'source_unreachable' }],
    ['resets', (s) => s.resetAndDestroy(), { code: 'source_unreachable' }],
    ['resets in the handshake', (s) => s.once('data', () => s.resetAndDestroy()), { code: 'source_unreachable' }],
    ['says nothing', () => {}, { code: 'source_timeout' }],
  ]
  for (const [what, onConnection, expected] of rows) {
    const port = await openTcp(t, onConnection)
    const { outbound } = await setUp(t, good, { seams: { port } })
    const destination = await outbound.resolve(new URL('https://good.example.com/'), forever)
    const timeoutMs = what === 'says nothing' ? 50 : 5000
    const error = await outbound.connect(destination, { signal: forever, timeoutMs }).catch((thrown) => thrown)
    t.match(error, expected, what)
    t.notMatch(error.message, /127\.0|93\.184/, `${what}: no address in the message`)
  }
})

t.test('of several addresses one that answers is enough; without one the host is unreachable', async (t) => {
  const zone = { 'good.example.com': { A: ['1.1.1.1', PUBLIC] } }
  const dial = new Map([
    ['1.1.1.1', '127.0.0.9'],
    [PUBLIC, '127.0.0.1'],
  ])
  const { connect } = await setUp(t, good, { zone, seams: { dial } })
  await using connection = await connect('https://good.example.com/')
  t.equal(connection.address, '127.0.0.1')
  const closed = new Map([...dial.keys()].map((address) => [address, '127.0.0.9']))
  const { connect: fail } = await setUp(t, good, { zone, seams: { dial: closed } })
  await t.rejects(fail('https://good.example.com/'), { code: 'source_unreachable' })
})

t.test('a peer at another address than the one dialled is refused', async (t) => {
  // Linux connects 0.0.0.0 to loopback: the socket reports an address that was not dialled.
  const { connect, server } = await setUp(t, good, { seams: { dial: new Map([[PUBLIC, '0.0.0.0']]) } })
  await t.rejects(connect('https://good.example.com/'), { code: 'source_blocked', message: /another address/ })
  t.equal(server.accepts, 1, 'the connection was made')
  t.equal(server.requests.length, 0, 'and nothing sent over it')
})

t.test('addresses of this machine and addresses in the NAT64 prefix are refused', async (t) => {
  const own = await setUp(t, good, { ownAddresses: () => ['2606:4700:0:0::1', PUBLIC] })
  await t.rejects(own.connect('https://good.example.com/'), { code: 'source_blocked', cause: /of this machine/ })
  const zone = {
    'good.example.com': { A: [PUBLIC], AAAA: ['2a00:64::5db8:d822'] },
    'ipv4only.arpa': { AAAA: ['2a00:64::192.0.0.170'] },
  }
  const nat64 = await setUp(t, good, { zone })
  await t.rejects(nat64.connect('https://good.example.com/'), { code: 'source_blocked', cause: /NAT64/ })
  t.equal(own.server.accepts + nat64.server.accepts, 0)
})

t.test('a refusal names the requested host and not its addresses', async (t) => {
  const { outbound } = await setUp(t, good, { zone: { 'good.example.com': { A: ['10.20.30.40'] } } })
  const error = await outbound.resolve(new URL('https://good.example.com/'), forever).catch((thrown) => thrown)
  t.equal(error.code, 'source_blocked')
  t.equal(error.message, '"good.example.com" has an address that is not public.')
  t.match(error.cause.message, /10\.20\.30\.40 is private use/, 'but the log may know')
})

t.test('all answers are judged, sixteen are kept', async (t) => {
  const many = Array.from({ length: 20 }, (_, i) => `93.184.216.${i + 1}`)
  const zone = {
    'many.example.com': { A: many },
    'late.example.com': { A: [...many, '127.0.0.1'] },
  }
  const { outbound } = await setUp(t, good, { zone })
  const { addresses } = await outbound.resolve(new URL('https://many.example.com/'), forever)
  t.equal(addresses.length, 16)
  await t.rejects(outbound.resolve(new URL('https://late.example.com/'), forever), { code: 'source_blocked' })
})

t.test('a URL is judged by resolve, too', async (t) => {
  const { outbound, names } = await setUp(t)
  for (const url of ['https://127.0.0.1/', 'https://[::1]/', 'https://localhost/', 'https://good.example.com:8443/'])
    await t.rejects(outbound.resolve(new URL(url), forever), { code: 'source_blocked' }, url)
  await t.rejects(outbound.resolve(new URL('http://good.example.com/'), forever), { code: 'invalid_request' })
  t.same(names.questions, [])
})

t.test('only a destination that the same Outbound has resolved can be dialled', async (t) => {
  const { outbound, server } = await setUp(t)
  const destination = await outbound.resolve(new URL('https://good.example.com/'), forever)
  t.throws(() => Object.assign(destination, { addresses: ['127.0.0.1'] }), TypeError)
  t.throws(() => (destination.addresses as string[]).push('127.0.0.1'), TypeError)
  const own = { ...destination, addresses: ['127.0.0.1'] }
  await t.rejects(outbound.connect(own, patient), /was not resolved here/)
  const { outbound: other } = await setUp(t)
  await t.rejects(other.connect(destination, patient), /was not resolved here/)
  t.equal(server.accepts, 0)
})

t.test('a fixture host is reached at its configured address, with its CA and its name', async (t) => {
  const fixtureCa = await makeCa()
  const { server, names } = await setUp(t, await makeCertificate(fixtureCa, ['page.test', 'good.example.com']))
  const fixtures = { hosts: new Map([['page.test', { address: '127.0.0.1', port: server.port }]]), ca: fixtureCa.cert }
  const seams = { nameServers: [names.address], dial: new Map([[PUBLIC, '127.0.0.1']]), port: server.port }
  await using outbound = openOutbound({ fixtures, seams })
  const destination = await outbound.resolve(new URL('https://page.test/x'), forever)
  t.match(destination, { fixture: true, hostname: 'page.test', addresses: ['127.0.0.1'], port: server.port })
  await using connection = await outbound.connect(destination, patient)
  await (await connection.buildClient().request({ method: 'GET', path: '/x' })).body.dump()
  t.match(server.requests, [{ sni: 'page.test', head: /host: page.test\r\n/ }])
  t.same(names.questions, [])

  const other = await outbound.resolve(new URL('https://good.example.com/'), forever)
  t.equal(other.fixture, false)
  await t.rejects(
    outbound.connect(other, patient),
    { code: 'source_tls_invalid' },
    'the CA is trusted for fixture hosts only',
  )
})

t.test('a fixture host needs an address', async (t) => {
  const hosts = new Map([['page.test', { address: 'localhost', port: 1 }]])
  t.throws(() => openOutbound({ fixtures: { hosts, ca: undefined } }), /not an IP address/)
})

t.test('disposing ends connections and attempts under way', async (t) => {
  const port = await openTcp(t, () => {})
  const waiting = await setUp(t, good, { seams: { port } })
  const destination = await waiting.outbound.resolve(new URL('https://good.example.com/'), forever)
  const connecting = waiting.outbound.connect(destination, patient)
  const { connect, outbound } = await setUp(t)
  const { socket } = await connect('https://good.example.com/')
  await waiting.outbound[Symbol.asyncDispose]()
  await outbound[Symbol.asyncDispose]()
  await t.rejects(connecting, /connections were closed/)
  await t.rejects(waiting.outbound.connect(destination, patient), /connections were closed/)
  if (!socket.closed) await once(socket, 'close')
  t.ok(socket.destroyed)
})

t.test('an abort ends connecting, with its own reason', async (t) => {
  const port = await openTcp(t, () => {})
  const { outbound } = await setUp(t, good, { seams: { port } })
  const destination = await outbound.resolve(new URL('https://good.example.com/'), forever)
  const controller = new AbortController()
  const connecting = outbound.connect(destination, { signal: controller.signal, timeoutMs: 5000 })
  const reason = new Error('enough')
  controller.abort(reason)
  await t.rejects(connecting, reason)
})
