// The answers to callers while no worker can assess, or while a worker assesses in another way than the offer says.
import pg from 'pg'
import t from 'tap'
import { openDatabase } from '../../server/db/pool.ts'
import { openLog } from '../../server/telemetry.ts'
import { buildAssessors } from '../../server/verification/offer/assessors.ts'
import { openTestDatabase } from '../database.ts'

/** Writes beats of workers, and reads them with a clock that the test moves. */
async function openBeats(offered: 'literal' | 'semantic' = 'literal') {
  await using opened = new AsyncDisposableStack()
  const database = opened.use(await openTestDatabase())
  const db = await openDatabase(database.url, { maxConnections: 2 })
  opened.defer(() => db.end())
  const tables = new pg.Client({ connectionString: database.url })
  await tables.connect()
  opened.defer(() => tables.end())
  let now = 0
  const logged: Record<string, unknown>[] = []
  const log = openLog('error', { write: (line) => logged.push(JSON.parse(line)) })
  const assessors = buildAssessors({ db: () => db, log, offered, keepMs: 1000, now: () => now })
  const closing = opened.move()
  return {
    tables,
    assessors,
    logged,
    beat: (pool: string, paused: string | null, { ago = '0 s', methodology = 'm' } = {}) =>
      tables.query(
        `insert into worker_beats (pool_id, methodology, beat_at, assessor_paused_until)
         values ($1, $4, now() - $2::interval, now() + $3::interval)
         on conflict (pool_id) do update set beat_at = excluded.beat_at, methodology = excluded.methodology,
           assessor_paused_until = excluded.assessor_paused_until`,
        [pool, ago, paused, methodology],
      ),
    next() {
      now += 1000
      return assessors.requireOne()
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

t.test('callers are refused only while every live worker is paused', async (t) => {
  await using beats = await openBeats()
  const { beat, next, assessors } = beats
  await t.resolves(next(), 'no worker: nothing is refused')
  await next()
  t.match(beats.logged, [{ event: 'dependency_away', dependency: 'workers', reason: /none is alive/ }])
  t.equal(beats.logged.length, 1, 'which is logged once')
  await beat('a', '90 s')
  await t.rejects(next(), { code: 'provider_unavailable', headers: { 'retry-after': '90' } })
  await beat('b', '-1 s')
  await t.rejects(assessors.requireOne(), { code: 'provider_unavailable' }, 'the reading is reused for a second')
  await t.resolves(next(), 'one of two works')
  await beat('b', '20 s')
  await t.rejects(
    next(),
    { code: 'provider_unavailable', headers: { 'retry-after': '20' } },
    'the shortest pause counts',
  )
  await beat('a', '90 s', { ago: '2 min' })
  await beat('b', null)
  await t.resolves(next(), 'dead workers do not count')
})

const LITERAL = 'retrieval-1+text-1 literal-1+icu-1+unicode-1+gate-1'
const SEMANTIC = 'retrieval-1+text-1 semantic-1+model+gate-1'

for (const [offered, same, other] of [
  ['semantic', SEMANTIC, LITERAL],
  ['literal', LITERAL, SEMANTIC],
] as const)
  t.test(`${offered} assessment is not sold while a live worker does the other one, and this is logged`, async (t) => {
    await using beats = await openBeats(offered)
    const { beat, next, assessors, logged } = beats
    await beat('a', null, { methodology: same })
    await t.resolves(next())
    await beat('b', null, { methodology: other })
    const refusal = { code: 'provider_unavailable', message: /do not assess in the way that is offered/ }
    await t.rejects(next(), refusal)
    await t.rejects(next(), refusal)
    t.match(logged, [{ event: 'assessment_mismatch', offered, worker: other }])
    t.equal(logged.length, 1, 'once')
    t.same((await assessors.methodologies()).sort(), [same, other].sort())
    await beat('b', null, { methodology: other, ago: '31 s' })
    await t.resolves(next(), 'the other worker is gone')
    t.same(await assessors.methodologies(), [same])
  })
