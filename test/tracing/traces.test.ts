// Traces: one trace from the caller to the last process that works for it; without an exporter nothing is loaded; a
// receiver that does not answer delays nothing.
import { randomBytes, randomUUID } from 'node:crypto'
import t from 'tap'
import { openApiHarness, outcomeOf } from '../api-harness.ts'
import { modelEnv, openMessagesServer, verdictOn } from '../assessment/semantic/messages-server.ts'
import { startChild } from '../children.ts'
import { openTestDatabase } from '../database.ts'
import { KEY, openWallet, PAYMENT, TOOL, type ToolResult, termsOf } from '../mcp/paid-tool.ts'
import { harbourClaim, payingFetch, startSystem, VERIFY } from '../system.ts'
import { drawTree, openTraceReceiver, type ReceivedSpan } from './trace-receiver.ts'

// Most of the time these tests wait.
t.jobs = 4

/** A new trace as a caller begins it. */
function makeTrace({ sampled = true } = {}) {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')]
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-${sampled ? '01' : '00'}` }
}

const KINDS = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 }

t.test(
  'one trace from the caller through web, worker, facilitator, model, receipt and alert',
  { buffered: true },
  async (t) => {
    await using receiver = await openTraceReceiver()
    await using model = await openMessagesServer((asked) => verdictOn(asked, 'opened in 1874', 'supports'))
    await using harness = await openApiHarness()
    const env = {
      ...harness.env,
      ...modelEnv(model),
      ...receiver.env,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=harbour%20office',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    }
    await using web = startChild('server/main.ts', env)
    await using worker = startChild('workers/main.ts', env)
    const address = String((await web.logs('listening')).address)
    await worker.logs('worker_started')

    const purchase = makeTrace()
    const bought = await outcomeOf(
      await payingFetch()(new URL(VERIFY, address), {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
          prefer: 'wait=25',
          traceparent: purchase.traceparent,
          tracestate: 'harbour=buoy-7,other=1',
        },
        body: JSON.stringify(harbourClaim(harness.site)),
      }),
    )
    t.equal(bought.status, 200, await bought.clone().text())
    const { request_id } = (await bought.json()) as { request_id: string }

    const received = Promise.withResolvers<void>()
    harness.site.pages.set('/hook', () => {
      received.resolve()
      return { body: '' }
    })
    const call = async (method: string, path: string, body: object, headers: Record<string, string> = {}) => {
      const answer = await fetch(new URL(path, address), {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
      return (await answer.json()) as Record<string, string>
    }
    const { api_key } = await call('POST', '/v1/register', { handle: 'harbour' })
    const authorization = `Bearer ${api_key}`
    await call(
      'PUT',
      '/v1/watchdog/ferry',
      { interval_s: 600, webhook_url: harness.site.url('/hook') },
      { authorization },
    )
    const failing = makeTrace()
    await call(
      'POST',
      '/v1/heartbeat/ferry',
      { status: 'fail' },
      { authorization, traceparent: failing.traceparent, tracestate: 'ferry=late' },
    )
    await received.promise

    // Spans that wait for export are exported when the processes are asked to stop.
    for (const child of [web, worker]) child.kill('SIGTERM')
    t.same(await Promise.all([web.ended, worker.ended]), [
      { code: 0, signal: null },
      { code: 0, signal: null },
    ])

    const { spans } = receiver
    const ofPurchase = spans.filter(({ traceId }) => traceId === purchase.traceId)
    t.same(drawTree(ofPurchase, purchase.spanId), [
      // The call without a payment is answered with 402.
      'POST /api/agent/v1/verify-source',
      '  send verify_request',
      'POST /api/agent/v1/verify-source',
      '  facilitator.verify',
      '  send verify_request',
      '    process verify_request',
      '      verification.assess',
      '        chat scripted-1',
      '      verification.complete',
      '        receipt.append',
      '      verification.intend',
      '      verification.observe',
      '        GET',
      '        text.extract',
      '      verification.settle',
      '        facilitator.settle',
    ])
    t.equal(drawTree(ofPurchase, purchase.spanId).length, ofPurchase.length, 'none has another parent')
    t.same(
      new Set(ofPurchase.map(({ traceState }) => traceState)),
      new Set(['harbour=buoy-7,other=1']),
      'the state of the caller goes along through the job',
    )
    const find = (name: string, among: readonly ReceivedSpan[] = ofPurchase) =>
      among.findLast((span) => span.name === name)
    t.match(find('POST /api/agent/v1/verify-source'), {
      kind: KINDS.server,
      status: 0,
      attributes: { 'http.request.method': 'POST', 'countersign.request_id': request_id },
    })
    t.same(
      ofPurchase
        .filter(({ kind }) => kind === KINDS.server)
        .map(({ attributes }) => attributes['http.response.status_code']),
      [402, 200],
    )
    const job = find('process verify_request')
    t.match(job, {
      kind: KINDS.consumer,
      attributes: {
        'messaging.system': 'graphile_worker',
        'messaging.destination.name': 'verify_request',
        'countersign.request_id': request_id,
        'countersign.verdict': 'supports',
      },
    })
    t.match(find('chat scripted-1'), {
      kind: KINDS.client,
      attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.usage.output_tokens': 20, 'server.address': '127.0.0.1' },
    })
    t.match(find('GET'), { kind: KINDS.client, attributes: { 'server.address': 'site.test' } })

    const ofAlert = spans.filter(({ traceId }) => traceId === failing.traceId)
    t.same(drawTree(ofAlert, failing.spanId), [
      'POST /v1/heartbeat/:name',
      '  alert.raise',
      '    process deliver_alerts',
      '      POST',
      '    receipt.append',
    ])
    t.same(new Set(ofAlert.map(({ traceState }) => traceState)), new Set(['ferry=late']))
    t.match(find('POST', ofAlert), { kind: KINDS.client, attributes: { 'http.response.status_code': 200 } })

    const processes = (among: readonly ReceivedSpan[]) =>
      new Set(among.map(({ resource }) => resource['service.instance.id'])).size
    t.same([processes(ofPurchase), processes(ofAlert)], [2, 2], 'web and worker')
    t.match(job?.resource, { 'service.name': 'countersign', 'deployment.environment.name': 'test' })
    t.ok(receiver.headers.every((headers) => headers['x-tenant'] === 'harbour office'))

    const line = await worker.logs('verification_completed')
    t.same([line.trace_id, line.request_id], [purchase.traceId, request_id], 'its line in the log leads to the trace')
  },
)

t.test('a call of a tool is part of the trace that its _meta names, through the job', { buffered: true }, async (t) => {
  await using receiver = await openTraceReceiver()
  const [agent, carrier] = [makeTrace(), makeTrace()]
  {
    await using system = await startSystem({ env: receiver.env })
    const call = async (name: string, args: object, meta: object) => {
      const answer = await fetch(system.url('/mcp'), {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          traceparent: carrier.traceparent,
          tracestate: 'carrier=1',
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name, arguments: args, _meta: meta },
        }),
      })
      return ((await answer.json()) as { result: ToolResult }).result
    }
    const order = { [KEY]: randomUUID(), traceparent: agent.traceparent, tracestate: 'agent=7' }
    const terms = termsOf(await call(TOOL, harbourClaim(system.site), order))
    const payment = await openWallet().createPaymentPayload(terms)
    const bought = await call(TOOL, harbourClaim(system.site), { ...order, [PAYMENT]: payment })
    t.match(bought.structuredContent, { status: 'completed' })
    for (const traceparent of [undefined, 7, 'of another form'])
      await call('service_chain_head', {}, { traceparent, tracestate: 'agent=8' })
    const tracestate = `agent=${'x'.repeat(507)}`
    t.equal(tracestate.length, 513)
    await call('service_chain_head', {}, { traceparent: agent.traceparent, tracestate })
  }
  const of = (trace: { traceId: string; spanId: string }) => {
    const spans = receiver.spans.filter(({ traceId }) => traceId === trace.traceId)
    const tree = drawTree(spans, trace.spanId)
    t.equal(tree.length, spans.length, 'none has another parent')
    return {
      tree,
      states: (name: RegExp) => new Set(spans.filter((one) => name.test(one.name)).map((one) => one.traceState)),
    }
  }
  const { tree, states } = of(agent)
  // A slow fetch makes the request another job.
  const calls = tree.filter((line) => !/^ {4}/.test(line))
  t.same(calls, [
    'tools/call service_chain_head',
    'tools/call service_verify_source',
    '  send verify_request',
    'tools/call service_verify_source',
    '  facilitator.verify',
    '  send verify_request',
  ])
  t.ok(tree.includes('        receipt.append'))
  t.same(states(/verify|^verification|receipt/), new Set(['agent=7']))
  t.same(states(/chain_head/), new Set(['']), 'one that is too long is dropped')
  const carried = of(carrier)
  t.same(
    carried.tree.toSorted(),
    [...Array(3).fill('  tools/call service_chain_head'), ...Array(6).fill('POST /mcp')],
    'a call that names none, or one of another form, is a part of what carries it',
  )
  t.same(carried.states(/./), new Set(['carrier=1']))
})

t.test('where no receiver is named, nothing of the SDK is loaded', { buffered: true }, async (t) => {
  await using receiver = await openTraceReceiver()
  await using database = await openTestDatabase()
  const env = { DATABASE_URL: database.url, DATA_DIR: t.testdir({}), PORT: '0' }
  const loaded = async (more: Record<string, string>) => {
    await using child = startChild('test/tracing/loaded-modules.ts', { ...env, ...more }, { ipc: true })
    return await child.reports('loaded')
  }
  const [without, traced] = await Promise.all([loaded({}), loaded(receiver.env)])
  t.equal(without.status, 200)
  // The names that slonik and prom-client import; without the SDK they do nothing.
  t.same(without.modules, ['@opentelemetry/api'])
  t.ok((traced.modules as string[]).includes('@opentelemetry/sdk-trace'), 'the search finds them')
})

t.test(
  'a caller that does not sample is not traced; a traceparent of another form begins one',
  { buffered: true },
  async (t) => {
    await using receiver = await openTraceReceiver()
    const unsampled = makeTrace({ sampled: false })
    {
      await using system = await startSystem({ env: receiver.env })
      const ask = (traceparent: string) => system.ask({ key: randomUUID(), headers: { traceparent } })
      t.equal((await ask(unsampled.traceparent)).status, 402)
      t.equal((await ask(`00-${'0'.repeat(32)}-0-xx`)).status, 402)
    }
    t.same(
      receiver.spans.filter(({ kind }) => kind === KINDS.server).map(({ parentSpanId }) => parentSpanId),
      [''],
      'the second begins a trace of its own',
    )
  },
)

t.test(
  'a receiver that is away or silent costs no caller anything, and is logged once',
  { buffered: true },
  async (t) => {
    await using receiver = await openTraceReceiver()
    receiver.answer = () => {}
    const away = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }
    const buy = async (env: Record<string, string>) => {
      await using system = await startSystem({ env })
      const answer = await outcomeOf(
        await system.ask({ key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=25' } }),
      )
      t.equal(answer.status, 200)
      const begun = performance.now()
      await system.service[Symbol.asyncDispose]()
      const seconds = (performance.now() - begun) / 1000
      t.ok(seconds < 10, `the end took ${seconds} s`)
      return system.logged.filter(({ dependency }) => dependency === 'receiver of traces').map(({ event }) => event)
    }
    t.same(await Promise.all([buy(receiver.env), buy(away)]), [['dependency_away'], ['dependency_away']])
  },
)
