// The published signing keys, with which receipts are verified.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { buildCheck, expectCompleted } from '../interface.schema.ts'
import { payingFetch, startSystem } from '../system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

interface Key {
  key_id: number
  use: string
  pubkey_hex: string
  status: string
  first_serial: number | null
  last_serial: number | null
}

const serial = { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] }
const checkKeys = buildCheck({
  type: 'object',
  required: ['keys'],
  properties: {
    keys: {
      type: 'array',
      items: {
        type: 'object',
        required: ['key_id', 'use', 'pubkey_hex', 'status', 'first_serial', 'last_serial'],
        properties: {
          key_id: { type: 'integer', minimum: 0 },
          use: { enum: ['receipt', 'lease', 'webhook', 'checkpoint'] },
          pubkey_hex: { type: 'string', pattern: '^[0-9a-f]{64}$' },
          status: { type: 'string', minLength: 1 },
          first_serial: serial,
          last_serial: serial,
        },
      },
    },
  },
})

async function listKeys(t: Test): Promise<Key[]> {
  const response = await fetch(system.url('/v1/keys'))
  t.equal(response.status, 200)
  const body = (await response.json()) as { keys: Key[] }
  t.same(checkKeys(body), [])
  t.equal(new Set(body.keys.map((key) => key.key_id)).size, body.keys.length, 'key_id is unique over all uses')
  t.equal(new Set(body.keys.map((key) => key.pubkey_hex)).size, body.keys.length, 'keys differ by purpose')
  return body.keys
}

async function buy(t: Test) {
  const options = { key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=20' } }
  return (await expectCompleted(t, await system.ask(options))).result.receipt
}

t.test('before the first receipt no key has a serial', async (t) => {
  for (const key of await listKeys(t)) t.match(key, { first_serial: null, last_serial: null })
})

t.test('after the first receipt its key has a serial', async (t) => {
  const { attestation } = await buy(t)
  t.equal(attestation.serial, 1)
  t.equal(attestation.prev_hash, '0'.repeat(64))
  const signing = (await listKeys(t)).find((key) => key.key_id === attestation.key_id)
  t.match(signing, { use: 'receipt', pubkey_hex: attestation.pubkey_hex, status: 'active', first_serial: 1 })

  const { attestation: second } = await buy(t)
  t.equal(second.serial, 2)
  t.equal(second.prev_hash, attestation.receipt_hash)
  t.ok(Number(second.ts_ms) >= Number(attestation.ts_ms))
  t.equal((await listKeys(t)).find((key) => key.key_id === second.key_id)?.first_serial, 1)
})
