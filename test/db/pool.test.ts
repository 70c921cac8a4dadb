// How the pool reads a DATABASE_URL that asks for an encrypted connection, and how long a transaction may be idle.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { z } from 'zod'
import { isConnectionLoss, nothing, openDatabase, sql, transact } from '../../server/db/pool.ts'
import { openTestDatabase } from '../database.ts'

t.test('every name of an encrypted connection is taken, and none falls back to plain text', async (t) => {
  await using database = await openTestDatabase()
  for (const mode of ['require', 'verify-ca', 'verify-full', 'no-verify']) {
    const url = new URL(database.url)
    url.searchParams.set('sslmode', mode)
    const opened = openDatabase(url.href, { maxConnections: 1, name: 'pool-test' })
    await t.rejects(opened, { message: /does not support SSL/ }, mode)
  }
})

t.test('a frozen process keeps its locks for ten seconds, by the pool and by documented settings', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  t.teardown(() => db.end())
  const shown = z.object({ idle_in_transaction_session_timeout: z.string() })
  const limit = await db.oneFirst(sql.type(shown)`show idle_in_transaction_session_timeout`)
  t.equal(limit, '10s')
  const operations = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
  t.match(operations, `set idle_in_transaction_session_timeout = '${limit}'`)
})

t.test('a transaction that is idle for too long ends like a lost connection, and releases its locks', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  t.teardown(() => db.end())
  const lock = sql.type(z.object({ taken: z.boolean() }))`select pg_try_advisory_xact_lock(8402999) taken`
  const frozen = transact(db, async (tx) => {
    await tx.oneFirst(lock)
    await tx.query(sql.type(nothing)`set local idle_in_transaction_session_timeout = '1ms'`)
    while (!(await db.oneFirst(lock)));
    return tx.oneFirst(lock)
  })
  const error = await frozen.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  t.ok(isConnectionLoss(error), String(error))
  t.equal(await db.oneFirst(lock), true, 'the pool goes on')
})

t.test('a transaction whose connection is being closed ends like one whose connection was lost', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  const closing = transact(db, async (tx) => {
    const ended = db.end()
    t.teardown(() => ended)
    for (;;) await tx.query(sql.type(nothing)`select`)
  })
  const error = await closing.catch((thrown: unknown) => thrown)
  t.ok(isConnectionLoss(error), String(error))
})
