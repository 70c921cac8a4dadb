// A receiver of webhooks over TLS, with as many fixture hosts as a test needs. It records the requests byte for byte and
// answers as the test decides.
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCa, makeCertificate } from '../../server/fixture-tls.ts'

export interface Received {
  method: string
  path: string
  host: string
  headers: IncomingHttpHeaders
  /** Names and values as on the wire. */
  rawHeaders: string[]
  body: Buffer
  /** The sender's port, which is another one for each connection. */
  port: number | undefined
  /** Requests of this path under way when this one arrived. */
  besides: number
}

export type Answering = (response: ServerResponse, received: Received) => unknown

export interface Receiver extends AsyncDisposable {
  /** The values for FIXTURE_HOSTS and FIXTURE_CA_FILE. */
  env: { FIXTURE_HOSTS: string; FIXTURE_CA_FILE: string }
  url(path: string, host?: string): string
  received: Received[]
  /** By path; other paths get 204. */
  answers: Map<string, Answering>
  /** Resolves with the requests at the path as soon as there are `count`. */
  arrivals(path: string, count: number): Promise<Received[]>
  /** Resolves at the next arrival at any path. */
  anyArrival(): Promise<void>
}

export const HOOK = 'hook.test'

export async function openReceiver(hosts: readonly [string, ...string[]] = [HOOK]): Promise<Receiver> {
  const ca = await makeCa()
  const certificate = await makeCertificate(ca, hosts)
  const folder = await mkdtemp(join(tmpdir(), 'countersign-receiver-'))
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, ca.cert)
  const received: Received[] = []
  const answers: Receiver['answers'] = new Map()
  const underWay = new Map<string, number>()
  const waiting = new Set<() => void>()
  const server = createServer({ cert: certificate.cert, key: certificate.key }, async (request, response) => {
    const path = request.url ?? ''
    const besides = underWay.get(path) ?? 0
    underWay.set(path, besides + 1)
    response.once('close', () => underWay.set(path, (underWay.get(path) ?? 0) - 1))
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', headers, rawHeaders } = request
    const port = request.socket.remotePort
    const item = {
      method,
      path,
      host: headers.host ?? '',
      headers,
      rawHeaders,
      body: Buffer.concat(chunks),
      port,
      besides,
    }
    received.push(item)
    for (const check of waiting) check()
    const answer = answers.get(path)
    if (answer) await answer(response, item)
    else response.writeHead(204).end()
  })
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    env: {
      FIXTURE_HOSTS: hosts.map((host) => `${host}=127.0.0.1:${port}`).join(','),
      FIXTURE_CA_FILE: caFile,
    },
    url: (path, host = hosts[0]) => `https://${host}${path}`,
    received,
    answers,
    arrivals(path, count) {
      const { promise, resolve } = Promise.withResolvers<Received[]>()
      const check = () => {
        const here = received.filter((item) => item.path === path)
        if (here.length < count) return
        waiting.delete(check)
        resolve(here)
      }
      waiting.add(check)
      check()
      return promise
    },
    anyArrival() {
      const { promise, resolve } = Promise.withResolvers<void>()
      const check = () => {
        waiting.delete(check)
        resolve()
      }
      waiting.add(check)
      return promise
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Answers with this status and these headers. */
export const status =
  (code: number, headers: Record<string, string> = {}): Answering =>
  (response) =>
    response.writeHead(code, headers).end()

/** Fails with a Retry-After longer than any test runs. */
export const failing = status(503, { 'retry-after': '3600' })

/** Fails so many times, then answers 200. */
export function failingFirst(times: number): Answering {
  let left = times
  return (response, received) => (left-- > 0 ? failing : status(200))(response, received)
}

/** Answers with this status after it is released. */
export function held(code = 200): { answer: Answering; release(): void } {
  const gate = Promise.withResolvers<void>()
  return {
    async answer(response) {
      await gate.promise
      response.writeHead(code).end()
    },
    release: () => gate.resolve(),
  }
}
