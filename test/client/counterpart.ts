// A scripted service: a real HTTP server that answers each request with the next step of its script and records the
// requests. And a clock whose waits take no time.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { Clock } from '../../client/client.ts'
import { issueResult } from './issuer.ts'

export interface Received {
  method: string
  url: string
  headers: IncomingHttpHeaders
  body: string
}

export type Step = (response: ServerResponse, request: Received) => void

/** Every request takes the next step of the script. A step that no request took fails the test. */
export async function play(t: Test, ...script: Step[]) {
  const received: Received[] = []
  const steps = [...script]
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray()
    const { method = '', url = '', headers } = request
    const one = { method, url, headers, body: Buffer.concat(chunks).toString() }
    received.push(one)
    const step = steps.shift()
    if (step) return step(response, one)
    t.fail(`unexpected request ${method} ${url}`)
    response.writeHead(599).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    if (steps.length > 0) throw new Error(`${steps.length} steps of the script were never asked for`)
  })
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received }
}

/** A clock whose waits end at once, are recorded, and advance its time. */
export function buildClock() {
  const waits: number[] = []
  const end = new AbortController()
  let now = Date.UTC(2026, 10, 20)
  const clock: Clock = {
    now: () => now,
    sleep: async (ms) => {
      waits.push(ms)
      now += ms
    },
    deadline: () => end.signal,
  }
  return { ...clock, waits, expire: () => end.abort(new Error('time is up')) }
}

export const REQUEST_ID = issueResult().request_id
export const TOKEN = 'crt_a-private-token'
export const SETTLEMENT = { success: true, transaction: '0xabc', network: 'eip155:84532', payer: '0x1' }
export const TERMS = {
  x402Version: 2,
  resource: { url: 'http://127.0.0.1/api/agent/v1/verify-source' },
  accepts: [
    {
      scheme: 'exact',
      network: 'eip155:84532',
      amount: '30000',
      asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
      payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
      maxTimeoutSeconds: 300,
      extra: { name: 'USDC', version: '2' },
    },
  ],
}

/** Not in the order in which it would be serialised again. */
export const RESULT_BYTES = Buffer.from(`${JSON.stringify(issueResult(), null, 1)}\n`)

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')

export function refuse(status: number, code: string, more: { retryable?: boolean; headers?: object } = {}): Step {
  const { retryable = false, headers = {} } = more
  return (response) => {
    const error = { code, message: `about ${code}`, retryable }
    // What is refused because the service is busy has no request yet.
    const request = retryable && status >= 429 ? {} : { request_id: REQUEST_ID }
    const body = { schema_version: '1.0.0', status: 'failed', error, ...request }
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  }
}

export function askForPayment(code = 'payment_required'): Step {
  return refuse(402, code, { retryable: true, headers: { 'payment-required': base64(TERMS) } })
}

export function pending(headers: Record<string, string> = {}): Step {
  return (response) => {
    const error = { code: 'pending', message: 'in progress', retryable: true }
    const body = { schema_version: '1.0.0', status: 'pending', error, request_id: REQUEST_ID }
    response.writeHead(202, { 'x-service-recovery-token': TOKEN, 'retry-after': '2', ...headers })
    response.end(JSON.stringify(body))
  }
}

export function pendingWithoutToken(): Step {
  return (response) => response.writeHead(202, { 'retry-after': '1' }).end(JSON.stringify({ status: 'pending' }))
}

export function complete(headers: Record<string, string> = {}, bytes: string | Buffer = RESULT_BYTES): Step {
  return (response) =>
    response
      .writeHead(200, {
        'content-type': 'application/json',
        'x-service-recovery-token': TOKEN,
        'payment-response': base64(SETTLEMENT),
        ...headers,
      })
      .end(bytes)
}

export function hangUp(): Step {
  return (response) => response.socket?.destroy()
}

/** Announces half a megabyte and closes the connection after the first part of the body. */
export function breakOff(): Step {
  return (response) => {
    response.writeHead(200, { 'content-length': '500000' })
    response.write(RESULT_BYTES, () => response.socket?.destroy())
  }
}

export function answerWith(status: number, body: string, headers: Record<string, string> = {}): Step {
  return (response) => response.writeHead(status, headers).end(body)
}
