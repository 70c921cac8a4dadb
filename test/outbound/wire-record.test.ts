// The record of an exchange holds what crossed the connection, once, however the parser reads it.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import t from 'tap'
import { meterSocket } from '../../server/outbound/meter.ts'
import { recordSocket } from '../../server/outbound/wire-record.ts'
import { openFixture, send } from './scripted-server.ts'

const LIMITS = { headerBytes: 65_536, totalBytes: 1_000_000 }

t.test('bytes that a parser gives back and reads again are kept once, and what is refused is not kept', async (t) => {
  const body = randomBytes(50_000)
  await using fixture = await openFixture(async (socket) => {
    await send(socket, 'HTTP/1.1 200 OK\r\n\r\n')
    await send(socket, body)
    socket.end()
  })
  const { outbound } = fixture
  const signal = new AbortController().signal
  const destination = await outbound.resolve(new URL('https://page.test/'), signal)
  await using connection = await outbound.connect(destination, { signal, timeoutMs: 5000, keepShown: true })
  const { socket, shown } = connection
  t.equal(shown?.certificates.length, 1)
  t.equal(shown?.ocspResponse, null, 'the server staples none')
  const record = recordSocket(socket, LIMITS.totalBytes)
  const meter = meterSocket(socket, 'page.test', LIMITS, record)
  socket.write('GET / HTTP/1.1\r\n', 'latin1')
  socket.write(Buffer.from('Host: page.test\r\n\r\n'))
  const read: Buffer[] = []
  let returned = 0
  socket.on('readable', () => {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
      if (returned++ % 3 === 0 && chunk.length > 1) {
        socket.unshift(chunk.subarray(1))
        read.push(chunk.subarray(0, 1))
      } else read.push(chunk)
    }
  })
  await once(socket, 'end')
  const whole = Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), body])
  t.equal(Buffer.concat(read).equals(whole), true)
  t.equal(record.response().equals(whole), true)
  t.equal(record.request().toString(), 'GET / HTTP/1.1\r\nHost: page.test\r\n\r\n')
  t.equal(meter.headBytes, 19)
  t.equal(record.grown(), whole.length)
  t.equal(record.grown(), 0, 'counted once')
})

t.test('a connection that is not recorded asks for nothing more and shows nothing', async (t) => {
  await using fixture = await openFixture(() => {})
  const signal = new AbortController().signal
  const destination = await fixture.outbound.resolve(new URL('https://page.test/'), signal)
  await using connection = await fixture.outbound.connect(destination, { signal, timeoutMs: 5000 })
  t.equal(connection.shown, null)
})
