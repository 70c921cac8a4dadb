// Numbers in variables: digits within the bounds, and nothing that only reads as a number.
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { problemsOf } from '../problems.ts'

t.test('a blank is not 0, which would switch the limit off', async (t) => {
  for (const value of [' ', '\t', '0x10', '1e2', '+5', '-5', '5 ', '1.0', '0b1', 'none'])
    for (const name of [
      'RATE_LIMIT_PER_MINUTE',
      'MAX_IN_FLIGHT_PER_PAYER',
      'TRUST_PROXY',
      'PORT',
      'DATABASE_CONNECTIONS',
    ])
      t.match(problemsOf({ [name]: value }), [new RegExp(`^${name}: must be a whole number`)], `${name}=${value}`)
})

t.test('a share or a time is digits with a point or without one', async (t) => {
  for (const name of ['ASSESSMENT_TIMEOUT_SECONDS', 'OTEL_TRACES_SAMPLER_ARG']) {
    for (const value of [' ', '\t', '0x1', '1e0', '+1', '-1', '1 ', '1.', '0b1', '1,0', 'Infinity', 'none'])
      t.match(problemsOf({ [name]: value }), [new RegExp(`^${name}: must be a number in digits`)], `${name}=${value}`)
    for (const value of ['110.1', '0.04', '1000'].slice(name === 'OTEL_TRACES_SAMPLER_ARG' ? 2 : 0))
      t.match(problemsOf({ [name]: value }), [new RegExp(`^${name}: Too `)], `${name}=${value}`)
  }
  const { assessment, tracing } = readConfig({
    ASSESSMENT_TIMEOUT_SECONDS: '0.05',
    OTEL_TRACES_SAMPLER_ARG: '.25',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318/',
  })
  t.equal(assessment.timeoutMs, 50)
  t.match(tracing, { samplerRatio: 0.25, endpoint: 'http://127.0.0.1:4318' })
})

t.test('digits count, within the bounds', async (t) => {
  t.equal(readConfig({ RATE_LIMIT_PER_MINUTE: '0' }).rateLimitPerMinute, 0)
  t.equal(readConfig({ PORT: '65535' }).port, 65_535)
  t.equal(readConfig({ PORT: '' }).port, 8402, 'empty is unset')
  for (const [name, value] of [
    ['PORT', '65536'],
    ['WORKER_CONCURRENCY', '0'],
    ['DATABASE_CONNECTIONS', '101'],
  ] as const)
    t.match(problemsOf({ [name]: value }), [new RegExp(`^${name}: `)], `${name}=${value}`)
})
