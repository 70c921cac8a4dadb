import t from 'tap'
import { readConfig } from '../../server/config.ts'

t.test('without a key the verifier that comes with the product assesses, in every mode', (t) => {
  t.equal(readConfig({}).model, undefined)
  t.equal(readConfig({ ANTHROPIC_BASE_URL: 'http://127.0.0.1:8000' }).model, undefined)
  t.equal(readConfig({}).assessment.kind, 'local')
  t.equal(readConfig({ ASSESSMENT: 'local', ANTHROPIC_API_KEY: 'k' }).assessment.kind, 'local')
  t.equal(readConfig({ ASSESSMENT: 'local', ANTHROPIC_API_KEY: 'k' }).model, undefined)
  t.equal(readConfig({ ASSESSMENT: 'literal' }).assessment.kind, 'literal')
  t.end()
})

t.test('with a key the assessment is semantic, unless literal is asked for', (t) => {
  t.equal(readConfig({ ANTHROPIC_API_KEY: 'k' }).assessment.kind, 'semantic')
  t.equal(readConfig({ ANTHROPIC_API_KEY: 'k', ASSESSMENT: 'semantic' }).assessment.kind, 'semantic')
  t.match(readConfig({ ANTHROPIC_API_KEY: 'k', ASSESSMENT: 'literal' }), {
    model: undefined,
    assessment: { kind: 'literal' },
  })
  t.throws(() => readConfig({ ASSESSMENT: 'semantic' }), { name: 'ConfigError' })
  t.throws(() => readConfig({ ASSESSMENT: 'any' }), { name: 'ConfigError' })
  t.end()
})

t.test('a key is enough for Anthropic; another server needs its model named, and has no known prices', (t) => {
  t.match(readConfig({ ANTHROPIC_API_KEY: 'k' }), {
    model: { apiKey: 'k', baseUrl: undefined, model: /^claude-/, prices: { input: 0.1, output: 0.5 } },
    assessment: { fallback: 'none', concurrency: 8, timeoutMs: 45_000, windowTokens: 90_000 },
  })
  const hosted = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:8000/', ANTHROPIC_MODEL: 'org/model' }
  t.match(readConfig(hosted).model, { baseUrl: 'http://127.0.0.1:8000', model: 'org/model', prices: null })
  t.match(readConfig({ ...hosted, ANTHROPIC_PRICES: '2/10' }).model, { prices: { input: 2, output: 10 } })
  t.equal(readConfig({ ANTHROPIC_API_KEY: 'k', ANTHROPIC_MODEL: 'claude-opus-5-5' }).model?.prices, null)
  for (const wrong of [
    { ANTHROPIC_PRICES: 'cheap' },
    { ASSESSMENT_FALLBACK: 'maybe' },
    { VERIFIER_THREADS: '0' },
    { ASSESSMENT_CONCURRENCY: '0' },
  ])
    t.throws(() => readConfig(wrong), { name: 'ConfigError' })
  t.end()
})

t.test('what waits for the verifier waits in the queue: the concurrency follows its threads', (t) => {
  t.equal(readConfig({ VERIFIER_THREADS: '2' }).workerConcurrency, 8)
  t.equal(readConfig({ VERIFIER_THREADS: '64' }).workerConcurrency, 32)
  t.equal(readConfig({ VERIFIER_THREADS: '2', WORKER_CONCURRENCY: '20' }).workerConcurrency, 20)
  t.equal(readConfig({ ASSESSMENT: 'literal' }).workerConcurrency, 32)
  t.ok(readConfig({}).assessment.verifierThreads >= 1)
  t.end()
})

t.test('a server of the chat completions API is asked in place of Anthropic', (t) => {
  const local = { OPENAI_BASE_URL: 'http://127.0.0.1:11434/v1', OPENAI_MODEL: 'qwen3:8b' }
  t.match(readConfig(local), {
    model: {
      protocol: 'openai',
      baseUrl: 'http://127.0.0.1:11434/v1',
      model: 'qwen3:8b',
      apiKey: 'none',
      prices: null,
    },
    assessment: { kind: 'semantic', hasSecondReader: true },
  })
  t.match(readConfig({ OPENAI_API_KEY: 'k', OPENAI_MODEL: 'm' }).model, {
    protocol: 'openai',
    apiKey: 'k',
    baseUrl: undefined,
  })
  t.equal(readConfig({ ...local, ASSESSMENT_SECOND_READER: 'none' }).assessment.hasSecondReader, false)
  t.equal(readConfig({ ...local, ASSESSMENT: 'local' }).model, undefined)
  for (const wrong of [
    { OPENAI_MODEL: 'm' },
    { OPENAI_BASE_URL: 'http://127.0.0.1:8000' },
    { ...local, ANTHROPIC_API_KEY: 'k' },
  ])
    t.throws(() => readConfig(wrong), { name: 'ConfigError' })
  t.end()
})
