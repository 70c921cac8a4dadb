// Attacks by a server on the wire. Each script is one attack and must end with the given error, after at most the given
// number of bytes.
import type { TLSSocket } from 'node:tls'
import t from 'tap'
import { type FetchLimits, fetchSource } from '../../workers/retrieval/fetch.ts'
import { ok, openFixture, type Script, send } from '../outbound/scripted-server.ts'

const HEADERS = 65_536
const BODY = 4_194_304
const READ = 16_384 // One TLS record: what may have been read when the limit was noticed.
const FRAMING = 262_144

/**
 * Fetches from a server that answers with the script. Each attack has a server of its own: a connection of a fetch that gave
 * up early may be accepted after the fetch, and would count for the next attack.
 */
async function attack(script: Script, limits?: Partial<FetchLimits>) {
  await using fixture = await openFixture(script)
  const outcome = await fetchSource('https://page.test/', fixture.outbound, { limits }).then(
    (source) => ({ code: 'fetched', message: '', source }),
    (error) => ({ code: error.code ?? String(error), message: String(error.message), source: undefined }),
  )
  const bytes = fixture.sockets.reduce((sum, socket) => sum + socket.bytesRead, 0)
  return { ...outcome, bytes, connections: fixture.server.accepts }
}

/** Sends the same bytes until the other side closes the connection. */
const flood =
  (start: string, piece: string | Uint8Array): Script =>
  async (socket) => {
    if (!(await send(socket, start))) return
    while (await send(socket, piece));
  }

/** Sends the pieces, one each few milliseconds, for ever. */
const drip =
  (start: string, piece: string): Script =>
  (socket) => {
    socket.write(start)
    const timer = setInterval(() => socket.write(piece), 5)
    socket.on('close', () => clearInterval(timer))
  }

const answer =
  (bytes: string | Uint8Array): Script =>
  (socket) =>
    socket.end(bytes)
const a = (length: number) => 'a'.repeat(length)

/** A response whose header block is exactly so long. */
function headersOf(length: number): string {
  const rest = ok('X: \r\nContent-Length: 2\r\n').length
  return ok(`X: ${a(length - rest)}\r\nContent-Length: 2\r\n`, 'ok')
}

interface Row {
  attack: string
  script: Script
  code: string
  /** The most bytes that may be read from the wire. */
  bytes?: number
  limits?: Partial<FetchLimits>
  connections?: number
  /** In place of `connections`, where the server may not have noticed the connection by then. */
  connectionsAtMost?: number
  message?: RegExp
}

/** A row whose outcome its group decides. */
type Part = Omit<Row, 'code'>

const tooMuchHeader: Row[] = (
  [
    { attack: 'headers without end', script: flood(ok('').slice(0, -2), `x: ${a(1000)}\r\n`) },
    { attack: 'one header without end', script: flood('HTTP/1.1 200 OK\r\nX: ', a(10_000)) },
    { attack: 'header name without end', script: flood('HTTP/1.1 200 OK\r\n', a(10_000)) },
    { attack: '30,000 headers of nothing', script: answer(ok('a:\r\n'.repeat(30_000), 'hi')) },
    {
      attack: 'reason phrase of 300 KB',
      script: answer(`HTTP/1.1 200 ${a(300_000)}\r\nContent-Length: 2\r\n\r\nhi`),
    },
    { attack: 'big 103s', script: flood('', `HTTP/1.1 103 Early Hints\r\nX: ${a(60_000)}\r\n\r\n`) },
    { attack: 'small 103s', script: flood('', 'HTTP/1.1 103 Early Hints\r\n\r\n') },
    { attack: '102s', script: flood('', 'HTTP/1.1 102 Processing\r\n\r\n') },
    { attack: 'empty lines before the status', script: flood('', '\r\n'.repeat(500)) },
    {
      attack: 'empty lines, then headers of nothing',
      script: answer(`\r\n\r\n\r\n\r\n${ok('a:\r\n'.repeat(30_000), 'hi')}`),
    },
    { attack: 'a byte too many', script: answer(headersOf(HEADERS + 1)) },
    {
      attack: 'a byte too many, a 103 included',
      script: answer(
        `HTTP/1.1 103 Early Hints\r\n\r\n${headersOf(HEADERS + 1 - 'HTTP/1.1 103 Early Hints\r\n\r\n'.length)}`,
      ),
    },
  ] satisfies Part[]
).map((row) => ({ ...row, code: 'source_headers_too_large', bytes: HEADERS + 2 * READ }))

