import t from 'tap'
import { readConfig } from '../../server/config.ts'

t.test('without a key no model is asked', (t) => {
  t.equal(readConfig({}).model, undefined)
  t.equal(readConfig({ ANTHROPIC_BASE_URL: 'http://127.0.0.1:8000' }).model, undefined)
  t.equal(readConfig({}).assessment.kind, 'literal')
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
    assessment: { fallback: 'none', concurrency: 8, timeoutMs: 45_000, windowTokens: 24_000 },
  })
  const hosted = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:8000/', ANTHROPIC_MODEL: 'org/model' }
  t.match(readConfig(hosted).model, { baseUrl: 'http://127.0.0.1:8000', model: 'org/model', prices: null })
  t.match(readConfig({ ...hosted, ANTHROPIC_PRICES: '2/10' }).model, { prices: { input: 2, output: 10 } })
  t.equal(readConfig({ ANTHROPIC_API_KEY: 'k', ANTHROPIC_MODEL: 'claude-opus-5-5' }).model?.prices, null)
  for (const wrong of [
    { ANTHROPIC_PRICES: 'cheap' },
    { ASSESSMENT_FALLBACK: 'maybe' },
    { ASSESSMENT_CONCURRENCY: '0' },
  ])
    t.throws(() => readConfig(wrong), { name: 'ConfigError' })
  t.end()
})
