// Failures of the model server: which calls are repeated, which requests go back to the queue, which fail, and which calls
// are not made.
import type { ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { openThreads } from '../../../server/threads/pool.ts'
import { buildSemaphore } from '../../../server/threads/semaphore.ts'
import { literalAssessor } from '../../../workers/assessment/literal/assessor.ts'
import { type Asked, answer, message, type Reply, refuse, type Script, SILENT, verdictOn } from './messages-server.ts'
import { observationOf, openLab } from './semantic-lab.ts'

const TEXT = 'The harbour was opened in 1874. It has three piers.'
const OTHER = 'The harbour was opened in 1874. It has four piers.'
const CLAIM = 'The harbour was opened in 1874.'
type Answering = Exclude<Reply, object | string> | ((asked: Asked, response: ServerResponse) => void)

const threads = openThreads({ maxThreads: 2 })
t.teardown(() => threads[Symbol.asyncDispose]())
const good = (asked: Asked) => verdictOn(asked, 'opened in 1874', 'supports')
/** Gives each of these answers once, and correct answers after them. */
const first =
  (...replies: Reply[]) =>
  (asked: Asked) =>
    replies.shift() ?? good(asked)

t.test('429 and 529 are tried again after the time that the server states', async (t) => {
  await using lab = await openLab(
    threads,
    first(refuse(429, 'rate_limit_error', { 'retry-after': '3' }), refuse(529, 'overloaded_error')),
  )
  t.equal((await lab.assess(CLAIM, TEXT)).claim_support, 'supports')
  t.equal(lab.server.asked.length, 3)
  t.equal(lab.pauses[0], 3000)
  t.ok(lab.pauses[1]! >= 500 && lab.pauses[1]! <= 2000, `${lab.pauses[1]}`)
  lab.server.script = first(refuse(503, 'api_error', { 'retry-after-ms': '1200', 'retry-after': '60' }))
  await lab.assess(CLAIM, TEXT)
  t.equal(lab.pauses[2], 1200)
  const soon = new Date(Date.now() + 3000).toUTCString()
  lab.server.script = first(refuse(429, 'rate_limit_error', { 'retry-after': soon }))
  await lab.assess(CLAIM, TEXT)
  t.ok(lab.pauses[3]! > 0 && lab.pauses[3]! <= 3000, 'a date')
})

t.test('a request that must wait longer goes back to the queue', async (t) => {
  await using lab = await openLab(threads, () => refuse(429, 'rate_limit_error', { 'retry-after': '90' }))
  await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError', retryAfterSeconds: 90 })
  t.equal(lab.server.asked.length, 1)
  t.same(lab.pauses, [])
})

t.test('three failures in a row return the request to the queue', async (t) => {
  await using lab = await openLab(threads, () => refuse(529, 'overloaded_error'))
  await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError' })
  t.equal(lab.server.asked.length, 3)
})

t.test('a wrong key, an unknown model, no credit: no call is repeated', async (t) => {
  for (const [status, type] of [
    [401, 'authentication_error'],
    [402, 'billing_error'],
    [403, 'permission_error'],
    [404, 'not_found_error'],
  ] as const) {
    await using lab = await openLab(threads, () => refuse(status, type))
    await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError' })
    t.equal(lab.server.asked.length, 1)
    t.match(
      lab.logged.filter(({ event }) => event === 'model_refused_call'),
      { length: 1 },
    )
    t.notMatch(JSON.stringify(lab.logged), /test-key|harbour/)
  }
})

t.test(
  'temperature, thinking, effort and cache are set, and each is left out where the server refuses it',
  async (t) => {
    await using lab = await openLab(threads, good)
    await lab.assess(CLAIM, TEXT)
    const all = {
      temperature: 0,
      thinking: { type: 'disabled' },
      output_config: { effort: 'low', format: { type: 'json_schema' } },
      system: [{ cache_control: { type: 'ephemeral' } }],
    }
    t.match(lab.server.asked[0]!.body, all)
    for (const [name, left] of [
      ['temperature', { temperature: undefined, output_config: { effort: 'low' } }],
      ['effort', { temperature: 0, output_config: { effort: undefined } }],
      ['thinking', { thinking: undefined, temperature: 0 }],
      ['cache_control', { system: [{ cache_control: undefined }], temperature: 0 }],
      ['output_config', { output_config: undefined, temperature: 0 }],
    ] as const) {
      const trial: Reply = (asked, response) =>
        JSON.stringify(asked.body).includes(`"${name}"`)
          ? (refuse(400, 'invalid_request_error', {}, `${name}: extra inputs are not permitted`) as Answering)(
              asked,
              response,
            )
          : answer(response, verdictOn(asked, '21 metres', 'supports'))
      await using other = await openLab(threads, good, { trial })
      t.equal((await other.assess(CLAIM, TEXT)).claim_support, 'supports', name)
      t.match(other.server.asked[0]!.body, left, name)
      t.equal(other.server.trials, 2)
      t.match(
        other.logged.find(({ event }) => event === 'model_parameter_left_out'),
        { parameter: name },
      )
    }
  },
)

t.test('a call that the model server rejects fails only its own request, which is not charged', async (t) => {
  await using lab = await openLab(threads, () => refuse(400, 'invalid_request_error'))
  for (let i = 0; i < 6; i++) await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AppError', code: 'assessment_failed' })
  t.equal(lab.server.asked.length, 6)
})

t.test('the log of a refusal has status, type and request id, and no text of claim or page', async (t) => {
  for (const status of [400, 401, 413]) {
    const quoting = `cannot take: ${CLAIM} ${TEXT}`
    const headers = { 'request-id': 'req_011CSHoEeqs5C35K2UUqR7Fy' }
    await using lab = await openLab(threads, () => refuse(status, 'invalid_request_error', headers, quoting))
    await t.rejects(lab.assess(CLAIM, TEXT))
    const { time: _time, ...line } = lab.logged.find(({ event }) => event === 'model_refused_call') ?? {}
    t.same(line, {
      level: 'error',
      event: 'model_refused_call',
      outcome: status === 401 ? 'denied' : 'rejected',
      status,
      type: 'invalid_request_error',
      provider_request_id: headers['request-id'],
    })
    t.notMatch(JSON.stringify(lab.logged), /harbour|piers/)
    lab.server.script = () => refuse(status === 401 ? 400 : status, quoting, { 'request-id': 'a b: harbour' }, quoting)
    await t.rejects(lab.assess(CLAIM, TEXT))
    t.notMatch(JSON.stringify(lab.logged), /harbour|piers/, 'nor where type and id quote')
  }
})

t.test('above debug no log line of an assessment quotes claim or page, for any answer of the model', async (t) => {
  const quoting = `${CLAIM} ${TEXT}`
  const scripts: Script[] = [
    () => quoting,
    () => `{"evidence": "${quoting}"}`,
    () => (_asked, response) => void response.end(quoting),
    () => (_asked, response) => answer(response, quoting, { stop_reason: 'refusal' }),
    () => (_asked, response) => answer(response, quoting, { stop_reason: 'max_tokens' }),
    () => refuse(529, 'overloaded_error', {}, quoting),
  ]
  for (const script of scripts) {
    await using lab = await openLab(threads, script, { fallback: literalAssessor(threads) })
    await lab.assess(CLAIM, TEXT).catch(() => {})
    t.ok(lab.logged.length > 0)
    t.notMatch(
      JSON.stringify(lab.logged.filter(({ level }) => level !== 'trace' && level !== 'debug')),
      /harbour|piers/,
    )
    for (const { written } of lab.logged) t.ok(String(written ?? '').length <= 300)
  }
})

t.test('a slow server, one that stops in the middle of a response, and one that closes the connection', async (t) => {
  const hanging = Promise.withResolvers<void>()
  await using lab = await openLab(
    threads,
    first((_asked, response) => void response.once('close', hanging.resolve)),
    { timeoutMs: 800 },
  )
  await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError', retryAfterSeconds: 15 }, 'slow')
  await hanging.promise
  t.equal((await lab.assess(CLAIM, OTHER)).claim_support, 'supports', 'another text')
  const whole = JSON.stringify(message(JSON.stringify(SILENT)))
  lab.server.script = first(
    (_asked, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': whole.length })
      response.write(whole.slice(0, 40), () => response.destroy())
    },
    (_asked, response) => void response.destroy(),
  )
  t.equal((await lab.assess(CLAIM, TEXT)).claim_support, 'supports', 'broken off')
  const stuck: Reply = (_asked, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write(whole.slice(0, 40))
  }
  lab.server.script = first(stuck)
  await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError' }, 'stuck in the middle')
  await lab.assess(CLAIM, OTHER)
  lab.server.script = first((_asked, response) => void response.end('<html>Bad gateway</html>'))
  t.equal((await lab.assess(CLAIM, TEXT)).claim_support, 'supports', 'no JSON around it')
  lab.server.script = first((_asked, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`"${'x'.repeat(5 * 1024 * 1024)}"`)
  })
  t.equal((await lab.assess(CLAIM, TEXT)).claim_support, 'supports', 'five megabytes')
})

