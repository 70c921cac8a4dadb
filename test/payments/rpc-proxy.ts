// A proxy of a JSON-RPC node, which can close connections, leave calls unanswered, or be some blocks behind.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export type RpcProxy = Awaited<ReturnType<typeof openRpcProxy>>

interface Call {
  id: number
  method: string
  params?: unknown[]
}

export async function openRpcProxy(target: string) {
  const proxy = {
    /** Closes connections. */
    shut: false,
    /** Takes calls and does not answer them. */
    silent: false,
    /** The newest block of an EVM node that is behind the chain. */
    height: null as number | null,
    calls: [] as string[],
  }
  async function ask(call: object) {
    return fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(call),
    })
  }
  const server = createServer(async (request, response) => {
    const call = JSON.parse(await text(request)) as Call
    if (proxy.shut) return void response.destroy()
    proxy.calls.push(call.method)
    if (proxy.silent) return
    const { height } = proxy
    const answer = await ask(height === null ? call : asOf(call, height))
    const body = await answer.text()
    const hidden = height !== null && isLater(call, body, height)
    response.writeHead(answer.status, { 'content-type': 'application/json' })
    response.end(hidden ? JSON.stringify({ jsonrpc: '2.0', id: call.id, result: null }) : body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(proxy, {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  })
}

/** The same call, with `latest` replaced by this height. */
function asOf(call: Call, height: number): Call {
  const number = `0x${height.toString(16)}`
  return { ...call, params: call.params?.map((param) => (param === 'latest' ? number : param)) }
}

function isLater({ method }: Call, body: string, height: number): boolean {
  if (method !== 'eth_getTransactionReceipt') return false
  const { result } = JSON.parse(body) as { result: { blockNumber: string } | null }
  return result !== null && Number(result.blockNumber) > height
}