const tooMuchBody: Row[] = (
  [
    { attack: 'announced', script: answer(ok(`Content-Length: ${BODY + 1}\r\n`)), bytes: READ },
    {
      attack: 'announced beyond all numbers',
      script: answer(ok(`Content-Length: ${'9'.repeat(15)}\r\n`)),
      bytes: READ,
    },
    { attack: 'sent until the end', script: flood(ok(''), a(65_536)), bytes: BODY + HEADERS + FRAMING + READ },
    {
      attack: 'sent in chunks',
      script: flood(ok('Transfer-Encoding: chunked\r\n'), `10000\r\n${a(65_536)}\r\n`),
      bytes: BODY + HEADERS + FRAMING + READ,
    },
    {
      attack: 'chunk extensions',
      script: flood(ok('Transfer-Encoding: chunked\r\n'), `1;x=${a(16_000)}\r\na\r\n`),
      bytes: BODY + HEADERS + FRAMING + READ,
    },
    {
      attack: 'chunks of one octet',
      script: flood(ok('Transfer-Encoding: chunked\r\n'), '1\r\na\r\n'.repeat(2000)),
      bytes: BODY + HEADERS + FRAMING + READ,
    },
    { attack: 'one chunk extension without end', script: flood(ok('Transfer-Encoding: chunked\r\n', '1;'), a(65_536)) },
    { attack: 'a byte too many', script: answer(ok('', a(BODY + 1))) },
  ] satisfies Part[]
).map((row) => ({ ...row, attack: `body: ${row.attack}`, code: 'source_too_large' }))

const brief = { timeoutMs: 120, socketTimeoutMs: 5000 }
const nervous = { timeoutMs: 5000, socketTimeoutMs: 60 }

const slow: Row[] = (
  [
    { attack: 'silence', script: () => {}, limits: nervous },
    { attack: 'silence in the headers', script: (s) => s.write('HTTP/1.1 200 OK\r\nX'), limits: nervous },
    { attack: 'silence after the headers', script: (s) => s.write(ok('Content-Length: 5\r\n')), limits: nervous },
    { attack: 'silence in the body', script: (s) => s.write(ok('Content-Length: 5\r\n', 'he')), limits: nervous },
    { attack: 'silence after a 103', script: (s) => s.write('HTTP/1.1 103 Early Hints\r\n\r\n'), limits: nervous },
    { attack: 'drip of headers', script: drip('HTTP/1.1 200 OK\r\n', 'x'), limits: brief },
    { attack: 'drip of 103s', script: drip('', 'HTTP/1.1 103 Early Hints\r\n\r\n'), limits: brief },
    { attack: 'drip of body', script: drip(ok('Content-Length: 100000\r\n'), 'x'), limits: brief },
    { attack: 'drip of chunks', script: drip(ok('Transfer-Encoding: chunked\r\n'), '1\r\nx\r\n'), limits: brief },
    { attack: 'drip without end', script: drip(ok(''), 'x'), limits: brief },
    {
      attack: 'drip of a chunk extension',
      script: drip(ok('Transfer-Encoding: chunked\r\n', '1;'), 'x'),
      limits: brief,
    },
    { attack: 'silence until the timeout', script: () => {}, limits: { timeoutMs: 60, socketTimeoutMs: 5000 } },
  ] satisfies Part[]
).map((row) => ({
  ...row,
  code: 'source_timeout',
  bytes: READ,
  connectionsAtMost: 1,
  // On a busy machine the handshake may already be late.
  message: row.limits === nervous ? /stopped answering|does not answer/ : /not complete within 0\.\d+ seconds/,
}))

