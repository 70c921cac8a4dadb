// Logs: an outage is one line, then reminders at growing intervals, then its end; events that follow from the outage have
// level debug.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { UnavailableError } from '../server/errors.ts'
import { aboutRequest, openLog, openOutage, withSubject } from '../server/telemetry.ts'

function openTestLog() {
  const lines: Record<string, unknown>[] = []
  return { lines, log: openLog('trace', { write: (line) => lines.push(JSON.parse(line)) }) }
}

t.test('a dependency that fails once a second for an hour', async (t) => {
  const { lines, log } = openTestLog()
  let now = 0
  const outage = openOutage(log, 'redis', () => now)
  outage.worked()
  t.same(lines, [], 'nothing was away')
  const cause = new Error('connect ECONNREFUSED 127.0.0.1:9')
  for (; now < 3_600_000; now += 1000) outage.failed(new Error('outer', { cause }))
  outage.worked()
  outage.worked()
  t.match(lines[0], { event: 'dependency_away', dependency: 'redis', reason: cause.message, level: 'error' })
  t.notOk(JSON.stringify(lines).includes('telemetry.test.ts'), 'no stack')
  const reminders = lines
    .filter(({ event }) => event === 'dependency_still_away')
    .map(({ seconds }) => seconds as number)
  t.same(reminders.slice(0, 7), [10, 20, 40, 80, 160, 320, 640])
  t.ok(reminders.length > 10 && reminders.length < 14, `${reminders.length} in an hour`)
  t.match(lines.at(-1), { event: 'dependency_back', seconds: 3600, failures: 3600, level: 'info' })
  t.equal(lines.filter(({ event }) => event === 'dependency_back').length, 1)
  outage.failed(cause)
  t.match(lines.at(-1), { event: 'dependency_away' }, 'the next outage is logged again')
})

t.test('events that follow from a database that is away have level debug; others keep theirs', async (t) => {
  const { lines, log } = openTestLog()
  log.warn({ event: 'scan_failed', err: new UnavailableError('provider_unavailable', 'away') })
  const full = Object.assign(new Error('No space left on device'), { code: '53100' })
  log.error({ event: 'request_failed', err: full })
  log.error({ event: 'queue', err: new Error('once more', { cause: full }) })
  log.warn({ event: 'scan_failed', err: new UnavailableError('capacity_exceeded', 'busy') })
  log.error({ event: 'request_failed', err: new Error('a fault') })
  log.info('text alone')
  t.same(
    lines.map(({ level }) => level),
    ['debug', 'debug', 'debug', 'warn', 'error', 'info'],
  )
})

t.test('lines of work on a request have its id, whoever writes them, and no others', async (t) => {
  const { lines, log } = openTestLog()
  const call = (id: string) =>
    withSubject(undefined, async () => {
      log.info({ event: 'before' })
      await setImmediate()
      aboutRequest(id)
      await setImmediate()
      log.info({ event: 'after' })
    })
  await Promise.all([call('one'), call('two'), withSubject('three', async () => log.info({ event: 'job' }))])
  log.info({ event: 'outside' })
  aboutRequest('nobody')
  log.info({ event: 'own', request_id: 'mine' })
  t.same(
    lines.map(({ event, request_id }) => [event, request_id]),
    [
      ['before', undefined],
      ['before', undefined],
      ['job', 'three'],
      ['after', 'one'],
      ['after', 'two'],
      ['outside', undefined],
      ['own', 'mine'],
    ],
  )
})

t.test('pretty on request and never into a pipe by itself', async (t) => {
  const run = (format: string) =>
    execFileSync(
      process.execPath,
      [
        '-e',
        `import('./server/telemetry.ts').then(({ openLog }) => openLog('info', undefined, ${format}).info({ event: 'listening', address: 'here', api_key: 'k' }))`,
      ],
      { cwd: join(import.meta.dirname, '..'), encoding: 'utf8' },
    )
  t.match(JSON.parse(run('undefined')), { event: 'listening', api_key: '[redacted]' })
  t.match(run(`'pretty'`), /^\[\d\d:\d\d:\d\d\.\d+\] INFO: listening \{"address":"here","api_key":"\[redacted\]"\}\n$/)
})

t.test(
  'secret fields are redacted in the line and in two levels below it, and what was logged stays as it was',
  (t) => {
    const { lines, log } = openTestLog()
    const error = Object.assign(new Error('refused'), { payload: 'p', code: 'E' })
    const logged = {
      event: 'call',
      api_key: 'k0',
      'x402/payment': undefined,
      list: ['a', { recovery_token: 'r' }],
      headers: { authorization: 'Bearer', accept: 'text/html', nested: { 'idempotency-key': 'i', n: 1 } },
      deep: { deeper: { deepest: { api_key: 'k3' } } },
      at: new Date(0),
      cause: Object.assign(new Error('inner'), { signature: 's' }),
      err: error,
    }
    const before = structuredClone({ ...logged, err: null, cause: null })
    log.info(logged)
    t.match(lines[0], {
      event: 'call',
      api_key: '[redacted]',
      list: ['a', { recovery_token: '[redacted]' }],
      headers: { authorization: '[redacted]', accept: 'text/html', nested: { 'idempotency-key': '[redacted]', n: 1 } },
      deep: { deeper: { deepest: { api_key: 'k3' } } },
      at: '1970-01-01T00:00:00.000Z',
      cause: { signature: '[redacted]' },
      err: { message: 'refused', code: 'E', stack: /refused/ },
    })
    t.notOk('x402/payment' in (lines[0] ?? {}), 'a field without a value is not written')
    t.notMatch(lines[0], { err: { payload: 'p' } })
    t.same({ ...logged, err: null, cause: null }, before)
    log.child({ payment_sealed: 'bytes', kept: 'yes' }).info({ event: 'of a child' })
    t.match(lines[1], { event: 'of a child', payment_sealed: '[redacted]', kept: 'yes' })
    t.end()
  },
)
