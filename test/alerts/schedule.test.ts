// The retry schedule: its table, its jitter, and its end.
import { readFileSync } from 'node:fs'
import t from 'tap'
import { decide, GIVE_UP_SECONDS, JITTER, SCHEDULE_SECONDS } from '../../server/alerts/schedule.ts'

const alert = (attempts: number, more: object = {}) => ({
  id: 'wh_0',
  type: 'watchdog.missed',
  event_seq: 1,
  body: '{}',
  pending: true,
  attempts,
  age_seconds: 0,
  traceparent: null,
  tracestate: null,
  ...more,
})
const answer = (status: number, more: object = {}) => ({ status, retryAfterSeconds: null, disable: false, ...more })

t.test('the waits are those of the table, up to a fifth longer or shorter', async (t) => {
  t.same(SCHEDULE_SECONDS, [0, 5, 20, 60, 180, 600, 1800, 3600, 7200, 14_400, 28_800, 28_800])
  for (const [attempts, pause] of SCHEDULE_SECONDS.slice(1).entries())
    for (const [random, factor] of [
      [0, 1 - JITTER],
      [0.5, 1],
      [1, 1 + JITTER],
    ] as const) {
      const decision = decide(alert(attempts), null, () => random)
      t.equal(decision.outcome, 'retry')
      if (decision.outcome === 'retry')
        t.ok(Math.abs(decision.seconds - pause * factor) < 1e-6, `${decision.seconds} s`)
    }
  t.same(decide(alert(11), null), { outcome: 'given up' })
})

t.test('the first retry comes within 10 seconds with any jitter', async (t) => {
  for (const random of [0, 0.999999]) {
    const decision = decide(alert(0), null, () => random)
    t.ok(decision.outcome === 'retry' && decision.seconds >= 4 && decision.seconds <= 6)
  }
})

t.test('statuses', async (t) => {
  for (const status of [200, 201, 202, 204, 299])
    t.same(decide(alert(0), answer(status)), { outcome: 'delivered', disable: false }, String(status))
  for (const status of [300, 301, 302, 304, 307, 400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 503, 504])
    t.equal(decide(alert(0), answer(status)).outcome, 'retry', String(status))
  t.same(decide(alert(0), answer(410)), { outcome: 'unwanted' })
  t.same(decide(alert(0), answer(404, { disable: true })), { outcome: 'unwanted' })
  t.same(decide(alert(0), answer(200, { disable: true })), { outcome: 'delivered', disable: true })
})

t.test('Retry-After never makes a wait shorter, so a receiver cannot use up the schedule', async (t) => {
  const wait = (attempts: number, status: number, retryAfterSeconds: number) => {
    const decision = decide(alert(attempts), answer(status, { retryAfterSeconds }), () => 0.5)
    return decision.outcome === 'retry' && decision.seconds
  }
  t.equal(wait(0, 429, 1), 5)
  t.equal(wait(0, 429, 30), 30)
  t.equal(wait(0, 503, 7200), 3600)
  t.equal(wait(9, 503, 30), 28_800)
  t.equal(wait(0, 500, 30), 5)
})

t.test('an alert that waited for longer than a schedule lasts is tried once and then given up', async (t) => {
  const longest = SCHEDULE_SECONDS.reduce<number>((sum, pause) => sum + pause * (1 + JITTER) + 15, 0)
  t.ok(GIVE_UP_SECONDS > longest, 'it cuts no schedule short')
  t.equal(decide(alert(0, { age_seconds: GIVE_UP_SECONDS }), null).outcome, 'retry')
  t.same(decide(alert(0, { age_seconds: GIVE_UP_SECONDS + 1 }), null), { outcome: 'given up' })
  t.same(decide(alert(0, { age_seconds: GIVE_UP_SECONDS + 1 }), answer(200)), { outcome: 'delivered', disable: false })
})

t.test('a settled alert is tried once', async (t) => {
  t.same(decide(alert(3, { pending: false }), null), { outcome: 'given up' })
  t.same(decide(alert(3, { pending: false }), answer(200)), { outcome: 'delivered', disable: false })
})

t.test('docs/guide/alerts.md has the same schedule', async (t) => {
  const guide = readFileSync(new URL('../../docs/guide/alerts.md', import.meta.url), 'utf8')
  const [, written = ''] = guide.match(/after waits of ([^.]*?)\. Each wait/s) ?? []
  const units: Record<string, number> = { s: 1, min: 60, h: 3600 }
  const seconds = [...written.matchAll(/(\d+) (s|min|h)\b/g)].map(([, n, unit = '']) => Number(n) * (units[unit] ?? 0))
  t.same(seconds, SCHEDULE_SECONDS.slice(1))
})
