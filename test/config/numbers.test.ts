// Whole numbers in variables: digits within the bounds, and nothing that only reads as a number.
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
