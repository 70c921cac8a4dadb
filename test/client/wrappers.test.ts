// Each wrapper buys one verification in its framework's own runner, from the real service with a scripted model.
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages'
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { generateText, isStepCount } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { ListContains, type Score, type Scorer } from 'autoevals'
import t, { type Test } from 'tap'
import { Countersign, CountersignError, type Purchase } from '../../client/client.ts'
import { verifyResult } from '../../client/verification.ts'
import { verifySourceTool as aiTool } from '../../client/wrappers/ai-sdk.ts'
import { citationScorer } from '../../client/wrappers/autoevals.ts'
import { verifySourceTool as langchainTool } from '../../client/wrappers/langchain.ts'
import { PAID_TOOL, payForTools, type ToolCall } from '../../client/wrappers/mcp.ts'
import { citationAssertion } from '../../client/wrappers/promptfoo.ts'
import type { Verdict } from '../../client/wrappers/purchase.ts'
import { modelEnv, openMessagesServer, verdictOn } from '../assessment/semantic/messages-server.ts'
import { type AgentClient, CLIENTS } from '../mcp/clients.ts'
import { openWallet } from '../mcp/paid-tool.ts'
import { openScriptedFacilitator, payingFetch, startSystem } from '../system.ts'
import { buildClock, complete, play, refuse } from './counterpart.ts'

const verdicts = await openMessagesServer((asked) =>
  verdictOn(asked, 'opened in 1874', asked.claim.includes('1874') ? 'supports' : 'contradicts'),
)
t.teardown(() => verdicts[Symbol.asyncDispose]())
const till = openScriptedFacilitator()
const system = await startSystem({ env: modelEnv(verdicts), overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())

const CLAIM = 'The harbour was opened in 1874.'
const question = { source_url: system.site.url('/harbour'), claim: CLAIM }

/** Options that pay with a new wallet, and what they bought. */
function openShop() {
  const bought: Purchase[] = []
  const service = { baseUrl: system.url('/'), fetch: payingFetch() }
  return { bought, options: { service, onPurchase: (purchase: Purchase) => void bought.push(purchase) } }
}

async function expectOne(t: Test, verdict: Verdict, bought: Purchase[]) {
  t.match(verdict, { claim_support: 'supports', page: question.source_url, receipt_serial: Number })
  t.match(verdict.evidence[0], { stance: 'supports', url: `${question.source_url}#:~:text=` })
  t.equal(bought.length, 1)
  const keys = await new Countersign({ baseUrl: system.url('/') }).keys()
  const result = JSON.parse(Buffer.from(bought[0]!.bytes).toString())
  t.ok(verifyResult(result, { keys }).ok, 'the bytes that were kept verify')
  t.equal(result.request_id, verdict.request_id)
}

/** What a host gives: one call, sent by its client. */
const through =
  (client: AgentClient) =>
  ({ arguments: args = {}, ...params }: ToolCall) =>
    client.call({ ...params, arguments: args })

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

t.test('AI SDK: a model calls the tool in generateText', async (t) => {
  const { bought, options } = openShop()
  const before = till.settled.length
  const model = new MockLanguageModelV4({
    doGenerate: [
      {
        content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'verify_source', input: JSON.stringify(question) }],
        finishReason: { unified: 'tool-calls', raw: undefined },
        usage: USAGE,
        warnings: [],
      },
      {
        content: [{ type: 'text', text: 'It is so.' }],
        finishReason: { unified: 'stop', raw: undefined },
        usage: USAGE,
        warnings: [],
      },
    ],
  })
  const tools = { verify_source: aiTool(options) }
  const { steps, text } = await generateText({ model, tools, stopWhen: isStepCount(2), prompt: 'Is it so?' })
  t.equal(text, 'It is so.')
  await expectOne(t, steps[0]?.toolResults[0]?.output as Verdict, bought)
  t.equal(till.settled.length, before + 1)
  t.match(
    JSON.stringify(model.doGenerateCalls[0]?.tools),
    /"source_url":\{"type":"string"/,
    'the model sees the schema',
  )
  t.match(JSON.stringify(model.doGenerateCalls[1]?.prompt), /"claim_support":"supports"/, 'and the verdict')
})

