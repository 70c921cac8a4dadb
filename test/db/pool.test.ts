// How the pool reads DATABASE_URL where it asks for an encrypted connection.
import t from 'tap'
import { openDatabase } from '../../server/db/pool.ts'
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