const chunked = (body: string) => answer(ok('Transfer-Encoding: chunked\r\n', body))
const malformed: Row[] = (
  [
    { attack: 'HTTP/0.9', script: answer('<html>hello</html>') },
    { attack: 'another protocol', script: answer('220 mail.example.com ESMTP\r\n') },
    { attack: 'HTTP/2 preface', script: answer('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n') },
    { attack: 'a request', script: answer('GET / HTTP/1.1\r\nHost: page.test\r\n\r\n') },
    { attack: 'bare line feeds', script: answer('HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 2\n\nhi') },
    { attack: 'bare carriage return in a header', script: answer(ok('X: a\rb\r\nContent-Length: 2\r\n', 'hi')) },
    { attack: 'NUL in a header', script: answer(ok('X: a\0b\r\nContent-Length: 2\r\n', 'hi')) },
    { attack: 'folded header', script: answer(ok('X: a\r\n b\r\nContent-Length: 2\r\n', 'hi')) },
    { attack: 'space before the colon', script: answer(ok('Content-Length : 2\r\n', 'hi')) },
    { attack: 'header without a name', script: answer(ok(': x\r\n', 'hi')) },
    { attack: 'header without a colon', script: answer(ok('nonsense\r\n', 'hi')) },
    {
      attack: 'Content-Length and chunked',
      script: answer(ok('Content-Length: 2\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n')),
    },
    { attack: 'two Content-Lengths', script: answer(ok('Content-Length: 2\r\nContent-Length: 3\r\n', 'hi!')) },
    { attack: 'two equal Content-Lengths', script: answer(ok('Content-Length: 2\r\nContent-Length: 2\r\n', 'hi')) },
    { attack: 'list of Content-Lengths', script: answer(ok('Content-Length: 2, 2\r\n', 'hi')) },
    { attack: 'negative Content-Length', script: answer(ok('Content-Length: -2\r\n', 'hi')) },
    { attack: 'hexadecimal Content-Length', script: answer(ok('Content-Length: 0x2\r\n', 'hi')) },
    { attack: 'overflowing Content-Length', script: answer(ok(`Content-Length: ${'9'.repeat(40)}\r\n`, 'hi')) },
    { attack: 'gzip as transfer coding', script: answer(ok('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n')) },
    { attack: 'identity as transfer coding', script: answer(ok('Transfer-Encoding: identity\r\n', 'hi')) },
    { attack: 'unknown transfer coding', script: answer(ok('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n')) },
    {
      attack: 'chunked twice',
      script: answer(ok('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n')),
    },
    { attack: 'two Content-Types', script: answer(ok('Content-Type: text/plain\r\nContent-Length: 2\r\n', 'hi')) },
    { attack: 'chunk size that is none', script: chunked('zz\r\nhi\r\n0\r\n\r\n') },
    { attack: 'chunk size without end', script: chunked(`${'f'.repeat(40)}\r\nhi`) },
    { attack: 'negative chunk size', script: chunked('-1\r\nhi\r\n0\r\n\r\n') },
    { attack: 'chunk longer than it says', script: chunked('2\r\nhello\r\n0\r\n\r\n') },
    { attack: '101 without being asked', script: answer('HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n') },
    {
      attack: '100 without being asked',
      script: answer(`HTTP/1.1 100 Continue\r\n\r\n${ok('Content-Length: 2\r\n', 'hi')}`),
    },
    { attack: 'status below 100', script: answer('HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n') },
    { attack: 'status of two digits', script: answer('HTTP/1.1 20 OK\r\n\r\n') },
    { attack: 'status of four digits', script: answer('HTTP/1.1 2000 OK\r\n\r\n') },
    { attack: 'status that is no number', script: answer('HTTP/1.1 abc OK\r\n\r\n') },
    { attack: 'HTTP/3.7', script: answer('HTTP/3.7 200 OK\r\nContent-Length: 2\r\n\r\nhi') },
  ] satisfies Part[]
).map((row) => ({ ...row, code: 'source_protocol_error', bytes: READ, connections: 1 }))

const framing: Row[] = [
  {
    attack: 'every octet in a record of its own',
    script: flood(ok(''), 'x'),
    code: 'source_protocol_error',
    message: /beside the data/,
    bytes: 20_000,
    limits: { timeoutMs: 5000 },
  },
]

const brokenOff =
  (start: string): Script =>
  async (socket) => {
    await send(socket, start)
    socket.end()
  }
const reset =
  (start: string): Script =>
  async (socket) => {
    await send(socket, start)
    rawSocket(socket).resetAndDestroy()
  }
/** Resets are made below TLS. */
function rawSocket(socket: TLSSocket) {
  return (socket as unknown as { _parent: { resetAndDestroy(): void } })._parent
}

const lost: Row[] = [
  // No byte of a response had arrived, so the fetch is tried once more.
  { attack: 'closes without a word', script: brokenOff(''), code: 'source_unreachable', connections: 2 },
  { attack: 'resets without a word', script: reset(''), code: 'source_unreachable', connections: 2 },
  { attack: 'closes in the status line', script: brokenOff('HTTP/1.1 2'), code: 'source_unreachable', connections: 1 },
  {
    attack: 'closes in the headers',
    script: brokenOff(ok('').slice(0, -2)),
    code: 'source_unreachable',
    connections: 1,
  },
  {
    attack: 'closes after a 103',
    script: brokenOff('HTTP/1.1 103 x\r\n\r\n'),
    code: 'source_unreachable',
    connections: 1,
  },
  {
    attack: 'closes before the octets announced',
    script: brokenOff(ok('Content-Length: 9\r\n', 'hi')),
    code: 'source_unreachable',
    connections: 1,
  },
  {
    attack: 'closes before the last chunk',
    script: brokenOff(ok('Transfer-Encoding: chunked\r\n', '2\r\nhi\r\n')),
    code: 'source_unreachable',
    connections: 1,
  },
]

