// A model that finds nothing in any page, in a thread of its own, so that its work is not taken for the service's.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { answer, modelEnv, SILENT } from '../../test/assessment/semantic/messages-server.ts'

export async function openSilentServer() {
  const worker = new Worker(new URL(import.meta.url))
  const [url] = (await once(worker, 'message')) as [string]
  return { env: modelEnv({ url }), [Symbol.asyncDispose]: async () => void (await worker.terminate()) }
}

if (!isMainThread && parentPort) {
  const server = createServer((request, response) => request.resume().on('end', () => answer(response, SILENT)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  parentPort.postMessage(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
}
