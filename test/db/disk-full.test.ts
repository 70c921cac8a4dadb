// Postgres with a full disk: it answers, and can store nothing. A trigger that fails like a write to a full disk simulates
// it.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { openRoomWatch } from '../../server/db/room.ts'
import { payingFetch, startSystem } from '../system.ts'

const FULL = `
  create function full_disk() returns trigger language plpgsql as $$ begin
    raise exception 'could not extend file "base/1/2": No space left on device' using errcode = 'disk_full';
  end $$`

t.test('a full disk of the database gives a retryable 503, and is not logged as an error of the service', async (t) => {
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
  t.match(await refused.json(), {
    error: { code: 'provider_unavailable', message: /^The storage of this service is full\. /, retryable: true },
  })
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
  const warnings = system.logged.filter(({ level }) => /^(warn|error|fatal)$/.test(String(level)))
  t.match(
    warnings.filter(({ dependency }) => dependency === 'room of the database'),
    [{ event: 'dependency_away', level: 'error', reason: /No space left on device/ }],
    'logged once',
  )
  t.same(
    warnings.filter(({ event }) => event === 'request_failed'),
    [],
  )
})

t.test('disk space counts as free after a time without failures, not after one successful call', async (t) => {
  const changes: unknown[] = []
  let now = 0
  const full = Object.assign(new Error('No space left on device'), { code: '53100' })
  const watch = openRoomWatch(
    (change) => changes.push(change.away),
    () => now,
  )
  watch.worked()
  watch.failed(new Error('of another kind'))
  t.same(changes, [])
  watch.failed(full)
  now = 14_000
  watch.worked()
  watch.failed(full)
  now = 28_000
  watch.worked()
  t.same(changes, [true, true])
  now = 29_000
  watch.worked()
  watch.worked()
  t.same(changes, [true, true, false])
})
