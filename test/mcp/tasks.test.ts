// Tasks on the paid tool: a client that declares the extension gets a task and does not wait.
import { randomUUID } from 'node:crypto'
import {
  CancelTaskResultV2Schema,
  CreateTaskResultV2Schema,
  GetTaskResultV2Schema,
  UpdateTaskResultV2Schema,
} from '@modelcontextprotocol/ext-tasks/core/v2'
import t, { type Test } from 'tap'
import { claimsResult } from '../../server/interface/claims.ts'
import { holdPage, type Page } from '../site.ts'
import { type Outcome, openScriptedFacilitator, PAGE, startSystem } from '../system.ts'
import {
  CLAIMS_TOOL,
  callTool,
  expectCompleted,
  expectNonCompleted,
  KEY,
  type Manner,
  newArgs,
  openWallet,
  PAYMENT,
  post,
  readAnswer,
  signOrder,
  TOKEN,
  type ToolResult,
  termsOf,
} from './paid-tool.ts'

const EXTENSION = 'io.modelcontextprotocol/tasks'
const TASKS: Manner = { modern: true, capabilities: { extensions: { [EXTENSION]: {} } } }

const till = openScriptedFacilitator()
const system = await startSystem({
  overrides: { facilitator: till },
  env: { MCP_VERIFY_CLAIMS_ENABLED: 'true' },
})
t.teardown(() => system[Symbol.asyncDispose]())
const twinTill = openScriptedFacilitator()
const twin = await system.openTwin({ facilitator: twinTill }, { MCP_VERIFY_CLAIMS_ENABLED: 'false' })
t.teardown(() => twin[Symbol.asyncDispose]())
const url = system.url('/')

interface Schema {
  safeParse(value: unknown): { error?: Error }
}

/** Checks a value against the schema of the extension's own clients. */
function expectShape(t: Test, schema: Schema, value: unknown) {
  t.equal(schema.safeParse(value).error?.message, undefined, 'has the shape of the extension')
}

/** Sets the outcome of the next settlement, whichever worker makes it. */
function nextSettlement(outcome: Outcome) {
  const once: Outcome = () => {
    till.outcomes.length = twinTill.outcomes.length = 0
    return outcome()
  }
  till.outcomes.push(once)
  twinTill.outcomes.push(once)
}

/** Holds the next settlement until `release`; `reached` resolves when it was requested. */
function holdSettlement() {
  const reached = Promise.withResolvers<void>()
  const released = Promise.withResolvers<undefined>()
  nextSettlement(() => {
    reached.resolve()
    return released.promise
  })
  return { reached: reached.promise, release: () => released.resolve(undefined) }
}

interface Task extends ToolResult {
  taskId: string
  status: string
  statusMessage?: string
  createdAt: string
  lastUpdatedAt: string
  ttlMs: number | null
  pollIntervalMs?: number
  result?: ToolResult
}

const order = (page?: Page) => signOrder(system, page)

async function openTask(t: Test, page?: { status?: number; body: string }) {
  const ordered = await order(page)
  const task = (await callTool(url, { ...ordered.paid, ...TASKS })) as Task
  expectShape(t, CreateTaskResultV2Schema, task)
  await ordered.held.reached
  return { ...ordered, task }
}

async function ask(method: string, taskId: string, { at = url, manner = TASKS } = {}) {
  return readAnswer(await post(at, method, { taskId }, manner))
}

async function getTask(t: Test, taskId: string, at = url): Promise<Task> {
  const { result } = await ask('tasks/get', taskId, { at })
  expectShape(t, GetTaskResultV2Schema, result)
  t.equal(result?.taskId, taskId)
  return result as Task
}

t.test('a paid call becomes a task that any process can answer for', async (t) => {
  const { task, held, paid, unpaid } = await openTask(t)
  t.match(task, { resultType: 'task', status: 'working', ttlMs: null })
  t.equal(task.taskId, task._meta?.['service/recovery-token'], 'the id is the recovery token of the request')
  t.equal(task._meta?.[KEY], unpaid.meta[KEY])
  t.ok((task.pollIntervalMs ?? 0) >= 1000)
  for (const at of [url, twin.address]) {
    const working = await getTask(t, task.taskId, at)
    t.match(working, { status: 'working', createdAt: task.createdAt, ttlMs: null, statusMessage: /source/ })
    t.notOk(working.result)
  }
  const again = (await callTool(twin.address, { ...unpaid, ...TASKS })) as Task
  t.equal(again.taskId, task.taskId, 'the same call, the same task')

  held.release()
  const patient = await callTool(url, paid)
  const { bytes } = expectCompleted(t, patient)
  for (const at of [url, twin.address]) {
    const done = await getTask(t, task.taskId, at)
    t.equal(done.status, 'completed')
    t.equal(done.result?.resultType, 'complete')
    t.equal(expectCompleted(t, done.result as ToolResult).bytes, bytes)
    t.ok(Number(done.ttlMs) > 86_000_000)
  }
  expectCompleted(t, await callTool(url, { ...unpaid, ...TASKS }))
})

