// A receiver of the alerts of watchdogs, which answers 204 and remembers what came.
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { makeCa, makeCertificate } from '../server/fixture-tls.ts'
import type { Lab } from './lab.ts'

/** Remembers the ids that came for each watchdog, in the order in which each came first. */
export async function openReceiver(lab: Lab) {
  const ca = await makeCa()
  const { cert, key } = await makeCertificate(ca, ['hook.test'])
  const caFile = join(lab.folder, 'hook-ca.pem')
  await writeFile(caFile, ca.cert)
  const seen = new Map<string, string[]>()
  const server = createServer({ cert, key }, (request, response) => {
    const name = `w${request.url?.split('/').at(-1)}`
    const id = String(request.headers['webhook-id'])
    const ids = seen.get(name) ?? []
    if (!ids.includes(id)) seen.set(name, [...ids, id])
    request.resume().on('end', () => response.writeHead(204).end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: 'https://hook.test/',
    env: { FIXTURE_HOSTS: `hook.test=127.0.0.1:${port}`, FIXTURE_CA_FILE: caFile },
    seen: seen as ReadonlyMap<string, string[]>,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

/** All alerts that came. */
export const countOf = (seen: ReadonlyMap<string, string[]>) =>
  [...seen.values()].reduce((sum, ids) => sum + ids.length, 0)
