// What a stranger's text can cause, and what only our own question decides: when a model's server gets no questions.
import t, { type Test } from 'tap'
import { openThreads, type Threads } from '../../../server/threads/pool.ts'
import { literalAssessor } from '../../../workers/assessment/literal/assessor.ts'
import { type Asked, answer, type Reply, refuse, type Script, verdictOn } from './messages-server.ts'
import { type LabOptions, openLab } from './semantic-lab.ts'

const CLAIM = 'The harbour was opened in 1874.'
const HOSTILE = 'The harbour was opened in 1874. Zurrfex.'
const honest = (i: number) => `The harbour was opened in 1874. It has ${i} piers.`
const good = (asked: Asked) => verdictOn(asked, 'opened in 1874', 'supports')
const isHostile = (asked: Asked) => [...asked.lines.values()].some((line) => line.includes('Zurrfex'))
const silence: Reply = () => {}

const threads = openThreads({ maxThreads: 2 })
t.teardown(() => threads[Symbol.asyncDispose]())

/** A lab whose clock and timers the test moves. */
async function openClocked(script: Script, options: LabOptions = {}, by: Threads = threads) {
  let now = 1_000_000
  const due: { at: number; work: () => void }[] = []
  const lab = await openLab(by, script, {
    timeoutMs: 1200,
    now: () => now,
    schedule: (work, ms) => void due.push({ at: now + ms, work }),
    ...options,
  })
  return {
    lab,
    move(ms: number) {
      now += ms
      for (const { work } of due.filter(({ at }) => at <= now)) work()
      due.splice(0, due.length, ...due.filter(({ at }) => at > now))
    },
    /** Waits until our question was answered so often, and every call has ended. */
    async tried(times: number) {
      const calls = () => lab.metric('countersign_model_calls_total')
      while (lab.server.trials < times || (await calls()) < lab.server.trials + lab.server.asked.length)
        await new Promise(setImmediate)
      await new Promise(setImmediate)
    },
    [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose](),
  }
}
const UNPROVED = 'it has not answered its first question yet'

const isAway = async (t: Test, assessing: Promise<unknown>, message: RegExp) =>
  t.rejects(assessing, { name: 'AssessorBusyError', message })

t.test('three slow questions about one page never close the sale for others', async (t) => {
  await using house = await openClocked((asked) => (isHostile(asked) ? silence : good(asked)))
  const { lab } = house
  for (let i = 0; i < 3; i++) {
    await isAway(t, lab.assess(`${CLAIM} ${i}`, HOSTILE), i === 0 ? /timeout/ : /timed out/)
    t.equal(lab.assessor.pausedUntil, null, 'not paused')
  }
  t.equal(lab.server.asked.length, 1, 'the text that timed out gets no further turn')
  t.equal((await lab.assess(CLAIM, honest(1))).claim_support, 'supports', 'another text is asked about')
  await isAway(t, lab.assess(CLAIM, HOSTILE), /timeout/)
  t.equal(lab.server.asked.length, 3, 'after another text had its answer, it has one more turn')
  await isAway(t, lab.assess(CLAIM, HOSTILE), /timed out/)
  t.equal(lab.server.asked.length, 3)
  t.equal(lab.assessor.pausedUntil, null)
})

const laneOf = (payer: string) => ({ payer, domain: `${payer}.test`, isFree: false })

/** A house whose model answers only when it is told to, and how many texts were made ready for questions. */
async function openHeld(mayAnswer: (asked: Asked) => boolean) {
  const held: (() => void)[] = []
  const hold = (asked: Asked): Reply =>
    mayAnswer(asked) ? good(asked) : (_, response) => void held.push(() => answer(response, good(asked)))
  let planned = 0
  const counted: Threads = {
    ...threads,
    async run<T>(...call: Parameters<Threads['run']>) {
      const done = await threads.run<T>(...call)
      planned++
      return done
    },
  }
  const house = await openClocked(hold, { timeoutMs: 10_000 }, counted)
  await house.tried(1)
  return {
    lab: house.lab,
    held,
    async planned(times: number) {
      while (planned < times) await new Promise(setImmediate)
      await new Promise(setImmediate)
    },
    /** Answers whatever is asked from now on. */
    open() {
      house.lab.server.script = good
      for (const give of held.splice(0)) give()
    },
    [Symbol.asyncDispose]: () => house[Symbol.asyncDispose](),
  }
}

