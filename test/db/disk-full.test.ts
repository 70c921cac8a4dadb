// Postgres whose disk is full: it answers, and can store nothing. What stands for the disk is a trigger that fails as a write does then.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { payingFetch, startSystem } from '../system.ts'

const FULL = `
  create function full_disk() returns trigger language plpgsql as $$ begin
    raise exception 'could not extend file "base/1/2": No space left on device' using errcode = 'disk_full';
  end $$`

t.test('a database without room is a 503 that a repeat gets over, and no fault of the service', async (t) => {
  await using system = await startSystem()
  await system.sql(FULL)
  const full = (table: string) =>
    system.sql(`create trigger full_disk before insert or update on ${table} for each row execute function full_disk()`)
  const room = (table: string) => system.sql(`drop trigger full_disk on ${table}`)

  await full('verification_requests')
  const key = randomUUID()
  const refused = await system.ask({ key })
  t.equal(refused.status, 503)
  t.match(refused.headers.get('retry-after'), /^[1-4]$/)
  t.match(await refused.json(), { error: { code: 'provider_unavailable', retryable: true } })
  await room('verification_requests')

  await full('accounts')
  const register = () =>
    fetch(system.url('/v1/register'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ handle: 'kelby' }),
    })
  const refusedHandle = await register()
  t.equal(refusedHandle.status, 503)
  t.match(await refusedHandle.json(), { error: { code: 'provider_unavailable' } })
  await room('accounts')
  t.equal((await register()).status, 201)

  const bought = await system.ask({ key, fetch: payingFetch(), headers: { prefer: 'wait=25' } })
  t.equal(bought.status, 200, 'by the same key')
  t.ok(
    system.logged.some(({ event, level }) => event === 'request_failed' && level === 50),
    'the operator is told',
  )
})
