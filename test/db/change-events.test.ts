// Change events between a notifier and a listener, over a real database.
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { openChangeListener, openChangeNotifier } from '../../server/db/change-events.ts'
import { openDatabase } from '../../server/db/pool.ts'
import { openLog } from '../../server/telemetry.ts'
import { openTestDatabase } from '../database.ts'
import { until } from '../until.ts'

async function openBoth() {
  await using opened = new AsyncDisposableStack()
  const { url } = opened.use(await openTestDatabase())
  const log = openLog('silent')
  const db = await openDatabase(url, { maxConnections: 2 })
  opened.defer(() => db.end())
  const notifier = opened.use(openChangeNotifier(db, log))
  const listener = opened.use(openChangeListener(url, log))
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  opened.defer(() => client.end())
  const closing = opened.move()
  return { notifier, listener, client, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

const never = new AbortController().signal
/** Far longer than a test may take: a wait that ends was ended by an event. */
const LONG_MS = 3_600_000

/** Resolves when the listener's connection listens. It polls the catalogue, because Postgres has no event for it. */
async function listens(client: pg.Client) {
  const listening = `
    select from pg_stat_activity
    where datname = current_database() and application_name = 'countersign waiting'
      and state = 'idle' and query like 'listen %'`
  await until(async () => (await client.query(listening)).rowCount)
}

t.test('an event wakes the callers that wait for its request, and no others', async (t) => {
  await using both = await openBoth()
  const { notifier, listener, client } = both
  await listens(client)
  const [mine, other] = [randomUUID(), randomUUID()]
  const gone = new AbortController()
  let otherWoke = false
  const otherWait = listener.waitForChange(other, gone.signal, LONG_MS).then(() => {
    otherWoke = true
  })
  const waiters = [listener.waitForChange(mine, never, LONG_MS), listener.waitForChange(mine, never, LONG_MS)]
  await notifier.add(mine)
  await Promise.all(waiters)
  t.notOk(otherWoke)
  gone.abort()
  await otherWait
  t.pass('a wait ends with its signal')
})

t.test('a thousand events at once all arrive', async (t) => {
  await using both = await openBoth()
  const { notifier, listener, client } = both
  await listens(client)
  const ids = Array.from({ length: 1000 }, () => randomUUID())
  const waits = ids.map((id) => listener.waitForChange(id, never, LONG_MS))
  await Promise.all(ids.map((id) => notifier.add(id)))
  await Promise.all(waits)
  t.pass('every caller was woken')
})

t.test('a wait without an event ends after its time', async (t) => {
  await using both = await openBoth()
  await both.listener.waitForChange(randomUUID(), never, 1)
  t.pass()
})

t.test('a broken connection is opened again', async (t) => {
  await using both = await openBoth()
  const { notifier, listener, client } = both
  const id = randomUUID()
  await listens(client)
  const { rowCount } = await client.query(`
    select pg_terminate_backend(pid, 10000) from pg_stat_activity
    where datname = current_database() and application_name = 'countersign waiting'`)
  t.equal(rowCount, 1)
  await listens(client)
  const waited = listener.waitForChange(id, never, LONG_MS)
  await notifier.add(id)
  await waited
  t.pass('events arrive over the new connection')
})
