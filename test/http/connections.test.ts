// Connections of a web process are bounded: one address cannot take them all, new callers are served, and nothing stays open without
// end. All sockets are real; callers have addresses of 127.0.0.0/8.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { queryObjects } from 'node:v8'
import t, { type Test } from 'tap'
import { type ConnectionLimits, openServer } from '../../server/app.ts'
import { boundConnections } from '../../server/http/connections.ts'
import { openLog } from '../../server/telemetry.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import { until } from '../until.ts'
import { nextRequest } from './next-request.ts'

const MOST = 8
const HONEST = '127.0.0.3'
const HOSTILE = '127.0.0.2'
const GET = 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'
const HALF_HEADERS = 'GET /healthz HTTP/1.1\r\nhost:'
const HALF_BODY =
  'POST /v1/register HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 60\r\n\r\n{'

const harness = await openAccountHarness({ PAYMENT_MODE: 'offline' })
t.teardown(() => harness[Symbol.asyncDispose]())

/** Another listener of the same process. */
async function openListener(t: Test, limits: ConnectionLimits) {
  const logged: Record<string, unknown>[] = []
  const log = openLog('warn', { write: (line) => logged.push(JSON.parse(line)) })
  const server = await openServer({ ...harness.api, log }, limits)
  t.teardown(() => server[Symbol.asyncDispose]())
  return { logged, open: openerOf(t, Number(new URL(server.address).port)) }
}

/** Connects from an address. Connections are accepted in the order in which they are opened. */
function openerOf(t: Test, port: number) {
  return async (localAddress: string): Promise<Caller> => {
    const socket = connect({ host: '127.0.0.1', port, localAddress, allowHalfOpen: true })
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    const caller = new Caller(socket)
    await once(socket, 'connect')
    return caller
  }
}

class Caller {
  readonly closed: Promise<unknown>
  readonly socket: Socket
  text = ''

  constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding('utf8').on('data', (text) => {
      this.text += text
    })
    this.closed = new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
  }

  get isOpen() {
    return !this.socket.destroyed && !this.socket.readableEnded
  }

  /** The status of the answer to what is sent; undefined where the connection is closed instead. */
  async ask(text = GET): Promise<string | undefined> {
    this.text = ''
    const answered = new Promise<unknown>((resolve) => this.socket.once('data', resolve))
    this.socket.write(text)
    await Promise.race([answered, this.closed])
    return this.text.match(/^HTTP\/1\.1 (\d+)/)?.[1]
  }
}

/** Waits until so many of the callers have been closed. */
async function untilClosed(callers: Caller[], count: number) {
  const reached = Promise.withResolvers<void>()
  let closed = 0
  for (const caller of callers) caller.closed.then(() => ++closed === count && reached.resolve())
  await reached.promise
}

for (const [what, send] of Object.entries({
  'opens them': '',
  'sends headers slowly': HALF_HEADERS,
  'sends bodies slowly': HALF_BODY,
  'asks once on each': GET,
}))
  t.test(`an address that ${what} on every connection loses its own, and no other`, async (t) => {
    const { open, logged } = await openListener(t, { maxConnections: MOST })
    const idle = await open(HONEST)
    t.equal(await idle.ask(), '200')
    const hostile: Caller[] = []
    for (let n = 0; n < 5 * MOST; n++) {
      const caller = await open(HOSTILE)
      hostile.push(caller)
      if (send === GET) await caller.ask()
      else caller.socket.write(send)
    }
    await untilClosed(hostile, 4 * MOST + 1)
    t.equal(await (await open('127.0.0.4')).ask(), '200', 'a new caller is served')
    await untilClosed(hostile, 4 * MOST + 2)
    t.ok(idle.isOpen)
    t.equal(await idle.ask(), '200', 'an idle connection of another address stays')
    t.equal(hostile.filter(({ isOpen }) => isOpen).length, MOST - 2)
    t.same(
      logged.map(({ event, connections }) => [event, connections]),
      [['connections_full', MOST]],
      'logged once',
    )
  })

t.test('where all addresses have as many, the one that was idle for longest makes room', async (t) => {
  const { open } = await openListener(t, { maxConnections: 4 })
  const callers: Caller[] = []
  for (let n = 0; n < 4; n++) callers.push(await open(`127.0.1.${n}`))
  // The first one opened has called last.
  for (const caller of callers.toReversed()) t.equal(await caller.ask(), '200')
  t.equal(await (await open('127.0.1.5')).ask(), '200')
  await callers[3]?.closed
  t.same(
    callers.map(({ isOpen }) => isOpen),
    [true, true, true, false],
  )
})

t.test('a burst of connections leaves no more than the bound', async (t) => {
  const { open } = await openListener(t, { maxConnections: MOST })
  const callers = await Promise.all(Array.from({ length: 200 }, () => open(HOSTILE)))
  await untilClosed(callers, 200 - MOST)
  t.equal(await (await open(HONEST)).ask(), '200')
})