t.test('texts for which the model is slow leave half of its places to others', async (t) => {
  await using house = await openHeld((asked) => !isHostile(asked))
  const { lab } = house
  const ended: number[] = []
  const slow = Array.from({ length: 10 }, (_, i) =>
    lab
      .assess(CLAIM, `${HOSTILE} ${i}`, {}, laneOf(`slow ${i}`))
      .catch(({ name }: Error) => name)
      .finally(() => ended.push(i)),
  )
  await house.planned(10)
  const found = await lab.assess(CLAIM, honest(1), {}, laneOf('honest'))
  t.equal(found.claim_support, 'supports')
  const first = lab.server.asked.slice(0, 4).map(({ lines }) => Number([...lines.values()].at(-1)?.split(' ').at(-1)))
  t.equal(first.filter((i) => !ended.includes(i)).length, 2, 'two of the first four go on')
  house.open()
  await Promise.all(slow)
})

t.test('who had no question lately comes before who has many', async (t) => {
  await using house = await openHeld(() => false)
  const { lab, held } = house
  const busy = Array.from({ length: 8 }, (_, i) => lab.assess(CLAIM, honest(i), {}, laneOf('busy')))
  await house.planned(8)
  const quiet = lab.assess(CLAIM, honest(99), {}, laneOf('quiet'))
  await house.planned(9)
  while (held.length < 4) await new Promise(setImmediate)
  held.shift()?.()
  while (lab.server.asked.length < 5) await new Promise(setImmediate)
  t.match([...lab.server.asked[4]!.lines.values()].join(' '), /99 piers/)
  house.open()
  await Promise.all([...busy, quiet])
})

t.test('without another text, our own question gives a text another turn, ever more rarely', async (t) => {
  await using house = await openClocked((asked) => (isHostile(asked) ? silence : good(asked)))
  const { lab, move } = house
  await isAway(t, lab.assess(CLAIM, HOSTILE), /timeout/)
  await house.tried(2)
  const turns: number[] = []
  for (let seconds = 0; seconds < 60; seconds += 5) {
    const before = lab.server.asked.length
    const trials = lab.server.trials
    move(5000)
    if (seconds === 10 || seconds === 40) await house.tried(trials + 1)
    await t.rejects(lab.assess(CLAIM, HOSTILE), { name: 'AssessorBusyError' })
    if (lab.server.asked.length > before) {
      turns.push(seconds + 5)
      await house.tried(trials + 2)
    }
  }
  t.same(turns, [15, 45])
})

t.test('refusals, garbage and errors that one text causes count against it alone', async (t) => {
  const replies: [string, Reply, { code?: string; name?: string }][] = [
    ['refusals', (_asked, response) => answer(response, '', { stop_reason: 'refusal' }), { code: 'assessment_failed' }],
    ['garbage', 'no', { code: 'assessment_failed' }],
    ['errors', refuse(500, 'api_error'), { name: 'AssessorBusyError' }],
    ['a wrong key, says the gateway', refuse(403, 'permission_error'), { name: 'AssessorBusyError' }],
  ]
  for (const [name, reply, error] of replies) {
    await using house = await openClocked((asked) => (isHostile(asked) ? reply : good(asked)))
    for (let i = 0; i < 6; i++) await t.rejects(house.lab.assess(CLAIM, HOSTILE), error as Error)
    t.equal(house.lab.assessor.pausedUntil, null, name)
    t.equal((await house.lab.assess(CLAIM, honest(1))).claim_support, 'supports', name)
  }
})

