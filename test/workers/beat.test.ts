// Heartbeats of worker pools, and the rescue of the jobs of dead ones: after a lost lock or an old heartbeat.
import pg from 'pg'
import t from 'tap'
import { openDatabase } from '../../server/db/pool.ts'
import { openSessionLock } from '../../server/db/session-lock.ts'
import { openLog, openMetrics } from '../../server/telemetry.ts'
import {
  BEAT_SECONDS,
  beat,
  endBeat,
  GRACE_SECONDS,
  RENEW,
  renounceLock,
  rescue,
  STALE_SECONDS,
  seesLostLock,
} from '../../workers/beat.ts'
import type { Work } from '../../workers/context.ts'
import { makeWorkerId } from '../../workers/context.ts'
import { openTestDatabase } from '../database.ts'
import { hasPooler, openPooler } from '../pooler.ts'
import { openTcpProxy } from '../tcp-proxy.ts'
import { until } from '../until.ts'

async function openWard() {
  await using opened = new AsyncDisposableStack()
  const { url } = opened.use(await openTestDatabase())
  const tables = new pg.Pool({ connectionString: url, max: 3 })
  tables.on('error', () => {})
  opened.defer(() => tables.end())
  const db = await openDatabase(url, { maxConnections: 2 })
  opened.defer(() => db.end())
  const closing = opened.move()
  const woken: string[] = []
  const work = {
    db,
    log: openLog('silent'),
    metrics: openMetrics(),
    methodology: 'any',
    assessor: {},
    id: makeWorkerId(),
    cache: { release: async () => {} },
    origins: { wake: async (line: string) => void woken.push(line) },
  } as unknown as Work
  return { url, tables, work, woken, [Symbol.asyncDispose]: () => closing.disposeAsync() }
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

/** As if so much time had passed. */
async function passGrace(tables: pg.Pool) {
  await tables.query("update worker_beats set lost_at = lost_at - $1 * interval '1 second'", [GRACE_SECONDS + 0.1])
}

async function holdLock(url: string) {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  const key = Math.floor(Math.random() * 2 ** 31)
  await client.query('select pg_advisory_lock($1, $2)', [8_402_003, key])
  return { key, end: () => client.end() }
}

t.test('a pool whose lock is free is rescued after its grace, with all that its worker held', async (t) => {
  await using ward = await openWard()
  const { url, tables, work, woken } = ward
  const [dying, living] = [await holdLock(url), await holdLock(url)]
  await beat(work, 'dying', dying.key)
  await lockJob(tables, 'dying', 1)
  const held = work.id
  await beat({ ...work, id: makeWorkerId() } as Work, 'living', living.key)
  await lockJob(tables, 'living', 1)
  await tables.query(
    `insert into origin_visits (id, origin, until) values ($1, 'https://a.test', now() + interval '15 s'),
    (gen_random_uuid(), 'https://b.test', now() + interval '15 s')`,
    [held.make()],
  )
  t.notOk(await seesLostLock(work))
  t.same(await rescue(work), [])
  await dying.end()
  t.ok(await until(() => seesLostLock(work)))
  t.same(await rescue(work), [], 'it is noted first')
  t.notOk(await seesLostLock(work), 'nothing is to be done until the grace is over')
  t.same(await rescue(work), [])
  await passGrace(tables)
  t.ok(await seesLostLock(work))
  t.same(await rescue(work), ['dying'])
  t.same(await free(tables), ['dying 1'], 'a job that began just now too')
  t.same(woken, ['https://a.test'])
  const { rows } = await tables.query('select origin from origin_visits')
  t.same(rows, [{ origin: 'https://b.test' }])
  await living.end()
})

t.test('a worker that lost its lock and lives is not rescued: it says so, or takes the lock anew', async (t) => {
  await using ward = await openWard()
  const { url, tables, work } = ward
  await lockJob(tables, 'pool', 1)
  const lost = Promise.withResolvers<void>()
  const renewed = Promise.withResolvers<number>()
  const lock = await openSessionLock(url, {
    onLost: () => lost.resolve(),
    onRenewed: async (key, query) => renewed.resolve(await query(RENEW, [key, 'pool'])),
  })
  const first = lock.key
  await beat(work, 'pool', first)
  await tables.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'countersign lock'
    and datname = current_database()`)
  await lost.promise
  t.equal(await renewed.promise, 1)
  t.not(lock.key, first)
  await rescue(work)
  await passGrace(tables)
  t.same(await rescue(work), [])
  await lock[Symbol.asyncDispose]()
  // Recorded as lost; then the worker reports that it is alive.
  await until(() => seesLostLock(work))
  await rescue(work)
  await passGrace(tables)
  await renounceLock(work, 'pool')
  t.same(await rescue(work), [], 'by its beat it lives')
  await age(tables, 'pool', STALE_SECONDS + 1)
  await tables.query(`update graphile_worker._private_jobs set locked_at = now() - interval '1 minute'`)
  t.same(await rescue(work), ['pool'], 'and by its beat it is dead')
})

t.test('the first lock outlives a server that breaks connections off while a worker starts', async (t) => {
  await using ward = await openWard()
  const url = new URL(ward.url)
  const port = Number(url.port)
  let connections = 0
  // Nothing listens on port 1: these connections end at once.
  await using proxy = await openTcpProxy(() => (++connections < 3 ? 1 : port))
  url.hostname = '127.0.0.1'
  url.port = String(proxy.port)
  await using lock = await openSessionLock(url.href, { onLost: () => {}, onRenewed: async () => {} })
  t.equal(connections, 3)
  t.type(lock.key, 'number')
})

t.test('a pool that is taken for dead learns of it by its next sign', async (t) => {
  await using ward = await openWard()
  const { work, tables } = ward
  t.ok(await beat(work, 'pool'), 'new')
  t.notOk(await beat(work, 'pool'))
  await tables.query('delete from worker_beats')
  t.ok(await beat(work, 'pool'))
})

t.test('behind a pooler no lock is taken', { skip: !hasPooler && 'no pgbouncer here' }, async (t) => {
  await using ward = await openWard()
  await using pooler = await openPooler(ward.url)
  await using lock = await openSessionLock(pooler.url, { onLost: () => {}, onRenewed: async () => {} })
  t.equal(lock.key, null)
})