t.test('LangChain: a model calls the tool in a graph with a ToolNode', async (t) => {
  const { bought, options } = openShop()
  const before = till.settled.length
  const script = [
    new AIMessage({ content: '', tool_calls: [{ id: 'c1', name: 'verify_source', args: question }] }),
    new AIMessage('It is so.'),
  ]
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('model', async () => ({ messages: [script.shift()!] }))
    .addNode('tools', new ToolNode([langchainTool(options)]))
    .addEdge(START, 'model')
    .addConditionalEdges('model', toolsCondition, ['tools', END])
    .addEdge('tools', 'model')
    .compile()
  const { messages } = await graph.invoke({ messages: [new HumanMessage('Is it so?')] })
  t.equal(messages.at(-1)?.content, 'It is so.')
  const message = messages.find((one) => one instanceof ToolMessage)
  t.same(JSON.parse(String(message?.content)), message?.artifact)
  await expectOne(t, message?.artifact as Verdict, bought)
  t.equal(till.settled.length, before + 1)
})

for (const [name, open] of Object.entries(CLIENTS))
  t.test(`MCP, ${name}: the host pays for the tool that a model calls`, async (t) => {
    await using client = await open(system.url('/'))
    const before = till.settled.length
    const callTool = payForTools(through(client), { wallet: openWallet() })
    const answer = await callTool({ name: PAID_TOOL, arguments: question })
    t.notOk(answer.isError, answer.content[0]?.text ?? '')
    t.match(answer.structuredContent, { status: 'completed', claim_support: 'supports' })
    t.equal(till.settled.length, before + 1)
    const keys = await new Countersign({ baseUrl: system.url('/') }).keys()
    t.ok(verifyResult(answer.structuredContent, { keys }).ok)
    const free = await callTool({ name: 'service_chain_head', arguments: {} })
    t.match(free.structuredContent, { serial: Number }, 'other tools are not paid for')
  })

t.test('MCP: a lost answer is asked for again, with the payment that was signed', async (t) => {
  await using client = await CLIENTS['SDK 1']!(system.url('/'))
  const before = till.settled.length
  const wallet = openWallet()
  let signed = 0
  const counting = {
    createPaymentPayload: (terms: never) => {
      signed++
      return wallet.createPaymentPayload(terms)
    },
  }
  const metas: (Record<string, unknown> | undefined)[] = []
  let lost = 0
  const call = async (params: ToolCall) => {
    metas.push(params._meta)
    const answer = await through(client)(params)
    if (!params._meta?.['x402/payment'] || lost++ > 0) return answer
    throw new Error('the connection broke')
  }
  const clock = buildClock()
  const answer = await payForTools(call, { wallet: counting, clock })({ name: PAID_TOOL, arguments: question })
  t.match(answer.structuredContent, { status: 'completed' })
  t.same([signed, lost, till.settled.length], [1, 2, before + 1])
  t.equal(new Set(metas.map((meta) => meta?.['service/idempotency-key'])).size, 1, 'one key')
  t.same(clock.waits, [1000])

  const broken = () => Promise.reject(new Error('away'))
  const failed: unknown = await payForTools(broken, { wallet: counting, clock, attempts: 2 })({
    name: PAID_TOOL,
    arguments: { ...question, idempotency_key: 'the-key-of-the-caller' },
  }).catch((error) => error)
  t.match(failed, { code: 'network_error', idempotencyKey: 'the-key-of-the-caller', cause: { message: 'away' } })
  const bad = { source_url: 'http://no.example', claim: '' }
  const refused = await payForTools(through(client), { wallet: counting })({
    name: PAID_TOOL,
    arguments: bad,
  })
  t.match(refused, { isError: true, structuredContent: { error: { code: 'invalid_request' } } })
  t.equal(signed, 1)
})

t.test('autoevals: the scorer works beside its own scorers', async (t) => {
  const { bought, options } = openShop()
  const scorer: Scorer<string, Record<never, never>> = citationScorer(options)
  const output = `${CLAIM.slice(0, -1)} [history](${question.source_url}).`
  const score: Score = await ListContains({ output: [output], expected: ['a cited claim'], pairwiseScorer: scorer })
  t.match(score, { name: 'ListContains', score: 1 })
  t.equal(bought.length, 1)
  t.equal(bought[0]?.result.claim, 'The harbour was opened in 1874 history.')

  const wrong = await citationScorer(options)({ output: 'It was opened in 1900.', source_url: question.source_url })
  t.match(wrong, { name: 'Citation', score: 0, metadata: { verdict: { claim_support: 'contradicts' } } })
})

