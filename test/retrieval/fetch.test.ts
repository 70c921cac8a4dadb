import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { limits as limitsSchema, riskFlags, source as sourceSchema } from '../../server/interface/result.ts'
import { openOutbound } from '../../server/outbound/connection.ts'
import { noFixtures } from '../../server/outbound/url-policy.ts'
import { type FetchOptions, fetchSource } from '../../workers/retrieval/fetch.ts'
import { retrievalRiskFlags } from '../../workers/retrieval/risk-flags.ts'
import { findSignature } from '../../workers/retrieval/signatures.ts'
import { openNameServer } from '../outbound/name-server.ts'
import { ok, openFixture, type Script } from '../outbound/scripted-server.ts'

const fixture = await openFixture(() => {}, ['page.test', 'www.page.test', 'xn--bcher-kva.test'])
t.teardown(() => fixture[Symbol.asyncDispose]())

const fetchPage = (script: Script, url = 'https://page.test/', options: FetchOptions = {}) => {
  fixture.server.script = script
  fixture.server.requests.length = 0
  return fetchSource(url, fixture.outbound, options)
}

/** Answers 200 with the headers and a body of known length, and nothing else. */
const page =
  (headers: string, body: string | Uint8Array = 'hello'): Script =>
  (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`)
    socket.end(body)
  }
const HTML = 'Content-Type: text/html\r\n'

t.test('a page as it comes', async (t) => {
  const now = new Date('2030-01-02T03:04:05.678Z')
  const script = page('Content-Type: Text/HTML; charset=UTF-8\r\n', '<p>hello</p>')
  const fetched = await fetchPage(script, 'https://page.test/a/../b?q=%41#part', { now: () => now })
  t.equal(fetched.finalUrl, 'https://page.test/b?q=%41', 'normalized, without the fragment')
  t.equal(fetched.hostname, 'page.test')
  t.same(fetched.redirects, [])
  t.equal(fetched.contentType, 'Text/HTML; charset=UTF-8', 'as sent')
  t.equal(fetched.contentEncoding, 'identity')
  t.equal(Buffer.from(fetched.body).toString(), '<p>hello</p>')
  t.equal(fetched.wireBytes, 12)
  t.equal(fetched.tlsVerified, true)
  t.equal(fetched.fixture, true)
  t.equal(fetched.checkedAt, now)
  t.same(fetched.limits, {
    fixture: true,
    max_decoded_bytes: 8_388_608,
    max_header_bytes: 65_536,
    max_redirects: 5,
    max_text_chars: 100_000,
    max_wire_bytes: 4_194_304,
    socket_timeout_seconds: 15,
    timeout_seconds: 60,
  })
  t.match(fetched.hops, [{ url: 'https://page.test/b?q=%41', address: '127.0.0.1', tls: { protocol: 'TLSv1.3' } }])
})

t.test('the request asks for what is read, says who asks, and nothing else', async (t) => {
  await fetchPage(page(HTML), 'https://page.test/x?y')
  t.match(fixture.server.requests, [{ sni: 'page.test', alpn: false }])
  t.same(fixture.server.requests[0]?.head.split('\r\n'), [
    'GET /x?y HTTP/1.1',
    'host: page.test',
    'connection: close',
    'accept: text/html, text/plain;q=0.9',
    'accept-encoding: gzip, br',
    'user-agent: Countersign-Source-Verification/1.0',
    '',
    '',
  ])
})

t.test('the body can be transferred to a thread', async (t) => {
  const { body } = await fetchPage(page(HTML))
  t.equal(body.byteOffset, 0)
  t.equal(body.buffer.byteLength, 5)
  t.equal(body.buffer.resizable, false)
  const copy = structuredClone(body, { transfer: [body.buffer] })
  t.equal(Buffer.from(copy).toString(), 'hello')
  t.equal(body.byteLength, 0)
})

t.test('limits in force, other than the usual', async (t) => {
  const limits = { timeoutMs: 2500, socketTimeoutMs: 750, redirects: 1, headerBytes: 1000, wireBytes: 5 }
  const fetched = await fetchPage(page(HTML), undefined, { limits })
  t.match(fetched.limits, {
    max_header_bytes: 1000,
    max_redirects: 1,
    max_wire_bytes: 5,
    socket_timeout_seconds: '0.750',
    timeout_seconds: '2.500',
  })
  t.same(limitsSchema.parse(fetched.limits), fetched.limits)
  await t.rejects(fetchPage(page(HTML, 'hello!'), undefined, { limits }), { code: 'source_too_large' })
})

t.test('status', async (t) => {
  for (const status of [
    201, 202, 203, 204, 205, 206, 226, 300, 304, 305, 306, 400, 401, 403, 404, 410, 429, 500, 503, 999,
  ]) {
    const script: Script = (s) => s.end(`HTTP/1.1 ${status} x\r\n${HTML}Location: /x\r\nContent-Length: 0\r\n\r\n`)
    const expected = { code: 'source_http_status', message: `The source answered with status ${status}.` }
    await t.rejects(fetchPage(script), expected, String(status))
  }
})

t.test('content types', async (t) => {
  const read = [
    'text/html',
    'text/plain',
    'TEXT/HTML',
    'Text/Plain',
    'text/html;charset=x',
    'text/html ; charset=x',
    'text/html;',
  ]
  for (const type of read) {
    const fetched = await fetchPage(page(`Content-Type: ${type}\r\n`))
    t.equal(fetched.contentType, type)
    t.ok(sourceSchema.shape.content_type.safeParse(fetched.contentType).success, `${type} fits the interface`)
  }
  const refused = [
    ...[
      'application/pdf',
      'application/json',
      'application/xhtml+xml',
      'image/png',
      'text/xml',
      'text/htmlx',
      'text/css',
    ],
    ...[
      'text/html, text/plain',
      'text',
      '',
      'html',
      'text/html charset=x',
      'xtext/html',
      '*/*',
      'text / html',
      '"text/html"',
    ],
    `text/html;${'a'.repeat(32_768)}`,
  ]
  for (const type of refused)
    await t.rejects(
      fetchPage(page(`Content-Type: ${type}\r\n`)),
      { code: 'source_unsupported_type' },
      type.slice(0, 40),
    )
  await t.rejects(fetchPage(page('')), { code: 'source_unsupported_type', message: /no Content-Type/ })
  const odd = await fetchPage(page('Content-Type: \xff\x80"a\tb\r\n')).catch((error) => error)
  t.match(odd.message, /^The source is "[\x20-\x7e]+"\. Only/, 'what was met, in plain characters')
})

t.test('content codings: one, known, and left as it is', async (t) => {
  const zipped = gzipSync('hello')
  const codings = {
    gzip: 'gzip',
    GZip: 'gzip',
    'x-gzip': 'gzip',
    br: 'br',
    BR: 'br',
    identity: 'identity',
    '': 'identity',
  }
  for (const [sent, understood] of Object.entries(codings)) {
    const body = understood === 'gzip' ? zipped : 'hello'
    const fetched = await fetchPage(page(`${HTML}Content-Encoding: ${sent}\r\n`, body))
    t.equal(fetched.contentEncoding, understood, sent)
    t.same(Buffer.from(fetched.body), Buffer.from(body), 'still coded')
  }
  const refused = [
    'deflate',
    'zstd',
    'compress',
    'gzip, gzip',
    'gzip, br',
    'identity, gzip',
    'gzip,',
    ',',
    'gzip;q=1',
    'aes128gcm',
  ]
  for (const coding of refused)
    await t.rejects(
      fetchPage(page(`${HTML}Content-Encoding: ${coding}\r\n`)),
      { code: 'source_encoding_invalid' },
      coding,
    )
  const twice = `${HTML}Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n`
  await t.rejects(fetchPage(page(twice)), { code: 'source_encoding_invalid' }, 'two headers')
})

t.test('formats that are no text are refused by their first bytes', async (t) => {
  const bodies: [string, Uint8Array][] = [
    ['PDF', Buffer.from('%PDF-1.7\n')],
    ['PNG', Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1')],
    ['JPEG', Buffer.from('\xff\xd8\xff\xe0\0\x10JFIF', 'latin1')],
    ['GIF', Buffer.from('GIF89a\x01\0\x01\0', 'latin1')],
    ['WebP', Buffer.from('RIFF\x24\0\0\0WEBPVP8 ', 'latin1')],
    ['ISO media', Buffer.from('\0\0\0\x20ftypisom', 'latin1')],
    ['ZIP', Buffer.from('PK\x03\x04\x14\0', 'latin1')],
    ['gzip', gzipSync('<p>hello')],
    ['ELF', Buffer.from('\x7fELF\x02\x01', 'latin1')],
    ['WebAssembly', Buffer.from('\0asm\x01\0\0\0', 'latin1')],
  ]
  for (const [format, body] of bodies) {
    t.equal(findSignature(body), format)
    await t.rejects(
      fetchPage(page(HTML, body)),
      { code: 'source_unsupported_type', message: new RegExp(format) },
      format,
    )
    const coded = await fetchPage(page(`${HTML}Content-Encoding: br\r\n`, body))
    t.equal(coded.wireBytes, body.byteLength, 'a coded body is judged when decoded')
  }
  const texts = [
    '',
    'P',
    'PK is a film',
    'GIF89 is a format',
    'RIFF: a short story',
    'BZh9 is not',
    '%PDF',
    '\ufeffhello',
    'Rar!',
  ]
  for (const text of texts) t.equal(findSignature(Buffer.from(text)), null, JSON.stringify(text))
  t.equal(findSignature(Buffer.from('\ufeffhello', 'utf16le')), null, 'UTF-16')
})

t.test('risk flags', async (t) => {
  const raised = async (script: Script, url?: string, options?: FetchOptions) =>
    (await fetchPage(script, url, options)).riskFlags
  t.same(await raised(page(HTML)), [])
  t.same(await raised(page(HTML), 'https://xn--bcher-kva.test/'), ['internationalized_host'])
  t.same(await raised((s) => s.end(ok('', 'hello'))), ['no_content_length'])
  t.same(await raised((s) => s.end(ok('Transfer-Encoding: chunked\r\n', '0\r\n\r\n'))), [])
  t.same(await raised(page(`${HTML}Refresh: 0;url=https://page.test/x\r\n`)), ['refresh_header'])
  t.same(await raised(page(`${HTML}Content-Disposition: Attachment; filename=x\r\n`)), ['attachment'])
  t.same(await raised(page(`${HTML}Content-Disposition: inline; filename=attachment\r\n`)), [])
  // The certificate is good for thirty days.
  const inHours = (hours: number) => ({ now: () => new Date(Date.now() + hours * 3_600_000) })
  t.same(await raised(page(HTML), undefined, inHours(30 * 24 - 49)), [])
  t.same(await raised(page(HTML), undefined, inHours(30 * 24 - 47)), ['certificate_near_expiry'])
  const away: Script = (socket, request) =>
    request.includes('host: page.test')
      ? socket.end('HTTP/1.1 302 x\r\nLocation: https://www.page.test/\r\n\r\n')
      : page(HTML)(socket, request)
  t.same(await raised(away), ['cross_host_redirect'])
  t.ok(riskFlags.safeParse(Object.keys(retrievalRiskFlags)).success, 'all names fit the interface')
})

