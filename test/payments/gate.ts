// Stands in front of a JSON-RPC node, and can be shut.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export type Gate = Awaited<ReturnType<typeof openGate>>

export async function openGate(target: string) {
  const gate = { shut: false, calls: [] as string[] }
  const server = createServer(async (request, response) => {
    const body = await text(request)
    if (gate.shut) return void response.destroy()
    gate.calls.push((JSON.parse(body) as { method: string }).method)
    const answer = await fetch(target, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(gate, {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  })
}