t.test('who waits for an answer keeps the connection, until the answer is not read', async (t) => {
  const waiting: ServerResponse[] = []
  const asked = new EventTarget()
  const clock = { now: 0 }
  const server = createServer((_request, response) => {
    waiting.push(response)
    asked.dispatchEvent(new Event('request'))
  })
  boundConnections(server, openLog('silent'), { maxConnections: 2, now: () => clock.now })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  t.teardown(() => server.closeAllConnections())
  const open = openerOf(t, (server.address() as AddressInfo).port)
  const callers = [await open(HOSTILE), await open(HOSTILE)]
  for (const { socket } of callers) {
    socket.write(GET)
    await once(asked, 'request')
    clock.now += 1000
  }
  const late = await open(HONEST)
  await late.closed
  t.ok(
    callers.every(({ isOpen }) => isOpen),
    'the newest goes where all others are served',
  )
  const answers = callers.map(({ socket }) => once(socket, 'data'))
  clock.now = 60_500
  const next = await open(HONEST)
  await callers[0]?.closed
  t.ok(next.isOpen, 'an answer that takes longer than calls may wait holds no place')
  waiting[1]?.end('done')
  await answers[1]
  t.match(callers[1]?.text, /^HTTP\/1.1 200 /)
})

t.test('a caller who sends no request, or never its end, is closed', async (t) => {
  const { open } = await openListener(t, { headersTimeoutMs: 200, timeoutCheckMs: 50 })
  const callers = [await open(HOSTILE), await open(HOSTILE)]
  callers[0]?.socket.write(HALF_HEADERS)
  const reset = callers.map(({ socket }) => new Promise((resolve) => socket.once('close', resolve)))
  await Promise.all(callers.map(({ closed }) => closed))
  // They end no half of their own, so that only a reset closes them.
  const dripping = setInterval(() => {
    for (const { socket } of callers) socket.write(' ')
  }, 100)
  t.teardown(() => clearInterval(dripping))
  await Promise.all(reset)
})

t.test('a connection that is silent while its request is under way is closed', async (t) => {
  const { open } = await openListener(t, { silenceTimeoutMs: 200 })
  const caller = await open(HOSTILE)
  t.equal(await caller.ask(HALF_BODY), undefined)
})

const chunk = (data: string) => `${data.length.toString(16)}\r\n${data}\r\n`
const IN_CHUNKS = 'host: localhost\r\ntransfer-encoding: chunked\r\n'
const AS_JSON = 'content-type: application/json\r\n'

t.test('of a body that arrives octet by octet, no piece is kept', async (t) => {
  const { open } = await openListener(t, {})
  const before = Number(queryObjects(Uint8Array))
  const stripe = `${AS_JSON}stripe-signature: t=1,v1=00\r\n`
  const paths = {
    '/api/agent/v1/verify-source': AS_JSON,
    '/mcp': AS_JSON,
    '/try': AS_JSON,
    '/v1/stripe/webhook': stripe,
  }
  for (const [path, headers] of Object.entries(paths)) {
    const begun = nextRequest()
    const caller = await open(HOSTILE)
    const sent = `POST ${path} HTTP/1.1\r\n${IN_CHUNKS}${headers}\r\n${chunk(' ').repeat(10_000)}`
    caller.socket.write(sent)
    const { socket } = await begun
    await until(() => socket.bytesRead === sent.length)
    t.equal(caller.text, '', `${path} waits for the rest`)
  }
  const kept = Number(queryObjects(Uint8Array)) - before
  t.ok(kept < 1000, `${kept} pieces are kept`)
})

t.test('a body in pieces of every length is read as it was sent', async (t) => {
  const { open } = await openListener(t, {})
  const { key } = await harness.register()
  const pieces = [1, 4095, 1, 1, 4096, 4097, 2, 20_000, 3].map((length, at) => String(at).repeat(length))
  const begun = nextRequest()
  const caller = await open(HONEST)
  caller.socket.write(`PUT /v1/journal/pieces HTTP/1.1\r\n${IN_CHUNKS}authorization: Bearer ${key}\r\n`)
  caller.socket.write('content-type: application/octet-stream\r\n\r\n')
  await begun
  t.equal(await caller.ask(`${pieces.map(chunk).join('')}${chunk('')}`), '201')
  t.match(caller.text, createHash('sha256').update(pieces.join('')).digest('hex'))
})

t.test('of headers that are too many none is left out: the address that a proxy adds at the end counts', async (t) => {
  const { open } = await openListener(t, {})
  for (const last of ['host: y', 'x-forwarded-for: 192.0.2.1', 'content-length: 0'])
    t.equal(
      await (await open(HONEST)).ask(`GET /healthz HTTP/1.1\r\nhost: x\r\n${'a:\r\n'.repeat(2000)}${last}\r\n\r\n`),
      '400',
    )
})

t.test('an idle connection stays longer than routers keep theirs', async (t) => {
  const { open } = await openListener(t, { silenceTimeoutMs: 200 })
  const caller = await open(HONEST)
  t.equal(await caller.ask(), '200')
  const [, seconds] = caller.text.match(/keep-alive: timeout=(\d+)/i) ?? []
  t.ok(Number(seconds) > 90, `${seconds} s`)
})