t.test('while our own question fails, nothing is asked; it is repeated after pauses that grow', async (t) => {
  await using house = await openClocked(() => refuse(529, 'overloaded_error'))
  const { lab, move, tried } = house
  await tried(1)
  t.equal(lab.assessor.pausedUntil, null)
  lab.server.trial = refuse(529, 'overloaded_error')
  move(2000)
  await t.rejects(lab.assess(CLAIM, honest(1)), { name: 'AssessorBusyError' })
  await tried(2)
  t.equal(lab.assessor.pausedUntil?.getTime(), 1_000_000 + 2000 + 15_000)
  t.equal(lab.circuit.problem, 'it answers HTTP 529')
  const asked = lab.server.asked.length
  await isAway(t, lab.assess(CLAIM, honest(2)), /HTTP 529/)
  t.equal(lab.server.asked.length, asked, "no stranger's question tries whether the server is back")
  move(15_000)
  await tried(3)
  t.equal(lab.assessor.pausedUntil?.getTime(), 1_000_000 + 2000 + 15_000 + 30_000)
  lab.server.trial = null
  lab.server.script = good
  move(30_000)
  await tried(4)
  t.equal(lab.assessor.pausedUntil, null)
  t.equal((await lab.assess(CLAIM, honest(3))).claim_support, 'supports')
  const outage = lab.logged.filter(({ dependency }) => dependency === 'model scripted-1').map(({ event }) => event)
  t.same(outage, ['dependency_away', 'dependency_back'], 'logged once each')
})

t.test('a server that is wrong from the start is never asked about a page, and says why in words', async (t) => {
  const cases: [reply: Reply, problem: RegExp][] = [
    [refuse(401, 'authentication_error'), /^it refuses the key with HTTP 401; check ANTHROPIC_API_KEY$/],
    [
      refuse(404, 'not_found_error'),
      /^it knows no such path or model \(HTTP 404\); check ANTHROPIC_BASE_URL and ANTHROPIC_MODEL$/,
    ],
    [refuse(402, 'billing_error'), /no credit/],
    [
      refuse(400, 'invalid_request_error', {}, 'model: too old'),
      /^it refuses the request with HTTP 400: .*model: too old/,
    ],
    ['All is well.', /^it answered, but not in the form that was asked for \(.*\): "All is well\."$/],
    [(_asked, response) => answer(response, '', { stop_reason: 'refusal' }), /declined/],
    [
      (_asked, response) => void response.setHeader('content-type', 'application/json').end('<h1>It works</h1>'),
      /^its answer is not JSON; check ANTHROPIC_BASE_URL$/,
    ],
    [(_asked, response) => void response.destroy(), /cannot be reached/],
    [silence, /no answer in time/],
  ]
  for (const [trial, problem] of cases) {
    await using house = await openClocked(good, { trial, timeoutMs: 1500, fallback: undefined })
    t.ok(house.lab.assessor.pausedUntil, 'nothing is sold before the first answer')
    t.equal(house.lab.circuit.problem, UNPROVED)
    await t.rejects(house.lab.assess(CLAIM, honest(1)), { name: 'AssessorBusyError' })
    t.equal(house.lab.server.asked.length, 0)
    t.match(house.lab.circuit.problem, problem)
    t.notMatch(JSON.stringify(house.lab.logged), /test-key/)
  }
})

t.test('with a fallback nothing is paused, and a text that timed out is assessed by it', async (t) => {
  const script: Script = (asked) => (isHostile(asked) ? silence : good(asked))
  await using house = await openClocked(script, { fallback: literalAssessor(threads) })
  const slow = await house.lab.assess(CLAIM, HOSTILE)
  t.match(slow, { assessment_scope: 'literal_quotation_only' })
  t.ok(slow.risk_flags.includes('literal_fallback'))
  t.equal(house.lab.assessor.pausedUntil, null)
  t.equal((await house.lab.assess(CLAIM, honest(1))).assessment_scope, 'source_local_semantic_support')
})
