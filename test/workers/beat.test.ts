// Beats of worker pools, and the rescue of jobs whose pool has no fresh beat.
import pg from 'pg'
import t from 'tap'
import { openDatabase } from '../../server/db/pool.ts'
import { openLog, openMetrics } from '../../server/telemetry.ts'
import { BEAT_SECONDS, beat, endBeat, rescue, STALE_SECONDS } from '../../workers/beat.ts'
import type { Work } from '../../workers/context.ts'
import { openTestDatabase } from '../database.ts'

async function openWard() {
  await using opened = new AsyncDisposableStack()
  const { url } = opened.use(await openTestDatabase())
  const tables = new pg.Pool({ connectionString: url, max: 3 })
  tables.on('error', () => {})
  opened.defer(() => tables.end())
  const db = await openDatabase(url, { maxConnections: 2 })
  opened.defer(() => db.end())
  const closing = opened.move()
  const work = { db, log: openLog('silent'), metrics: openMetrics(), methodology: 'any', assessor: {} } as Work
  return { tables, work, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

/** Adds a job that a pool has held for so many seconds. */
async function lockJob(tables: pg.Pool, pool: string, seconds: number) {
  await tables.query(`select graphile_worker.add_job('verify_request', job_key => $1)`, [`${pool} ${seconds}`])
  await tables.query(
    `update graphile_worker._private_jobs set locked_by = $1, locked_at = now() - $2 * interval '1 second', attempts = 1
     where key = $3`,
    [pool, seconds, `${pool} ${seconds}`],
  )
}

async function free(tables: pg.Pool): Promise<string[]> {
  const { rows } = await tables.query('select key from graphile_worker.jobs where locked_by is null order by key')
  return rows.map(({ key }) => key)
}

async function age(tables: pg.Pool, pool: string, seconds: number) {
  await tables.query(`update worker_beats set beat_at = now() - $2 * interval '1 second' where pool_id = $1`, [
    pool,
    seconds,
  ])
}

t.test('a dead worker is noticed well within 30 seconds', (t) => {
  t.ok(STALE_SECONDS + BEAT_SECONDS < 20)
  t.ok(STALE_SECONDS >= 3 * BEAT_SECONDS, 'a pool that misses one or two beats is not dead')
  t.end()
})

t.test('the jobs of pools without a fresh beat are freed, and no others', async (t) => {
  await using ward = await openWard()
  const { tables, work } = ward
  for (const pool of ['alive', 'silent', 'slow']) await beat(work, pool)
  await age(tables, 'silent', STALE_SECONDS + 1)
  await age(tables, 'slow', STALE_SECONDS - 2)
  await lockJob(tables, 'alive', 3600)
  await lockJob(tables, 'silent', STALE_SECONDS + 1)
  await lockJob(tables, 'slow', 3600)
  await lockJob(tables, 'unheard of', STALE_SECONDS + 1)
  await lockJob(tables, 'just begun', STALE_SECONDS - 2)
  t.same((await rescue(work)).toSorted(), ['silent', 'unheard of'])
  t.same(await free(tables), [`silent ${STALE_SECONDS + 1}`, `unheard of ${STALE_SECONDS + 1}`])
  const { rows } = await tables.query(`select attempts from graphile_worker.jobs where locked_by is null`)
  t.same(rows, [{ attempts: 1 }, { attempts: 1 }], 'the attempt is spent, so a job that crashes its worker ends')
  t.same(await rescue(work), [])
})

t.test('a pool that was taken for dead and beats again is alive', async (t) => {
  await using ward = await openWard()
  const { tables, work } = ward
  await beat(work, 'late')
  await age(tables, 'late', STALE_SECONDS * 10)
  t.same(await rescue(work), [], 'it has no jobs')
  const { rows } = await tables.query('select pool_id from worker_beats')
  t.same(rows, [], 'its beat is deleted')
  await beat(work, 'late')
  await lockJob(tables, 'late', 3600)
  t.same(await rescue(work), [])
})

t.test('a pool that stops deletes its beat', async (t) => {
  await using ward = await openWard()
  await beat(ward.work, 'leaving')
  await beat(ward.work, 'staying')
  await endBeat(ward.work, 'leaving')
  const { rows } = await ward.tables.query('select pool_id from worker_beats')
  t.same(rows, [{ pool_id: 'staying' }])
})

t.test('while another worker rescues, rescue does nothing and does not wait', async (t) => {
  await using ward = await openWard()
  const { tables, work } = ward
  await lockJob(tables, 'dead', 3600)
  const other = await tables.connect()
  try {
    await other.query('begin')
    await other.query('select pg_advisory_xact_lock(8402002)')
    t.same(await rescue(work), [])
    await other.query('commit')
  } finally {
    other.release()
  }
  t.same(await rescue(work), ['dead'])
})
