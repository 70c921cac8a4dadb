// sql/schema.sql against the migrations.
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { openDatabase } from '../../server/db/pool.ts'
import { describeSchema } from '../../server/db/schema.ts'
import { openTestDatabase } from '../database.ts'

t.test('sql/schema.sql is the result of the migrations', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 1 })
  t.teardown(() => db.end())
  t.equal(await readFile(new URL('../../sql/schema.sql', import.meta.url), 'utf8'), await describeSchema(db))
})
