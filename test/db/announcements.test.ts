import { randomUUID } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { openAnnouncements, openWaiting } from '../../server/db/announcements.ts'
import { openDatabase } from '../../server/db/pool.ts'
import { openLog } from '../../server/telemetry.ts'
import { openTestDatabase } from '../database.ts'

async function openBoth() {
  await using opened = new AsyncDisposableStack()
  const { url } = opened.use(await openTestDatabase())
  const log = openLog('silent')
  const db = await openDatabase(url, { maxConnections: 2 })
  opened.defer(() => db.end())
  const announcements = opened.use(openAnnouncements(db, log))
  const waiting = opened.use(openWaiting(url, log))
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  opened.defer(() => client.end())
  const closing = opened.move()
  return { announcements, waiting, client, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

const never = new AbortController().signal

/** Which of the two came first; the second every waiter gives itself is what a lost announcement costs. */
async function timed(work: Promise<unknown>) {
  const began = performance.now()
  await work
  return performance.now() - began
}

t.test('whoever waits for a request is woken when it is announced, and nobody else', async (t) => {
  await using both = await openBoth()
  const { announcements, waiting } = both
  const [mine, other] = [randomUUID(), randomUUID()]
  // The first wait may begin before the connection listens; after it, it does.
  await waiting.nextSign(other, never)
  const stranger = timed(waiting.nextSign(other, never))
  const waiters = [timed(waiting.nextSign(mine, never)), timed(waiting.nextSign(mine, never))]
  await announcements.add(mine)
  for (const waited of await Promise.all(waiters)) t.ok(waited < 900, `${Math.round(waited)} ms`)
  t.ok((await stranger) >= 900)
})

t.test('hundreds of announcements at once all arrive', async (t) => {
  await using both = await openBoth()
  const { announcements, waiting } = both
  const ids = Array.from({ length: 1000 }, () => randomUUID())
  await waiting.nextSign(randomUUID(), never)
  const waits = ids.map((id) => timed(waiting.nextSign(id, never)))
  await Promise.all(ids.map((id) => announcements.add(id)))
  t.ok(Math.max(...(await Promise.all(waits))) < 900)
})

t.test('a caller that is gone waits no longer', async (t) => {
  await using both = await openBoth()
  const gone = new AbortController()
  const waited = timed(both.waiting.nextSign(randomUUID(), gone.signal))
  gone.abort()
  t.ok((await waited) < 900)
})

t.test('a connection that breaks comes back by itself', async (t) => {
  await using both = await openBoth()
  const { announcements, waiting, client } = both
  const id = randomUUID()
  await waiting.nextSign(id, never)
  await client.query(`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name = 'countersign waiting'`)
  let back = false
  for (let second = 1; second <= 10 && !back; second++) {
    const waited = timed(waiting.nextSign(id, never))
    await announcements.add(id)
    back = (await waited) < 900
  }
  t.ok(back)
})
