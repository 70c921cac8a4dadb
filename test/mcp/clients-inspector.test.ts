// A purchase by hand with the inspector's command line, in both eras of the protocol.
import { randomUUID } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { harbourClaim, openScriptedFacilitator, PAGE, startSystem } from '../system.ts'
import { openInspector } from './inspector.ts'
import { expectCompleted, openWallet, type ToolResult, termsOf } from './paid-tool.ts'

const till = openScriptedFacilitator()
const system = await startSystem({ overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())

/** The methods in the Mcp-Method headers that were sent. */
const asks: unknown[] = []
subscribe('http.server.request.start', (message) => {
  asks.push((message as { request: IncomingMessage }).request.headers['mcp-method'])
})

const ERAS = ['legacy', 'modern']

for (const era of ERAS)
  t.test(`the free endpoint, ${era}`, async (t) => {
    await using inspector = await openInspector(system.url('/'), '/mcp/check')
    const run = (method: string, ...more: string[]) => inspector.run('--protocol-era', era, '--method', method, ...more)
    const listed = await run('tools/list', '--strict')
    t.equal(listed.code, 0, listed.errors)
    t.notMatch(listed.errors, /warning/i)
    t.equal(listed.printed?.result?.tools?.length, 4)
    const path = `/${randomUUID()}`
    system.site.pages.set(path, { body: PAGE })
    const args = { source_url: system.site.url(path), quotes: ['The harbour was opened in 1874'] }
    const call = (given: object) =>
      run('tools/call', '--tool-name', 'check_quotes', '--tool-args-json', JSON.stringify(given))
    const found = await call(args)
    t.equal(found.code, 0, found.errors)
    t.match(found.printed?.result?.structuredContent, { quotes: [{ match: 'exact' }] })
    const refused = await call({})
    t.equal(refused.code, 5, 'the tool answered with an error')
    t.match(refused.printed?.result?.structuredContent, { error: { code: 'invalid_request' } })
  })

for (const era of ERAS) {
  t.test(era, async (t) => {
    await using inspector = await openInspector(system.url('/'))
    const run = (method: string, ...more: string[]) => inspector.run('--protocol-era', era, '--method', method, ...more)

    const listed = await run('tools/list', '--strict')
    t.equal(listed.code, 0, listed.errors)
    t.equal(listed.printed?.result?.tools?.length, 26)

    const path = `/${randomUUID()}`
    system.site.pages.set(path, { body: PAGE })
    const args = { ...harbourClaim(system.site), source_url: system.site.url(path) }
    const key = `service/idempotency-key="${randomUUID()}"`
    const call = (...metadata: string[]) => inspector.buy(era, args, key, ...metadata)
    const asked = await call()
    t.equal(asked.code, 5, 'the tool answered with an error')
    const terms = termsOf(asked.printed?.result as ToolResult)

    asks.length = 0
    const payment = await openWallet().createPaymentPayload(terms)
    const before = till.settled.length
    const bought = await call(`x402/payment=${JSON.stringify(payment)}`)
    t.equal(bought.code, 0, bought.errors)
    t.equal(
      asks.includes('tasks/get'),
      era === 'modern',
      `it waits ${era === 'modern' ? 'for its task' : 'in its call'}`,
    )
    const { bytes } = expectCompleted(t, bought.printed?.result as ToolResult)
    const again = await call()
    t.equal(again.code, 0, again.errors)
    t.equal(expectCompleted(t, again.printed?.result as ToolResult).bytes, bytes)
    t.equal(till.settled.length, before + 1)
  })
}