t.test('a redirect is not followed, because it would receive the API key', async (t) => {
  await using other = await openLab(threads, good)
  await using lab = await openLab(threads, () => (_asked, response) => {
    response.writeHead(307, { location: `${other.server.url}/v1/messages` })
    response.end()
  })
  await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError' })
  t.equal(other.server.asked.length, 0)
})

t.test('a call ends at the deadline of the payment and at the end of the process', async (t) => {
  const reached = Promise.withResolvers<void>()
  await using lab = await openLab(threads, () => () => reached.resolve())
  const stop = new AbortController()
  const task = { claim: CLAIM, observation: observationOf(TEXT) }
  const stopped = lab.assessor.assess({ ...task, signal: stop.signal })
  await reached.promise
  stop.abort(new Error('the process ends'))
  await t.rejects(stopped, { message: 'the process ends' })
  await t.rejects(lab.assessor.assess({ ...task, until: Date.now() - 1 }), { name: 'AssessorBusyError' })
  t.equal(lab.server.asked.length, 1, 'nothing is asked that cannot be answered in time')
  lab.server.script = () => refuse(429, 'rate_limit_error', { 'retry-after': '4' })
  await t.rejects(lab.assessor.assess({ ...task, until: Date.now() + 3000 }), {
    name: 'AssessorBusyError',
    retryAfterSeconds: 4,
  })
})

