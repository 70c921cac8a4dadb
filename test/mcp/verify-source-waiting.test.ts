// Progress reports to a waiting caller of the paid tool, and what happens to the work when the caller disconnects.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import type { Page } from '../site.ts'
import { openScriptedFacilitator, startSystem } from '../system.ts'
import {
  callTool,
  expectCompleted,
  expectNonCompleted,
  type Manner,
  type Message,
  messagesOf,
  PAYMENT,
  post,
  signOrder,
  TOOL,
  type ToolResult,
} from './paid-tool.ts'

const till = openScriptedFacilitator()
/** Promises that the verification of each payment waits for, in order. */
const gates: (() => Promise<void>)[] = []
const verify = async (...given: Parameters<typeof till.verify>) => {
  await gates.shift()?.()
  return till.verify(...given)
}
const system = await startSystem({ overrides: { facilitator: { ...till, verify } } })
t.teardown(() => system[Symbol.asyncDispose]())
const url = system.url('/')

const order = (page?: Page) => signOrder(system, page)

/** A call whose messages the test reads one by one. */
async function listen(args: object, meta: object, manner: Manner) {
  const response = await post(url, 'tools/call', { name: TOOL, arguments: args, _meta: meta }, manner)
  const messages = messagesOf(response)
  const next = async () => {
    const { value } = await messages.next()
    return value as Message | undefined
  }
  return { response, next }
}

/** The server's response object of the next request to /mcp. */
function nextResponse(): Promise<ServerResponse> {
  const { promise, resolve } = Promise.withResolvers<ServerResponse>()
  const hear = (message: unknown) => {
    const { request, response } = message as { request: { url?: string }; response: ServerResponse }
    if (request.url !== '/mcp') return
    unsubscribe('http.server.request.start', hear)
    resolve(response)
  }
  subscribe('http.server.request.start', hear)
  return promise
}

for (const modern of [false, true]) {
  t.test(`stages are reported as they are reached, ${modern ? '2026-07-28' : 'before 2026-07-28'}`, async (t) => {
    const {
      args,
      held,
      paid: { meta },
    } = await order()
    const settling = Promise.withResolvers<undefined>()
    till.outcomes.push(() => settling.promise)
    const call = await listen(args, { ...meta, progressToken: 'a-token' }, { modern })
    t.match(call.response.headers.get('content-type'), /^text\/event-stream/)
    const reported: number[] = []
    const hear = async () => {
      const message = await call.next()
      const params = message?.params as { progress: number; total: number; progressToken: string; message: string }
      t.match(message, { method: 'notifications/progress', params: { progressToken: 'a-token', total: 5 } })
      t.match(params.message, /\w/)
      reported.push(params.progress)
    }
    await hear()
    t.same(reported, [1], 'paid, before the source is read')
    held.release()
    await hear()
    await hear()
    t.same(reported, [1, 2, 3], 'read and assessed, before the payment is settled')
    settling.resolve(undefined)
    await hear()
    await hear()
    t.same(reported, [1, 2, 3, 4, 5])
    const last = await call.next()
    expectCompleted(t, last?.result as ToolResult)
    t.equal(await call.next(), undefined, 'nothing after the result')
  })
}

t.test('without a progress token, or with nothing to wait for, the answer is JSON', async (t) => {
  const {
    args,
    held,
    paid: { meta },
    unpaid,
  } = await order()
  held.release()
  const asked = await listen(args, { ...unpaid.meta, progressToken: 1 }, {})
  t.match(asked.response.headers.get('content-type'), /^application\/json/, 'the price')
  const silent = await listen(args, meta, {})
  t.match(silent.response.headers.get('content-type'), /^application\/json/)
  expectCompleted(t, (await silent.next())?.result as ToolResult)
  const replay = await listen(args, { ...meta, progressToken: 1 }, {})
  t.match(replay.response.headers.get('content-type'), /^application\/json/, 'a replay')
})

t.test('after a failure no progress is reported', async (t) => {
  const {
    args,
    held,
    paid: { meta },
  } = await order({ status: 500, body: 'no' })
  held.release()
  const call = await listen(args, { ...meta, progressToken: 7 }, {})
  const heard: Message[] = []
  for (let message = await call.next(); message; message = await call.next()) heard.push(message)
  const last = heard.pop()
  t.same(
    heard.map(({ params }) => params?.progress),
    [1],
  )
  expectNonCompleted(t, last?.result as ToolResult, 'failed', 'source_http_status')
})

for (const modern of [false, true]) {
  const era = modern ? '2026-07-28' : 'before 2026-07-28'
  t.test(`disconnected after the payment was accepted: the work continues, ${era}`, async (t) => {
    const {
      args,
      held,
      paid: { meta },
      unpaid,
    } = await order()
    const leaving = new AbortController()
    const call = await listen(args, { ...meta, progressToken: 1 }, { modern, signal: leaving.signal })
    t.match(await call.next(), { params: { progress: 1 } })
    leaving.abort()
    held.release()
    expectCompleted(t, await callTool(url, unpaid))
    t.equal(till.settled.filter(({ bound }) => samePayer(bound.identity.payer, meta[PAYMENT])).length, 1)
  })

  t.test(`disconnected before the payment was accepted: nothing is bound, ${era}`, async (t) => {
    const {
      args,
      held,
      paid: { meta },
      unpaid,
      key,
    } = await order()
    held.release()
    const [verifying, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    gates.push(async () => {
      verifying.resolve()
      await released.promise
    })
    const leaving = new AbortController()
    const seen = nextResponse()
    const call = listen(args, meta, { modern, signal: leaving.signal })
    await verifying.promise
    const closed = once(await seen, 'close')
    leaving.abort()
    await t.rejects(call)
    await closed
    released.resolve()
    // A later purchase has completed, so the abandoned one will not change any more.
    const later = await order()
    later.held.release()
    expectCompleted(t, await callTool(url, { args: later.args, meta: later.paid.meta }))
    const rows = await system.sql(
      `select state, payment from verification_requests where key_hash = sha256(convert_to($1, 'UTF8'))`,
      [key],
    )
    t.same(rows, [{ state: 'quoted', payment: null }])
    t.equal(till.settled.filter(({ bound }) => samePayer(bound.identity.payer, meta[PAYMENT])).length, 0)
    expectCompleted(t, await callTool(url, { ...unpaid, meta }))
  })
}

function samePayer(payer: string, payment: unknown): boolean {
  const { payload } = payment as { payload: { authorization: { from: string } } }
  return payload.authorization.from.toLowerCase() === payer
}
