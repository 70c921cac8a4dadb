// Peers of POST /v1/receipt, over HTTP: Fastify alone, which signs each receipt, and with a database writes each in a
// transaction of its own. `node bench/receipt-peer.ts`, with DATABASE_URL for the second
import { randomBytes } from 'node:crypto'
import Fastify from 'fastify'
import { attest, GENESIS } from '../server/receipts/format.ts'
import { deriveKey } from '../server/receipts/keys.ts'
import { openOneByOne } from './receipt-one-by-one.ts'

const key = { ...deriveKey(randomBytes(32), 'receipt', 1), keyId: 1 }
const url = process.env.DATABASE_URL
const single = url ? await openOneByOne(url) : null
let serial = 0
const app = Fastify()
app.post<{ Body: { subject_sha256: string; label: string } }>('/v1/receipt', async ({ body }, reply) => {
  const entry = { subjectSha256: body.subject_sha256, label: body.label, requestedBy: 'bench' }
  const made = single
    ? await single.append(key, entry)
    : attest({ ...entry, serial: ++serial, prevHash: GENESIS, tsMs: Date.now() }, key)
  return reply.code(201).send({ attestation: made })
})
const address = await app.listen({ host: '127.0.0.1', port: 0 })
process.once('SIGTERM', async () => {
  await app.close()
  await single?.[Symbol.asyncDispose]()
})
console.log(JSON.stringify({ event: 'peer_ready', address }))
