// A TLS server on loopback. A test writes the bytes of each answer; the server records the requests.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import { makeCa, makeCertificate } from '../../server/fixture-tls.ts'
import { type Outbound, openOutbound } from '../../server/outbound/connection.ts'

/** Writes the response. @param request the head of the request as received */
export type Script = (socket: TLSSocket, request: string) => unknown

export interface ScriptedServer extends AsyncDisposable {
  readonly port: number
  /** TCP connections accepted. */
  readonly accepts: number
  /** Per request: the SNI name, the ALPN protocol and the head. */
  readonly requests: { sni: string | false; alpn: string | false; head: string }[]
  script: Script
}

export async function openServer(script: Script, tls: TlsOptions, at = { host: '127.0.0.1', port: 0 }) {
  const sockets = new Set<TLSSocket>()
  const seen: ScriptedServer['requests'] = []
  let accepts = 0
  const server = createServer(tls, (socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)).on('error', () => {}))
    socket.once('data', (data) => {
      const sni = (socket as TLSSocket & { servername: string | false }).servername
      seen.push({ sni, alpn: socket.alpnProtocol ?? false, head: data.toString('latin1') })
      void opened.script(socket, data.toString('latin1'))
    })
  })
  server.on('connection', () => accepts++)
  server.on('tlsClientError', () => {})
  server.listen(at.port, at.host)
  await once(server, 'listening')
  const opened: ScriptedServer = {
    port: (server.address() as AddressInfo).port,
    get accepts() {
      return accepts
    },
    requests: seen,
    script,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((closed) => server.close(closed))
    },
  }
  return opened
}

/** Writes and waits until the peer has read it; false when the peer has closed. */
export function send(socket: TLSSocket, data: string | Uint8Array): Promise<boolean> {
  if (socket.destroyed) return Promise.resolve(false)
  return new Promise((done) => socket.write(data, (error) => done(!error)))
}

export const ok = (headers: string, body = '') => `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n${headers}\r\n${body}`

/**
 * A server for these fixture hosts, and an Outbound that has them as fixtures and records the sockets that it opened: their
 * `bytesRead` is what was read from the wire.
 */
export async function openFixture(script: Script, hosts: readonly [string, ...string[]] = ['page.test', 'other.test']) {
  const ca = await makeCa()
  const server = await openServer(script, await makeCertificate(ca, hosts))
  const at = { address: '127.0.0.1', port: server.port }
  const real = openOutbound({ fixtures: { hosts: new Map(hosts.map((host) => [host, at])), ca: ca.cert } })
  const sockets: TLSSocket[] = []
  const outbound: Outbound = {
    ...real,
    async connect(destination, options) {
      const connection = await real.connect(destination, options)
      sockets.push(connection.socket)
      return connection
    },
  }
  return {
    server,
    outbound,
    sockets,
    async [Symbol.asyncDispose]() {
      await real[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}
