// The peer of POST /v1/receipt: Fastify that writes each receipt in a transaction of its own.
// `node bench/peers/receipt-peer.ts`, with DATABASE_URL
import { randomBytes } from 'node:crypto'
import Fastify from 'fastify'
import { deriveKey } from '../../server/receipts/keys.ts'
import { openOneByOne } from './receipt-one-by-one.ts'

const key = { ...deriveKey(randomBytes(32), 'receipt', 1), keyId: 1 }
const single = await openOneByOne(process.env.DATABASE_URL!)
const app = Fastify()
app.post<{ Body: { subject_sha256: string; label: string } }>('/v1/receipt', async ({ body }, reply) => {
  const entry = { subjectSha256: body.subject_sha256, label: body.label, requestedBy: 'bench' }
  return reply.code(201).send({ attestation: await single.append(key, entry) })
})
const address = await app.listen({ host: '127.0.0.1', port: 0 })
process.once('SIGTERM', async () => {
  await app.close()
  await single[Symbol.asyncDispose]()
})
console.log(JSON.stringify({ event: 'peer_ready', address }))
