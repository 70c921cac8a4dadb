// Servers of the chat completions API, each played with its habits: what it ignores, drops or refuses must cost no verdict.
import t from 'tap'
import { openThreads } from '../../../server/threads/pool.ts'
import { openaiModel } from '../../../workers/assessment/semantic/openai.ts'
import {
  type Asked,
  answer,
  completion,
  type Reply,
  refuse,
  type Script,
  SILENT,
  verdictOn,
} from './messages-server.ts'
import { openLab } from './semantic-lab.ts'

const TEXT = 'The harbour was opened in 1874. It has three piers.'
const CLAIM = 'The harbour was opened in 1874.'
const threads = openThreads({ maxThreads: 2 })
t.teardown(() => threads[Symbol.asyncDispose]())

type Server = (asked: Asked, written: string) => Reply
const isTrial = (asked: Asked) => asked.claim.includes('lighthouse')
const right = (asked: Asked) => JSON.stringify(verdictOn(asked, isTrial(asked) ? '21 metres' : 'opened in', 'supports'))
const plain =
  (written: string, more = {}): Reply =>
  (_asked, response) =>
    answer(response, written, more)
const hasAny = (asked: Asked, ...names: string[]) => names.find((name) => name in asked.body)
const refusing =
  (name: string): Reply =>
  (asked, response) => {
    const refusal = refuse(400, 'invalid_request_error', {}, `Unsupported parameter: '${name}'`)
    return typeof refusal === 'function' ? refusal(asked, response) : undefined
  }

const SERVERS: Record<string, Server> = {
  'vLLM, which honours the schema': (_asked, written) => plain(written),
  'vLLM, with the reasoning in the answer': (_asked, written) =>
    plain(`<think>Is it {"parts": 3}?</think>\n${written}`),
  'llama.cpp, which drops what it does not know, and counts nothing': (_asked, written) =>
    plain(written, { usage: undefined, timings: { predicted_n: 20 } }),
  'Ollama, which ignores the format and writes prose around it': (_asked, written) =>
    plain(`Sure! Here is the comparison:\n\n\`\`\`json\n${written}\n\`\`\`\nLet me know if you need more.`),
  'LM Studio, which refuses reasoning_effort': (asked, written) =>
    hasAny(asked, 'reasoning_effort') ? refusing('reasoning_effort') : plain(written),
  'a gateway to a model that refuses max_tokens and temperature': (asked, written) => {
    const name = hasAny(asked, 'max_tokens', 'temperature')
    return name ? refusing(name) : plain(written)
  },
  'a gateway that refuses every parameter without naming one': (asked, written) =>
    hasAny(asked, 'max_tokens', 'reasoning_effort', 'temperature', 'response_format')
      ? refuse(422, 'unprocessable', {}, 'Extra inputs are not permitted')
      : plain(written),
  'a gateway with nulls for what is missing': (_asked, written) =>
    plain(written, { usage: null, system_fingerprint: null, service_tier: null }),
}

for (const [name, server] of Object.entries(SERVERS))
  t.test(name, async (t) => {
    const script: Script = (asked) => server(asked, right(asked))
    const trial: Reply = async (asked, response) => {
      const reply = server(asked, right(asked))
      if (typeof reply === 'function') await reply(asked, response)
    }
    await using lab = await openLab(threads, script, { open: openaiModel, trial })
    const found = await lab.assess(CLAIM, TEXT)
    t.match(found, { claim_support: 'supports', evidence: [{ quote: 'The harbour was opened in 1874.' }] })
    const [asked] = lab.server.asked
    t.equal(asked!.path, '/v1/chat/completions')
    t.equal(asked!.headers.authorization, 'Bearer test-key')
    t.notOk('tools' in asked!.body)
    t.equal(lab.server.asked.length, 1, 'what a server refuses is known before the first purchase')
    t.equal(lab.assessor.pausedUntil, null)
  })