t.test('promptfoo: an assertion of the type javascript', async (t) => {
  const { bought, options } = openShop()
  const assertion = citationAssertion(options)
  const vars = { source_url: question.source_url }
  const good = await assertion(CLAIM, { vars })
  t.match(good, { pass: true, score: 1, reason: /^supports: /, metadata: { verdict: { claim_support: 'supports' } } })
  t.match(await assertion('Opened in 1900.', { vars }), { pass: false, score: 0, reason: /^contradicts: / })
  const config = { claim: CLAIM }
  t.match(await assertion('whatever', { vars, config }), { pass: true }, 'config goes before')
  t.equal(bought.length, 3)
  t.match(await citationAssertion({ ...options, threshold: 0 })('Opened in 1900.', { vars }), { pass: true, score: 0 })
})

const isInstalled = (name: string) => {
  try {
    return import.meta.resolve(name) !== ''
  } catch {
    return false
  }
}
const skip = isInstalled('promptfoo')
  ? false
  : 'promptfoo is not installed, because it brings 2 GB: its runner is not tried'

t.test('promptfoo: in its own runner', { skip }, async (t) => {
  const { bought, options } = openShop()
  const { default: promptfoo } = await import('promptfoo' as string)
  const suite = {
    prompts: ['When was it opened?'],
    providers: [async () => ({ output: CLAIM })],
    tests: [
      {
        vars: { source_url: question.source_url },
        assert: [{ type: 'javascript', value: citationAssertion(options) }],
      },
    ],
    writeLatestResults: false,
  }
  const evaluation = await promptfoo.evaluate(suite, { cache: false })
  const { stats, results } = await evaluation.toEvaluateSummary()
  t.match(stats, { successes: 1, failures: 0, errors: 0 }, JSON.stringify(results))
  t.match(results[0].gradingResult.componentResults[0], { pass: true, score: 1, reason: /^supports: / })
  t.equal(bought.length, 1)
})

t.test('a text without one readable page is graded without buying', async (t) => {
  const { bought, options } = openShop()
  const before = till.settled.length
  const score = async (output: string, more = {}) => citationScorer(options)({ output, ...more })
  t.match(await score(CLAIM), { score: 0, metadata: { reason: 'The text cites no page.' } })
  t.match(await score('See <https://a.example> and https://b.example.'), {
    score: null,
    metadata: { reason: /2 pages/ },
  })
  t.match(await score('https://a.example/x.'), { score: 0, metadata: { reason: 'The text makes no claim.' } })
  t.match(await score('x'.repeat(2001), { source_url: question.source_url }), { score: null })
  system.site.pages.set('/gone', { status: 404, body: 'gone' })
  const gone = await score(CLAIM, { source_url: system.site.url('/gone') })
  t.match(gone, { score: 0, metadata: { failure: { code: 'source_http_status' } } })
  t.equal(bought.length, 0)
  t.equal(till.settled.length, before)
  const poor = citationScorer({ service: new Countersign({ baseUrl: system.url('/') }) })
  await t.rejects(poor({ output: CLAIM, source_url: question.source_url }), { code: 'payment_required' })
})

t.test('a retryable failure is repeated with the same key, and others are not', async (t) => {
  const clock = buildClock()
  const failing = refuse(422, 'source_timeout', { retryable: true })
  const { baseUrl, received } = await play(t, failing, refuse(422, 'source_timeout', { retryable: true }), complete())
  const shop = { service: { baseUrl, clock }, clock }
  t.match(await citationScorer(shop)({ output: CLAIM, source_url: 'https://a.example' }), { score: 0.5 })
  t.equal(received.length, 3)
  t.equal(new Set(received.map(({ headers }) => headers['idempotency-key'])).size, 1)
  t.same(clock.waits, [1000, 2000])

  const final = await play(t, refuse(422, 'source_timeout', { retryable: true, headers: { 'retry-after': '61' } }))
  const late = citationScorer({ service: { baseUrl: final.baseUrl, clock }, clock })
  const error = await late({ output: CLAIM, source_url: 'https://a.example' }).catch((caught) => caught)
  t.ok(error instanceof CountersignError, 'a page that may answer later says nothing about the text')
  t.match(error, { code: 'source_timeout', retryAfter: 61 })
  const once = await play(t, failing)
  const single = citationScorer({ service: { baseUrl: once.baseUrl, clock }, clock, attempts: 1 })
  await t.rejects(single({ output: CLAIM, source_url: 'https://a.example' }), { code: 'source_timeout' })
})
