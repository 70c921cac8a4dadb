// Failures of the model server: which calls are repeated, which requests go back to the queue, which fail, and which calls
// are not made.
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { openThreads } from '../../server/threads/pool.ts'
import { AssessorBusyError, buildCircuit } from '../../workers/assessment/circuit.ts'
import { literalAssessor } from '../../workers/assessment/literal.ts'
import { buildSemaphore } from '../../workers/assessment/semaphore.ts'
import { type Asked, answer, message, type Reply, refuse, type Script, SILENT, verdictOn } from './messages-server.ts'
import { observationOf, openLab } from './semantic-lab.ts'

const TEXT = 'The harbour was opened in 1874. It has three piers.'
const CLAIM = 'The harbour was opened in 1874.'

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

t.test('a request that must wait longer goes back to the queue, and meanwhile no call goes to the model', async (t) => {
  let now = 1_000_000
  await using lab = await openLab(threads, () => refuse(429, 'rate_limit_error', { 'retry-after': '90' }), {
    now: () => now,
  })
  await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError', retryAfterSeconds: 90 })
  t.equal(lab.server.asked.length, 1)
  t.same(lab.pauses, [])
  t.equal(lab.assessor.pausedUntil?.getTime(), now + 90_000)
  lab.server.script = good
  await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError', retryAfterSeconds: 90 })
  t.equal(lab.server.asked.length, 1, 'not asked')
  now += 90_000
  t.equal(lab.assessor.pausedUntil, null)
  t.equal((await lab.assess(CLAIM, TEXT)).claim_support, 'supports')
})

t.test('three failures in a row return the request to the queue; five open the circuit breaker', async (t) => {
  let now = 1_000_000
  await using lab = await openLab(threads, () => refuse(529, 'overloaded_error'), { now: () => now })
  await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError' })
  t.equal(lab.server.asked.length, 3)
  t.equal(lab.assessor.pausedUntil, null)
  await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError', retryAfterSeconds: 15 })
  t.equal(lab.server.asked.length, 5)
  t.ok(lab.assessor.pausedUntil)
  t.equal(await lab.metric('countersign_assessor_paused'), 1)
  now += 15_000
  await t.rejects(
    lab.assess(CLAIM, TEXT),
    { name: 'AssessorBusyError', retryAfterSeconds: 30 },
    'one call tries, and fails',
  )
  t.equal(lab.server.asked.length, 6)
  now += 30_000
  lab.server.script = good
  t.equal((await lab.assess(CLAIM, TEXT)).claim_support, 'supports')
  t.equal(lab.assessor.pausedUntil, null)
})

t.test('a wrong key, an unknown model, no credit: no call is repeated, and the circuit opens at once', async (t) => {
  for (const [status, type] of [
    [401, 'authentication_error'],
    [402, 'billing_error'],
    [403, 'permission_error'],
    [404, 'not_found_error'],
  ] as const) {
    await using lab = await openLab(threads, () => refuse(status, type))
    await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError' })
    t.equal(lab.server.asked.length, 1)
    t.ok(lab.assessor.pausedUntil, `${status}`)
    t.match(
      lab.logged.filter(({ event }) => event === 'model_refused_call'),
      { length: 1 },
    )
    t.notMatch(JSON.stringify(lab.logged), /test-key|harbour/)
  }
})

t.test('a call that the model server rejects fails only its own request, which is not charged', async (t) => {
  await using lab = await openLab(threads, () => refuse(400, 'invalid_request_error'))
  for (let i = 0; i < 6; i++) await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AppError', code: 'assessment_failed' })
  t.equal(lab.server.asked.length, 6)
  t.equal(lab.assessor.pausedUntil, null)
})

t.test('the log of a refusal has status, type and request id, and no text of claim or page', async (t) => {
  for (const status of [400, 401, 413]) {
    const quoting = `cannot take: ${CLAIM} ${TEXT}`
    const headers = { 'request-id': 'req_011CSHoEeqs5C35K2UUqR7Fy' }
    await using lab = await openLab(threads, () => refuse(status, 'invalid_request_error', headers, quoting))
    await t.rejects(lab.assess(CLAIM, TEXT))
    const { time: _time, ...line } = lab.logged.find(({ event }) => event === 'model_refused_call') ?? {}
    t.same(line, {
      level: 50,
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

t.test('no log line of an assessment quotes claim or page, for any answer of the model', async (t) => {
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
    t.notMatch(JSON.stringify(lab.logged), /harbour|piers/)
  }
})

t.test('a slow server, one that stops in the middle of a response, and one that closes the connection', async (t) => {
  const hanging = Promise.withResolvers<void>()
  await using lab = await openLab(
    threads,
    first((_asked, response) => void response.once('close', hanging.resolve)),
    { timeoutMs: 800 },
  )
  t.equal((await lab.assess(CLAIM, TEXT)).claim_support, 'supports', 'slow once')
  await hanging.promise
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
  t.equal((await lab.assess(CLAIM, TEXT)).claim_support, 'supports', 'stuck in the middle')
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
  await lab.assess(CLAIM, TEXT)
  await lab.assess(CLAIM, TEXT)
  t.equal(lab.server.asked.length, 5, 'the circuit is open')
  t.equal(lab.assessor.pausedUntil, null, 'no call is refused')
  lab.server.script = () => '{'
  t.equal((await lab.assess(CLAIM, TEXT)).assessment_scope, 'literal_quotation_only')
})

t.test('calls that were in flight when the circuit breaker opened do not extend its pause', (t) => {
  let now = 0
  const circuit = buildCircuit(() => now)
  const leaves = Array.from({ length: 20 }, () => circuit.enter())
  for (const leave of leaves) leave.failed({})
  t.equal(circuit.opensAt, 15_000)
  now = 15_000
  const probe = circuit.enter()
  t.throws(() => circuit.enter(), AssessorBusyError, 'one at a time')
  probe.abandoned()
  circuit.enter().failed({ retryAfterMs: 3_600_000 })
  t.equal(circuit.opensAt, 315_000, 'never longer than five minutes')
  now = 315_000
  circuit.enter().succeeded()
  t.equal(circuit.opensAt, null)
  circuit.enter().failed({})
  t.equal(circuit.opensAt, null, 'a fresh start')
  t.end()
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

t.test('a model that does not answer is logged once, without its text, and again when it answers', async (t) => {
  let now = 1_000_000
  await using lab = await openLab(threads, () => refuse(529, 'overloaded_error', {}, 'the harbour is closed'), {
    now: () => now,
  })
  const logged = () =>
    lab.logged
      .filter(({ dependency }) => dependency === 'model scripted-1')
      .map(({ event, reason }) => [event, reason].filter(Boolean))
  await t.rejects(lab.assess(CLAIM, TEXT))
  t.same(logged(), [], 'three failures are no outage')
  await t.rejects(lab.assess(CLAIM, TEXT))
  await t.rejects(lab.assess(CLAIM, TEXT))
  t.same(logged(), [['dependency_away', 'overloaded (http_529)']])
  now += 60_000
  await t.rejects(lab.assess(CLAIM, TEXT))
  t.equal(logged().length, 1, 'a probe that fails says nothing new')
  now += 600_000
  lab.server.script = good
  await lab.assess(CLAIM, TEXT)
  t.same(logged().at(-1), ['dependency_back'])
})