t.test('an answer that is known at once is not a task: terms, an error, a result', async (t) => {
  const { held, paid, args } = await order()
  t.ok(termsOf(await callTool(url, { args, ...TASKS })))
  const refused = await callTool(url, { args: { ...args, source_url: 'https://localhost/' }, ...TASKS })
  expectNonCompleted(t, refused, 'failed', 'source_blocked')
  held.release()
  const { bytes } = expectCompleted(t, await callTool(url, paid))
  t.equal(expectCompleted(t, await callTool(url, { ...paid, ...TASKS })).bytes, bytes)
})

t.test('a task reports the stage of the work', async (t) => {
  const settlement = holdSettlement()
  const { task, held, paid } = await openTask(t)
  held.release()
  await settlement.reached
  t.match(await getTask(t, task.taskId), { status: 'working', statusMessage: /being settled/, pollIntervalMs: 3000 })
  settlement.release()
  expectCompleted(t, await callTool(url, paid))
})

t.test('a payment that provably did not settle ends the task with the terms', async (t) => {
  nextSettlement(() => ({ kind: 'unpaid', reason: 'insufficient_funds' }))
  const { task, held, unpaid: repeated } = await openTask(t)
  held.release()
  t.ok(termsOf(await callTool(url, repeated)))
  const done = await getTask(t, task.taskId)
  t.equal(done.status, 'completed')
  t.ok(termsOf(done.result as ToolResult))
})

t.test('a failed verification is a completed task with an error', async (t) => {
  const { task, held, paid } = await openTask(t, { status: 404, body: 'no' })
  held.release()
  await callTool(url, paid)
  const done = await getTask(t, task.taskId)
  t.equal(done.status, 'completed')
  expectNonCompleted(t, done.result as ToolResult, 'failed', 'source_http_status')
})

t.test('cancelled before its source is read: nothing is charged, and the payment can be used again', async (t) => {
  const before = till.settled.length
  const { task, held, paid, args, payment, unpaid } = await openTask(t)
  const { result } = await ask('tasks/cancel', task.taskId, { at: twin.address })
  expectShape(t, CancelTaskResultV2Schema, result)
  t.match(await getTask(t, task.taskId), { status: 'cancelled', result: undefined })
  t.ok(termsOf(await callTool(url, unpaid)), 'the same call may be paid again')
  t.notOk((await ask('tasks/cancel', task.taskId)).error, 'cancelled a second time')

  // The worker that has the request gets its page and discards it.
  held.release()
  const anew = { args, meta: { [KEY]: randomUUID(), [PAYMENT]: payment } }
  expectCompleted(t, await callTool(url, anew))
  t.match(await getTask(t, task.taskId), { status: 'cancelled' })
  expectNonCompleted(t, await callTool(url, paid), 'failed', 'payment_conflict')
  t.ok(till.settled.length <= before + 1)
  const rows = await system.sql(
    `select l.outcome, l.reason from payment_ledger l join verification_requests r on r.id = l.request_id
     where r.key_hash = sha256(convert_to($1, 'UTF8'))`,
    [unpaid.meta[KEY]],
  )
  t.same(rows, [{ outcome: 'failed', reason: 'cancelled' }])
})

