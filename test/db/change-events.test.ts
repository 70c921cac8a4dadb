import { randomUUID } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { openChangeListener, openChangeNotifier } from '../../server/db/change-events.ts'
import { openDatabase } from '../../server/db/pool.ts'
import { openLog } from '../../server/telemetry.ts'
import { openTestDatabase } from '../database.ts'

async function openBoth() {
  await using opened = new AsyncDisposableStack()
  const { url } = opened.use(await openTestDatabase())
  const log = openLog('silent')
  const db = await openDatabase(url, { maxConnections: 2 })
  opened.defer(() => db.end())
  const announcements = opened.use(openChangeNotifier(db, log))
  const waiting = opened.use(openChangeListener(url, log))
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  opened.defer(() => client.end())
  const closing = opened.move()
  return { announcements, waiting, client, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

const never = new AbortController().signal
/** Far longer than a test may take: a wait that ends before was woken. */
const LONG_MS = 3_600_000

/** Resolves when the connection of the waiters listens. The catalogue is asked again and again: it announces nothing. */
async function listens(client: pg.Client) {
  for (;;) {
    const { rowCount } = await client.query(`
      select from pg_stat_activity
      where datname = current_database() and application_name = 'countersign waiting'
        and state = 'idle' and query like 'listen %'`)
    if (rowCount) return
  }
}

t.test('a caller is woken when its request is announced, and no other caller is', async (t) => {
  await using both = await openBoth()
  const { announcements, waiting, client } = both
  await listens(client)
  const [mine, other] = [randomUUID(), randomUUID()]
  const gone = new AbortController()
  let strangerWoke = false
  const stranger = waiting.waitForChange(other, gone.signal, LONG_MS).then(() => {
    strangerWoke = true
  })
  const waiters = [waiting.waitForChange(mine, never, LONG_MS), waiting.waitForChange(mine, never, LONG_MS)]
  await announcements.add(mine)
  await Promise.all(waiters)
  t.notOk(strangerWoke)
  gone.abort()
  await stranger
  t.pass('a caller that is gone waits no longer')
})

t.test('hundreds of announcements at once all arrive', async (t) => {
  await using both = await openBoth()
  const { announcements, waiting, client } = both
  await listens(client)
  const ids = Array.from({ length: 1000 }, () => randomUUID())
  const waits = ids.map((id) => waiting.waitForChange(id, never, LONG_MS))
  await Promise.all(ids.map((id) => announcements.add(id)))
  await Promise.all(waits)
  t.pass('every caller was woken')
})

t.test('a caller looks for itself after a while, for an announcement that is lost', async (t) => {
  await using both = await openBoth()
  await both.waiting.waitForChange(randomUUID(), never, 1)
  t.pass()
})

t.test('a connection that breaks comes back by itself', async (t) => {
  await using both = await openBoth()
  const { announcements, waiting, client } = both
  const id = randomUUID()
  await listens(client)
  const { rowCount } = await client.query(`
    select pg_terminate_backend(pid, 10000) from pg_stat_activity
    where datname = current_database() and application_name = 'countersign waiting'`)
  t.equal(rowCount, 1)
  await listens(client)
  const waited = waiting.waitForChange(id, never, LONG_MS)
  await announcements.add(id)
  await waited
  t.pass('announcements arrive over the new connection')
})
