// A web server on loopback that answers with bytes that a test writes, and keeps what crossed each connection: what it sent and received,
// without TLS.
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { makeCa, makeCertificate } from '../../server/fixture-tls.ts'

export const FIRST = 'first.test'
export const SECOND = 'second.test'
/** Stapled to every handshake. No test reads it, so it need not be a real response. */
export const STAPLE = Buffer.from('a stapled response')

export interface Exchange {
  received: Buffer
  sent: Buffer
}

export interface Origin extends AsyncDisposable {
  /** FIXTURE_HOSTS and FIXTURE_CA_FILE. */
  env: Record<string, string>
  port: number
  /** The parts of the answer by path, each written by itself. */
  answers: Map<string, readonly (string | Buffer)[]>
  /** Of each connection, in order. */
  exchanges: Exchange[]
}

export async function openOrigin(): Promise<Origin> {
  const ca = await makeCa()
  const leaf = await makeCertificate(ca, [FIRST, SECOND])
  const folder = await mkdtemp(join(tmpdir(), 'countersign-origin-'))
  await writeFile(join(folder, 'ca.pem'), ca.cert)
  const answers: Origin['answers'] = new Map()
  const exchanges: Exchange[] = []
  const server = createServer({ cert: leaf.cert + ca.cert, key: leaf.key }, (socket) => {
    const exchange: Exchange = { received: Buffer.alloc(0), sent: Buffer.alloc(0) }
    exchanges.push(exchange)
    socket.on('error', () => {})
    socket.on('data', async (data) => {
      exchange.received = Buffer.concat([exchange.received, data])
      if (!exchange.received.includes('\r\n\r\n')) return
      const path = exchange.received.toString('latin1').split(' ')[1] ?? ''
      for (const part of answers.get(path) ?? ['HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n']) {
        const bytes = Buffer.from(part)
        exchange.sent = Buffer.concat([exchange.sent, bytes])
        // Each part is sent before the next one is written.
        await new Promise((sent) => socket.write(bytes, sent))
      }
      socket.end()
    })
  })
  server.on('OCSPRequest', (_certificate, _issuer, answer) => answer(null, STAPLE))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    env: {
      FIXTURE_HOSTS: [FIRST, SECOND].map((host) => `${host}=127.0.0.1:${port}`).join(','),
      FIXTURE_CA_FILE: join(folder, 'ca.pem'),
    },
    port,
    answers,
    exchanges,
    async [Symbol.asyncDispose]() {
      server.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** An answer with a body in chunks of the given size. */
export function chunked(head: string, body: Buffer, size: number): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0; at < body.length; at += size) {
    const chunk = body.subarray(at, at + size)
    chunks.push(Buffer.concat([Buffer.from(`${chunk.length.toString(16)};note=kept\r\n`), chunk, Buffer.from('\r\n')]))
  }
  return [
    Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n`),
    ...chunks,
    Buffer.from('0\r\nX-Trailer: kept\r\n\r\n'),
  ]
}