t.test('tokens and cost are counted, cached ones at their own price', async (t) => {
  await using lab = await openLab(threads, good, { prices: { input: 1, output: 5 } })
  await lab.assess(CLAIM, TEXT)
  t.equal(await lab.metric('countersign_model_tokens_total'), 1120)
  t.ok(Math.abs((await lab.metric('countersign_model_usd_total')) - (100 + 1250 + 5 * 20) / 1e6) < 1e-12)
  t.match(
    lab.logged.find(({ event }) => event === 'assessed'),
    { questions: 1, tokens: 1120 },
  )
  await using unpriced = await openLab(threads, good, { prices: null })
  await unpriced.assess(CLAIM, TEXT)
  t.equal(await unpriced.metric('countersign_model_usd_total'), 0)
})

t.test('with a literal fallback the literal assessor replaces the model, and the result says so', async (t) => {
  const fallback = literalAssessor(threads)
  await using lab = await openLab(threads, () => refuse(529, 'overloaded_error'), { fallback })
  const found = await lab.assess(CLAIM, TEXT)
  t.match(found, {
    assessment_scope: 'literal_quotation_only',
    claim_support: 'not_assessed',
    procedure: fallback.procedure,
  })
  t.ok(found.risk_flags.includes('literal_fallback'))
  t.equal(lab.server.asked.length, 3)
  t.equal(lab.assessor.pausedUntil, null, 'no call is refused')
})

t.test('the semaphore admits its number of callers in order, and drops callers that gave up', async (t) => {
  const semaphore = buildSemaphore(2)
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const begun: number[] = []
  const stop = new AbortController()
  const never = new AbortController().signal
  const passing = gates.map((gate, i) =>
    semaphore.pass(
      () => {
        begun.push(i)
        return gate.promise
      },
      i === 2 ? stop.signal : never,
    ),
  )
  await turn()
  t.same(begun, [0, 1])
  t.equal(semaphore.waiting, 2)
  stop.abort(new Error('gave up'))
  await t.rejects(passing[2]!, { message: 'gave up' })
  gates[1]!.reject(new Error('failed'))
  await t.rejects(passing[1]!, { message: 'failed' })
  await turn()
  t.same(begun, [0, 1, 3], 'a failure frees its place')
  gates[0]!.resolve()
  gates[3]!.resolve()
  await Promise.all([passing[0], passing[3]])
  await t.rejects(
    semaphore.pass(async () => {}, stop.signal),
    { message: 'gave up' },
  )
  await semaphore.pass(async () => {}, never)
})