t.test('an abort ends the fetch at any point, with its own reason', async (t) => {
  const before = new AbortController()
  before.abort(new Error('before'))
  await t.rejects(fetchPage(page(HTML), undefined, { signal: before.signal }), /^before$|before/)
  t.same(fixture.server.requests, [])
  const points: Record<string, string> = {
    'in the headers': 'HTTP/1.1 200',
    'in the body': ok('Content-Length: 9\r\n', 'hel'),
  }
  for (const [point, bytes] of Object.entries(points)) {
    const controller = new AbortController()
    const reason = new Error(point)
    const script: Script = (socket) => socket.write(bytes, () => controller.abort(reason))
    await t.rejects(fetchPage(script, undefined, { signal: controller.signal }), reason)
  }
})

t.test('one deadline over DNS, handshakes and hops', async (t) => {
  const limits = { timeoutMs: 250, socketTimeoutMs: 5000 }
  const late = { code: 'source_timeout', message: 'The source was not complete within 0.25 seconds.' }

  // The third page never answers; the deadline passes when it is asked for.
  const opened: number[] = []
  const passed = new AbortController()
  const openDeadline = (milliseconds: number) => {
    opened.push(milliseconds)
    return { signal: passed.signal, [Symbol.dispose]: () => {} }
  }
  const redirects: Script = (socket, request) => {
    const hop = Number(/^GET \/(\d*)/.exec(request)?.[1])
    if (hop === 2) passed.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
    else socket.end(`HTTP/1.1 302 x\r\nLocation: /${hop + 1}\r\n\r\n`)
  }
  await t.rejects(fetchPage(redirects, undefined, { limits, openDeadline }), late)
  t.equal(fixture.server.requests.length, 3)
  t.same(opened, [250], 'one for all hops')

  await using names = await openNameServer({
    'silent.example.com': { silent: true },
    'deaf.example.com': { A: ['1.1.1.1'] },
  })
  const deaf = createServer().listen(0, '127.0.0.1')
  await once(deaf, 'listening')
  t.teardown(() => deaf.close())
  const { port } = deaf.address() as AddressInfo
  const seams = { nameServers: [names.address], dial: new Map([['1.1.1.1', '127.0.0.1']]), port }
  await using outbound = openOutbound({ fixtures: noFixtures, seams })
  for (const host of ['silent', 'deaf'])
    await t.rejects(fetchSource(`https://${host}.example.com/`, outbound, { limits }), late, host)
  const impatient = { limits: { timeoutMs: 5000, socketTimeoutMs: 50 } }
  const unheard = { code: 'source_timeout', message: '"deaf.example.com" does not answer.' }
  await t.rejects(fetchSource('https://deaf.example.com/', outbound, impatient), unheard)
})

t.test('what is no URL is an invalid request, what may not be contacted is blocked', async (t) => {
  await t.rejects(fetchPage(page(HTML), 'http://page.test/'), { code: 'invalid_request' })
  await t.rejects(fetchPage(page(HTML), 'https://127.0.0.1/'), { code: 'source_blocked' })
  await t.rejects(fetchPage(page(HTML), 'https://unknown.test/'), { code: 'source_blocked' })
  t.same(fixture.server.requests, [])
})