for (const row of [...tooMuchHeader, ...tooMuchBody, ...slow, ...malformed, ...framing, ...lost])
  t.test(row.attack, async (t) => {
    const { code, bytes, connections, message } = await attack(row.script, row.limits)
    t.equal(code, row.code, message)
    t.ok(bytes <= (row.bytes ?? Number.POSITIVE_INFINITY), `${bytes} bytes read`)
    if (row.connections) t.equal(connections, row.connections, 'connections')
    if (row.connectionsAtMost) t.ok(connections <= row.connectionsAtMost, `${connections} connections`)
    if (row.message) t.match(message, row.message)
    t.notMatch(message, /127\.0\.0\.1/)
  })

t.test('what is just allowed', async (t) => {
  const body = new Uint8Array(BODY).fill(97)
  const rows: [string, Script, wireBytes: number][] = [
    ['65,536 bytes of headers', answer(headersOf(HEADERS)), 2],
    [
      '65,536 bytes of headers, a 103 included',
      answer(`HTTP/1.1 103 Hi\r\n\r\n${headersOf(HEADERS - 'HTTP/1.1 103 Hi\r\n\r\n'.length)}`),
      2,
    ],
    ['65,536 bytes of headers, byte by byte', (s) => bytewise(s, headersOf(HEADERS)), 2],
    ['4,194,304 octets announced', answer(Buffer.concat([Buffer.from(ok(`Content-Length: ${BODY}\r\n`)), body])), BODY],
    ['4,194,304 octets to the end', answer(Buffer.concat([Buffer.from(ok('')), body])), BODY],
    [
      '4,194,304 octets in chunks of a hundred',
      answer(ok('Transfer-Encoding: chunked\r\n', `${`64\r\n${a(100)}\r\n`.repeat(41_943)}4\r\naaaa\r\n0\r\n\r\n`)),
      BODY,
    ],
    ['trailers', answer(ok('Transfer-Encoding: chunked\r\n', `2\r\nhi\r\n0\r\nX: ${a(60_000)}\r\n\r\n`)), 2],
    ['more than was announced is not read', answer(ok('Content-Length: 2\r\n', 'hi, and another thing')), 2],
    ['nothing', answer(ok('Content-Length: 0\r\n')), 0],
    ['HTTP/1.0', answer('HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhi'), 2],
    ['empty lines before the status', answer(`\r\n\r\n${ok('Content-Length: 2\r\n', 'hi')}`), 2],
    [
      '103s before the answer',
      answer(`${'HTTP/1.1 103 Hi\r\nLink: </a>\r\n\r\n'.repeat(3)}${ok('Content-Length: 2\r\n', 'hi')}`),
      2,
    ],
  ]
  for (const [what, script, wireBytes] of rows) {
    const { code, source, message, connections } = await attack(script)
    t.equal(code, 'fetched', `${what} ${message}`)
    t.equal(source?.wireBytes, wireBytes, what)
    t.equal(source?.body.byteLength, wireBytes, what)
    t.equal(connections, 1, what)
  }
})

/** Each byte in a TLS record of its own would take minutes; every 64th boundary does for the scanner. */
function bytewise(socket: TLSSocket, text: string) {
  for (let at = 0; at < text.length; at += 64) socket.write(text.slice(at, at + 64))
  socket.end()
}

t.test('a body that only the close ends may have been cut short, which is said; a reset is noticed', async (t) => {
  const closed = await attack(brokenOff(ok('', 'half of it')))
  t.match(closed.source?.riskFlags, ['no_content_length'])
  const cut = await attack(reset(ok('', 'half of it')))
  t.equal(cut.code, 'source_unreachable')
  const whole = await attack(answer(ok('Content-Length: 2\r\n', 'hi')))
  t.same(whole.source?.riskFlags, [])
})

t.test('a second try may succeed', async (t) => {
  let tries = 0
  const flaky: Script = (socket) => (++tries === 1 ? socket.destroy() : socket.end(ok('Content-Length: 2\r\n', 'hi')))
  const { code, connections } = await attack(flaky)
  t.equal(code, 'fetched')
  t.equal(connections, 2)
})
