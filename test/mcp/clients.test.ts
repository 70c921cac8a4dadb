// A whole purchase through each MCP client, paid as x402's own MCP client pays: without a key, and with nothing in `_meta`
// but the payment.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { holdPage } from '../site.ts'
import { openScriptedFacilitator, PAGE, startSystem } from '../system.ts'
import { CLIENTS } from './clients.ts'
import {
  expectCompleted,
  expectNonCompleted,
  KEY,
  newArgs,
  openWallet,
  payByClient,
  TOOL,
  termsOf,
} from './paid-tool.ts'

const till = openScriptedFacilitator()
const system = await startSystem({ overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())
const url = system.url('/')

for (const [name, open] of Object.entries(CLIENTS)) {
  t.test(name, async (t) => {
    await using client = await open(url)
    const names = await client.list()
    t.equal(names.length, 26)
    t.ok(names.includes(TOOL))

    const before = till.settled.length
    const args = newArgs(system.site)
    const answer = await payByClient((params) => client.call(params), args)
    const { bytes, token } = expectCompleted(t, answer)
    t.equal(till.settled.length, before + 1)

    const byKey = await client.call({ name: TOOL, arguments: args, _meta: { [KEY]: answer._meta?.[KEY] } })
    t.equal(expectCompleted(t, byKey).bytes, bytes)
    const byToken = await client.call({ name: TOOL, arguments: args, _meta: { 'service/recovery-token': token } })
    t.equal(expectCompleted(t, byToken).bytes, bytes)
    t.equal(till.settled.length, before + 1)

    const keyed = { ...newArgs(system.site), idempotency_key: randomUUID() }
    const first = expectCompleted(t, await payByClient((params) => client.call(params), keyed))
    const again = await payByClient((params) => client.call(params), keyed)
    t.equal(expectCompleted(t, again).bytes, first.bytes, 'a key among the arguments is repeated by the client itself')
    t.equal(till.settled.length, before + 2)

    const missing = await payByClient(
      (params) => client.call(params),
      newArgs(system.site, { status: 404, body: 'no' }),
    )
    expectNonCompleted(t, missing, 'failed', 'source_http_status')
    expectNonCompleted(t, await client.call({ name: TOOL, arguments: {} }), 'failed', 'invalid_request')
    t.equal(till.settled.length, before + 2)
  })

  t.test(`${name}: progress is reported`, async (t) => {
    await using client = await open(url)
    const held = holdPage({ body: PAGE })
    const args = { ...newArgs(system.site, held.page), idempotency_key: randomUUID() }
    const payment = await openWallet().createPaymentPayload(termsOf(await client.call({ name: TOOL, arguments: args })))
    const reported: number[] = []
    const onprogress = ({ progress }: { progress: number }) => {
      reported.push(progress)
      // Only the payment is accepted so far.
      if (progress === 1) held.release()
    }
    const params = { name: TOOL, arguments: args, _meta: { 'x402/payment': payment } }
    expectCompleted(t, await client.call(params, { onprogress }))
    t.same(reported, [1, 2, 3, 4, 5])
  })

  t.test(`${name}: it disconnects and repeats the call`, async (t) => {
    await using client = await open(url)
    const held = holdPage({ body: PAGE })
    const args = { ...newArgs(system.site, held.page), idempotency_key: randomUUID() }
    const before = till.settled.length
    const leaving = new AbortController()
    const left = payByClient((params) => client.call(params, { signal: leaving.signal }), args)
    await held.reached
    leaving.abort()
    await t.rejects(left)
    held.release()
    await using again = await open(url)
    expectCompleted(t, await payByClient((params) => again.call(params), args))
    t.equal(till.settled.length, before + 1)
  })
}
