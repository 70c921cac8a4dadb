import pg from 'pg'
import t from 'tap'
import { openDatabase } from '../../server/db/pool.ts'
import { buildAssessors } from '../../server/verification/assessors.ts'
import { openTestDatabase } from '../database.ts'

t.test('callers are turned away only while every live worker is paused', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  await using opened = new AsyncDisposableStack()
  opened.defer(() => db.end())
  const tables = new pg.Client({ connectionString: database.url })
  await tables.connect()
  opened.defer(() => tables.end())
  const beat = (pool: string, paused: string, ago = '0 s') =>
    tables.query(
      `insert into worker_beats (pool_id, methodology, beat_at, assessor_paused_until)
       values ($1, 'm', now() - $2::interval, now() + $3::interval)
       on conflict (pool_id) do update set beat_at = excluded.beat_at, assessor_paused_until = excluded.assessor_paused_until`,
      [pool, ago, paused],
    )
  let now = 0
  const assessors = buildAssessors(db, () => now, 1000)
  const next = () => {
    now += 1000
    return assessors.requireOne()
  }
  await t.resolves(next(), 'no worker: nothing is known')
  await beat('a', '90 s')
  await t.rejects(next(), { code: 'provider_unavailable', headers: { 'retry-after': '90' } })
  await beat('b', '-1 s')
  await t.rejects(assessors.requireOne(), { code: 'provider_unavailable' }, 'known for a second')
  await t.resolves(next(), 'one of two goes on')
  await beat('b', '20 s')
  await t.rejects(next(), { code: 'provider_unavailable', headers: { 'retry-after': '20' } }, 'the first to go on')
  await beat('a', '90 s', '2 min')
  await tables.query(`update worker_beats set assessor_paused_until = null where pool_id = 'b'`)
  await t.resolves(next(), 'the dead do not count')
})