t.test('several claims on one page: terms of their number, a task, cancellation, and a result of all', async (t) => {
  const held = holdPage({ body: PAGE })
  const { source_url } = newArgs(system.site, held.page)
  const args = {
    source_url,
    claims: ['It was opened in 1874.', 'Fishing ended in 1962.'],
    context: 'The harbour of Kelby',
  }
  const order = { tool: CLAIMS_TOOL, args }
  const meta = { [KEY]: randomUUID() }
  const terms = termsOf(await callTool(url, { ...order, meta }))
  t.match(terms, { accepts: [{ amount: '40000' }], resource: { url: `mcp://tool/${CLAIMS_TOOL}` } })
  const payment = await openWallet().createPaymentPayload(terms)
  const task = await callTool(url, { ...order, meta: { ...meta, [PAYMENT]: payment }, ...TASKS })
  expectShape(t, CreateTaskResultV2Schema, task)
  const { result: cancelled } = await ask('tasks/cancel', String(task.taskId), { at: twin.address })
  expectShape(t, CancelTaskResultV2Schema, cancelled)
  t.match(await getTask(t, String(task.taskId)), { status: 'cancelled', result: undefined })
  t.match(termsOf(await callTool(url, { ...order, meta })), { accepts: [{ amount: '40000' }] }, 'may be paid again')
  const rows = await system.sql(
    `select l.outcome, l.reason, l.amount_atomic::text amount from payment_ledger l
     join verification_requests r on r.id = l.request_id where r.key_hash = sha256(convert_to($1, 'UTF8'))`,
    [meta[KEY]],
  )
  t.same(rows, [{ outcome: 'failed', reason: 'cancelled', amount: '40000' }])

  held.release()
  const done = await callTool(url, { ...order, meta: { [KEY]: randomUUID(), [PAYMENT]: payment } })
  const result = claimsResult.parse(done.structuredContent)
  t.equal(result.claims[0]?.claim_as_read, 'The harbour of Kelby was opened in 1874.')
  t.match(done.content[0]?.text, /^1\. not_assessed: It was opened in 1874\.[\s\S]*\n2\. not_assessed: Fishing/)
  t.ok([...(done.content[0]?.text ?? '')].length <= 2000)
  t.match(done._meta?.['x402/payment-response'], { success: true })
  const recovered = await callTool(url, { ...order, args: {}, meta: { [TOKEN]: done._meta?.[TOKEN] } })
  t.same(recovered.structuredContent, done.structuredContent)
  await t.rejects(callTool(twin.address, order), { code: -32602 }, 'not listed where it is not switched on')
})

t.test('cancelled too late: it is acknowledged, and the result is paid for and kept', async (t) => {
  const { task, held, paid } = await openTask(t)
  held.release()
  expectCompleted(t, await callTool(url, paid))
  const { result } = await ask('tasks/cancel', task.taskId)
  expectShape(t, CancelTaskResultV2Schema, result)
  t.match(await getTask(t, task.taskId), { status: 'completed' })
  expectCompleted(t, await callTool(url, paid))
})

t.test('an update is acknowledged and changes nothing', async (t) => {
  const { task, held, paid } = await openTask(t)
  const sent = await post(
    url,
    'tasks/update',
    { taskId: task.taskId, inputResponses: { x: { action: 'accept' } } },
    TASKS,
  )
  expectShape(t, UpdateTaskResultV2Schema, (await readAnswer(sent)).result)
  t.match(await getTask(t, task.taskId), { status: 'working' })
  held.release()
  expectCompleted(t, await callTool(url, paid))
})

t.test('a client that does not declare the extension cannot use tasks', async (t) => {
  const { task, held, paid } = await openTask(t)
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const response = await post(url, method, { taskId: task.taskId }, { modern: true })
    t.match(await readAnswer(response), {
      error: { code: -32021, data: { requiredCapabilities: { extensions: { [EXTENSION]: {} } } } },
    })
    t.ok((await ask(method, task.taskId, { manner: {} })).error, `${method} before 2026-07-28`)
  }
  t.match(await getTask(t, task.taskId), { status: 'working' }, 'nothing was cancelled')
  held.release()
  expectCompleted(t, await callTool(url, { ...paid, modern: true }))
})

t.test('an id that is not of a task is refused', async (t) => {
  const { task, held } = await openTask(t)
  const wrong = [`${task.taskId}x`, task.taskId.replace(/.$/, (c) => (c === 'A' ? 'B' : 'A')), randomUUID(), 'x', '']
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
    for (const taskId of wrong) t.match(await ask(method, taskId), { error: { code: -32602 } }, `${method} ${taskId}`)
  t.match(await getTask(t, task.taskId), { status: 'working' })
  held.release()
})

t.test('a task past its retention has expired', async (t) => {
  const { task, held, paid } = await openTask(t)
  held.release()
  const { result } = expectCompleted(t, await callTool(url, paid))
  await system.sql(`update verification_requests set changed_at = now() - interval '2 days' where id = $1`, [
    result.request_id,
  ])
  await using late = await system.openTwin()
  t.match(await ask('tasks/get', task.taskId, { at: late.address }), { error: { code: -32602, message: /expired/ } })
})

t.test('the server declares the extension', async (t) => {
  const { result } = await readAnswer(await post(url, 'server/discover', {}, { modern: true }))
  t.match(result?.capabilities, { extensions: { [EXTENSION]: {} } })
})
