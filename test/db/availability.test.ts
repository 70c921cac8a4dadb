// The pool with a limit on waiting, with a healthy database: slow queries are not cancelled, and calls that get no
// connection are refused.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import pg from 'pg'
import t from 'tap'
import { z } from 'zod'
import { type AvailabilityChange, nothing, openDatabase, sql } from '../../server/db/pool.ts'
import { UnavailableError } from '../../server/errors.ts'
import { openTestDatabase } from '../database.ts'

const database = await openTestDatabase({ template: false })
t.teardown(() => database[Symbol.asyncDispose]())
const changes: AvailabilityChange[] = []
const db = await openDatabase(database.url, {
  maxConnections: 1,
  acquireTimeoutMs: 500,
  onChange: (change) => changes.push(change),
})
t.teardown(() => db.end())

const one = () => db.oneFirst(sql.type(z.object({ n: z.number() }))`select 1 n`)

t.test('a slow query is answered, since the database answers when it is asked', async (t) => {
  await db.query(sql.type(nothing)`select from pg_sleep(3)`)
  t.equal(await one(), 1)
  t.same(changes, [])
})

t.test('a call that gets no connection in time is refused and never runs', async (t) => {
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  await holder.query('create table made (n int)')
  await holder.query('select pg_advisory_lock(1)')
  const holding = db.query(sql.type(nothing)`select from pg_advisory_xact_lock(1)`)
  const refused = await db.query(sql.type(nothing)`insert into made values (1)`).catch((error) => error)
  t.ok(refused instanceof UnavailableError)
  t.match(refused, { code: 'capacity_exceeded' })
  await holder.query('select pg_advisory_unlock(1)')
  await holding
  t.equal(await one(), 1, 'the next call is answered')
  t.equal((await holder.query('select from made')).rowCount, 0)
  await holder.end()
  t.same(changes, [])
})

t.test('a connection that is ended by the server is not an outage', async (t) => {
  const admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  const lost = await db
    .transaction(async (tx) => {
      const pid = await tx.oneFirst(sql.type(z.object({ pid: z.number() }))`select pg_backend_pid() pid`)
      await admin.query('select pg_terminate_backend($1)', [pid])
      return tx.oneFirst(sql.type(z.object({ n: z.number() }))`select 1 n`)
    })
    .catch((error) => error)
  await admin.end()
  t.match(lost, { code: 'provider_unavailable' })
  t.equal(await one(), 1)
  t.same(changes, [])
})

t.test('a server that ends a connection while it is being closed ends no process', async (t) => {
  let isSlow = false
  const over = Promise.withResolvers<void>()
  const proxy = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect(Number(new URL(database.url).port), '127.0.0.1')
    // What the server is told in the end, it does not read in time.
    near.on('data', (bytes) => isSlow || far.write(bytes)).on('close', () => over.resolve())
    far.pipe(near)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => proxy.close())
  const url = new URL(database.url)
  url.port = String((proxy.address() as AddressInfo).port)
  const closing = await openDatabase(url.href, { maxConnections: 1, name: 'being closed' })
  t.match(await closing.query(sql.type(nothing)`select`), { rowCount: 1 })
  isSlow = true
  await closing.end()
  const admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  const { rowCount } = await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'being closed'`,
  )
  t.equal(rowCount, 1, 'the server has not closed it')
  // The error that the server sends first has no listener in slonik then, and would be an uncaught exception.
  await over.promise
  await admin.end()
})
