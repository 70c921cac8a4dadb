// A service with a model that knows the harbour, and a gateway before it that a test can make lie, lose answers, or kill the buyer.
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { generatePrivateKey } from 'viem/accounts'
import { modelEnv, openMessagesServer, type Script, SILENT, verdictOn } from '../assessment/semantic/messages-server.ts'
import { startSystem } from '../system.ts'

const right: Script = (asked) => {
  if (asked.claim.includes('1901')) return verdictOn(asked, 'opened in 1874', 'contradicts')
  if (asked.claim.includes('railway')) return SILENT
  return verdictOn(asked, 'three piers', 'supports')
}

export interface Passing {
  method: string
  path: string
  headers: Record<string, string>
  isPaid: boolean
}

export interface Answer {
  status: number
  headers: Headers
  bytes: Buffer
}

/** What the gateway does with a request: `forward` asks the service. A thrown error closes the connection without an answer. */
export type Hook = (request: Passing, forward: () => Promise<Answer>) => Promise<Answer>

export async function openMarket(t: Test, env: Record<string, string> = {}) {
  const model = await openMessagesServer(right)
  t.teardown(() => model[Symbol.asyncDispose]())
  const system = await startSystem({ env: modelEnv(model, { RATE_LIMIT_PER_MINUTE: '0', ...env }) })
  t.teardown(() => system[Symbol.asyncDispose]())
  const gateway = { hook: (async (_, forward) => forward()) as Hook, received: [] as Passing[], baseUrl: '' }
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request
    const body = await buffer(request)
    const kept = Object.entries(headers).filter(
      ([name]) => !/^(host|connection|content-length|accept-encoding)$/.test(name),
    )
    const own = Object.fromEntries(kept) as Record<string, string>
    const passing = { method, path: url, headers: own, isPaid: own['payment-signature'] !== undefined }
    gateway.received.push(passing)
    try {
      const { status, headers, bytes } = await gateway.hook(passing, async () => {
        const init = { method, headers: own, ...(method === 'POST' && { body }) }
        const answer = await fetch(system.url(url), { ...init, redirect: 'manual' })
        return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) }
      })
      const passed = [...headers].filter(
        ([name]) => !/^(content-length|content-encoding|transfer-encoding|connection)$/.test(name),
      )
      response.writeHead(status, Object.fromEntries(passed)).end(bytes)
    } catch {
      response.socket?.destroy()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  gateway.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const folder = mkdtempSync(join(tmpdir(), 'countersign-buy-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const path = (name: string) => join(folder, name)
  const secret = generatePrivateKey()
  writeFileSync(path('wallet.key'), secret, { mode: 0o600 })
  const settled = async () =>
    (await system.sql(`select count(*)::int from payment_ledger where outcome = 'settled'`))[0]?.count as number
  return { system, gateway, path, secret, settled, page: system.site.url('/harbour') }
}