t.test('what is asked for: a schema, no chance, little reasoning, a longest answer', async (t) => {
  await using lab = await openLab(threads, (asked) => verdictOn(asked, 'opened', 'supports'), { open: openaiModel })
  await lab.assess(CLAIM, TEXT)
  t.match(lab.server.asked[0]!.body, {
    model: 'scripted-1',
    temperature: 0,
    reasoning_effort: 'low',
    max_tokens: 1000,
    response_format: { type: 'json_schema', json_schema: { strict: true, schema: { type: 'object' } } },
    messages: [{ role: 'system' }, { role: 'user' }],
  })
  t.equal(await lab.metric('countersign_model_tokens_total'), 120)
})

t.test('a server that fails, and one that fails after it did the work: the question is repeated', async (t) => {
  const replies: [string, Reply][] = [
    ['refused', refuse(503, 'server_error')],
    ['closed before an answer', (_asked, response) => void response.destroy()],
    [
      'closed in the middle of the answer',
      (asked, response) => {
        const whole = JSON.stringify(completion(right(asked)))
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': whole.length })
        response.write(whole.slice(0, -40), () => response.destroy())
      },
    ],
    ['an error page', (_asked, response) => void response.end('<html>Bad gateway</html>')],
  ]
  for (const [name, reply] of replies) {
    const once = [reply]
    await using lab = await openLab(threads, (asked) => once.shift() ?? right(asked), { open: openaiModel })
    t.equal((await lab.assess(CLAIM, TEXT)).claim_support, 'supports', name)
    t.equal(lab.server.asked.length, 2, name)
    t.equal(await lab.metric('countersign_model_tokens_total'), 120, `${name}: only what was read is counted`)
  }
})

t.test('a refusal, a cut, garbage and silence fail the request as with any other server', async (t) => {
  const choice = (more: object) => ({ choices: [{ index: 0, message: { role: 'assistant', content: '' }, ...more }] })
  const cases: [string, Reply, Record<string, unknown>][] = [
    [
      'a filter',
      plain('', choice({ finish_reason: 'content_filter' })),
      { code: 'assessment_failed', message: /declined/ },
    ],
    ['a refusal', plain('', choice({ message: { refusal: 'No.' }, finish_reason: 'stop' })), { message: /declined/ }],
    [
      'a cut',
      plain('', choice({ message: { content: '{"par' }, finish_reason: 'length' })),
      { code: 'assessment_failed' },
    ],
    ['no choice', plain('', { choices: [] }), { code: 'assessment_failed' }],
    ['no choices', plain('', { choices: null }), { code: 'assessment_failed' }],
    ['garbage', 'I cannot do that as asked', { code: 'assessment_failed' }],
    ['silence', () => {}, { name: 'AssessorBusyError' }],
  ]
  for (const [name, reply, error] of cases) {
    await using lab = await openLab(threads, () => reply, { open: openaiModel, timeoutMs: 1500 })
    await t.rejects(lab.assess(CLAIM, TEXT), error as unknown as Error, name)
    t.equal(lab.assessor.pausedUntil, null, `${name}: one text closes nothing`)
  }
  await using lab = await openLab(threads, () => SILENT, { open: openaiModel })
  t.equal((await lab.assess(CLAIM, TEXT)).claim_support, 'insufficient_evidence')
})

t.test('a wrong server is named by its own settings', async (t) => {
  await using lab = await openLab(threads, () => SILENT, { open: openaiModel, trial: refuse(401, 'invalid_api_key') })
  await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError' })
  t.match(lab.circuit.problem, /check OPENAI_API_KEY/)
})

t.test('the key and the question stay with the server that is named, and no reply fills the memory', async (t) => {
  await using other = await openLab(threads, right, { open: openaiModel })
  const replies: [string, Reply][] = [
    [
      'a redirect',
      (_asked, response) => void response.writeHead(307, { location: `${other.server.url}/v1/chat/completions` }).end(),
    ],
    ['five megabytes', (asked, response) => void response.end(JSON.stringify(completion(right(asked))).padEnd(5e6))],
    ['five megabytes of refusal', (_asked, response) => void response.writeHead(400).end('x'.repeat(5e6))],
  ]
  for (const [name, reply] of replies) {
    await using lab = await openLab(threads, () => reply, { open: openaiModel })
    await t.rejects(lab.assess(CLAIM, TEXT), { name: 'AssessorBusyError' }, name)
  }
  t.equal(other.server.asked.length, 0)
})
