// kill -9 of a worker between its question to a time-stamp authority and the storage of the reply: no receipt is touched, no half reply is
// stored, and the head is signed by the next process after the interval, once.
import t from 'tap'
import { openTimestamping } from '../../server/receipts/timestamping.ts'
import { openApiHarness } from '../api-harness.ts'
import { startChild } from '../children.ts'
import { Certificates, openAuthority, withoutOpenssl } from '../time-stamp-authority.ts'
import { until } from '../until.ts'

async function openStamped() {
  await using opened = new AsyncDisposableStack()
  const certificates = opened.use(new Certificates())
  certificates.issue('one')
  const authority = opened.use(await openAuthority(certificates, 'one'))
  const settings = { TIMESTAMP_URLS: authority.url, TIMESTAMP_CA_FILE: certificates.path('root.pem') }
  const harness = opened.use(await openApiHarness(settings))
  const { core, env } = harness
  const append = () => core.chain.append({ subjectSha256: '1'.repeat(64), label: null, requestedBy: 'tester' })
  await append()
  /** The process that follows the killed one. */
  const next = opened.use(
    openTimestamping({ ...core, config: { ...core.config, timestamps: core.config.timestamps! } }, { lookS: 0 }),
  )
  const closing = opened.move()
  return {
    ...harness,
    authority,
    certificates,
    append,
    next,
    startWorker: () => startChild('workers/main.ts', env),
    pass: () => harness.tables.query(`update timestamp_authorities set asked_at = asked_at - interval '1 hour'`),
    /** Of each stored reply the size of its tree. */
    stored: async () =>
      (await harness.tables.query('select tree_size::int size from timestamps order by 1')).rows.map(
        ({ size }) => size,
      ),
    state: async () => (await harness.tables.query('select failures, problem from timestamp_authorities')).rows,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

t.test('killed while the authority thinks', { skip: withoutOpenssl }, async (t) => {
  await using set = await openStamped()
  const { authority, next } = set
  authority.misbehave(() => new Promise<null>(() => {}))
  const asked = authority.next()
  await using worker = set.startWorker()
  await Promise.race([asked, worker.ended.then((ending) => Promise.reject(new Error(JSON.stringify(ending))))])
  worker.kill('SIGKILL')
  t.same(await worker.ended, { code: null, signal: 'SIGKILL' })
  authority.misbehave(null)
  t.same(await set.stored(), [])
  t.same(await set.state(), [{ failures: 0, problem: null }], 'the authority has not failed')
  t.equal(await next.runOnce(), 0, 'the question counts')
  t.equal(authority.asked.length, 1)
  await set.append()
  await set.pass()
  t.equal(await next.runOnce(), 1)
  t.same(await set.stored(), [2])
})

t.test('killed while it stores the reply', { skip: withoutOpenssl }, async (t) => {
  await using set = await openStamped()
  const { next, tables } = set
  await using client = Object.assign(await tables.connect(), {
    async [Symbol.asyncDispose]() {
      client.release(true)
    },
  })
  await client.query('begin; lock table timestamps in exclusive mode')
  await using worker = set.startWorker()
  await until(async () => {
    const { rows } = await client.query(`
      select count(*)::int waiting from pg_locks
      where not granted and relation = 'timestamps'::regclass and mode = 'RowExclusiveLock'`)
    return rows[0].waiting > 0
  })
  worker.kill('SIGKILL')
  t.same(await worker.ended, { code: null, signal: 'SIGKILL' })
  await client.query('commit')
  // What the database was asked to store before the kill may be stored after it, or not: never twice, and never a part of it.
  await set.pass()
  await next.runOnce()
  t.same(await set.stored(), [1], 'one reply about the head')
  const [{ reply }] = (await tables.query('select reply from timestamps')).rows
  t.equal(reply.length, 4 + reply.readUInt16BE(2), 'the whole of one')
  t.same(await set.state(), [{ failures: 0, problem: null }])
  await set.append()
  await set.pass()
  t.equal(await next.runOnce(), 1)
  t.same(await set.stored(), [1, 2])
  const served = await fetch(set.url('/checkpoint/timestamp'))
  t.equal(served.status, 200)
  t.equal(served.headers.get('content-type'), 'application/timestamp-reply')
})
