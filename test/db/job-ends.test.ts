// Jobs that end at the same time end in one statement, and an error of it is an error of each.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { openQueuePool } from '../../server/db/queue.ts'
import { openTestDatabase } from '../database.ts'

/** As graphile-worker ends a job. */
const completion = (id: string) => ({
  name: 'complete_job/graphile_worker',
  text: 'delete from graphile_worker._private_jobs as jobs where id = $1::bigint',
  values: [id],
})

t.test('jobs that end together end in one statement', async (t) => {
  await using database = await openTestDatabase()
  const pool = openQueuePool(database.url, 4, () => {})
  const { rows } = await pool.query<{ id: string }>(
    `
    select id::text from graphile_worker.add_jobs(array(
      select row('verify_request', '{}', null, null, 5, key, null, null)::graphile_worker.job_spec
      from unnest($1::text[]) key))`,
    [Array.from({ length: 4 }, () => randomUUID())],
  )
  await pool.query(`create table ends (n int); create function count_end() returns trigger language plpgsql as
    'begin insert into ends values (1); return null; end';
    create trigger counted after delete on graphile_worker._private_jobs for each statement execute function count_end()`)
  const clients = await Promise.all(rows.map(() => pool.connect()))
  const [kept, ...ended] = rows
  await Promise.all(ended.map(({ id }, n) => clients[n]!.query(completion(id))))
  const left = await clients[0]!.query('select id::text from graphile_worker._private_jobs')
  t.same(left.rows, [kept])
  t.same((await clients[0]!.query('select count(*)::int from ends')).rows, [{ count: 1 }])

  await clients[0]!.query('alter table graphile_worker._private_jobs rename to away')
  const failed = await Promise.allSettled([0, 1].map((n) => clients[n]!.query(completion(kept!.id))))
  t.match(failed, Array(2).fill({ status: 'rejected', reason: { code: '42P01' } }))
  for (const client of clients) client.release()
  await pool.end()
})
