// The log has one line for each verification that ended, with the figures that an operator needs.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { payingFetch, startSystem } from '../system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

const buy = (path: string) =>
  system.ask({
    key: randomUUID(),
    fetch: payingFetch(),
    headers: { prefer: 'wait=25' },
    body: { source_url: system.site.url(path), claim: 'The harbour was opened in 1874.' },
  })

t.test('one completed, one from the cache, one failed', async (t) => {
  t.equal((await buy('/harbour')).status, 200)
  t.equal((await buy('/harbour')).status, 200)
  t.equal((await buy('/missing')).status, 422)
  const ended = system.logged.filter(({ event }) => /^verification_(completed|failed)$/.test(String(event)))
  const { host } = new URL(system.site.url('/'))
  const completed = { event: 'verification_completed', request_id: /^[0-9a-f-]{36}$/, host, payment: 'offline' }
  t.match(ended, [
    {
      ...completed,
      verdict: 'not_assessed',
      cache_hit: false,
      seconds: { assess: Number, settle: Number },
    },
    { ...completed, cache_hit: true, seconds: { complete: Number } },
    { event: 'verification_failed', host, code: 'source_http_status', payment: 'not charged' },
  ])
  t.equal(ended.length, 3)
})
