// Manners towards origins, on the real database and through the whole service.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { z } from 'zod'
import { openDatabase, sql } from '../../server/db/pool.ts'
import { buildOrigins, OriginBusy } from '../../workers/retrieval/origins.ts'
import { RetryLater } from '../../workers/retrieval/response.ts'
import { openTestDatabase } from '../database.ts'
import { PAGE, payingFetch, startSystem } from '../system.ts'

const ORIGIN = 'https://kelby.test'
const never = new AbortController().signal

async function openOrigins(manners: { concurrency: number; spacingMs: number }) {
  const database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 4 })
  return {
    db,
    origins: buildOrigins(db, manners),
    async [Symbol.asyncDispose]() {
      await db.end()
      await database[Symbol.asyncDispose]()
    },
  }
}

t.test('no more visits at once than allowed, for all workers together', async (t) => {
  await using set = await openOrigins({ concurrency: 2, spacingMs: 0 })
  const other = buildOrigins(set.db, { concurrency: 2, spacingMs: 0 })
  const gate = Promise.withResolvers<void>()
  const started = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const held = [set.origins, other].map((origins, n) =>
    origins.visit(ORIGIN, never, async () => {
      started[n]?.resolve()
      await gate.promise
      return n
    }),
  )
  await Promise.all(started.map((s) => s.promise))
  await t.rejects(
    set.origins.visit(ORIGIN, never, async () => 'third'),
    OriginBusy,
  )
  t.equal(await set.origins.visit('https://orsay.test', never, async () => 'elsewhere'), 'elsewhere')
  gate.resolve()
  t.same(await Promise.all(held), [0, 1])
  t.equal(await set.origins.visit(ORIGIN, never, async () => 'fourth'), 'fourth')
})

t.test('a visit of a killed worker stops counting', async (t) => {
  await using set = await openOrigins({ concurrency: 1, spacingMs: 0 })
  await set.db.query(sql.type(z.object({}).strict())`
    insert into origin_visits (id, origin, until) values (${randomUUID()}, ${ORIGIN}, now() - interval '1 second')`)
  t.equal(await set.origins.visit(ORIGIN, never, async () => 'in'), 'in')
})

t.test('visits are spaced, and one that would wait long is handed back', async (t) => {
  await using set = await openOrigins({ concurrency: 9, spacingMs: 60_000 })
  await set.origins.visit(ORIGIN, never, async () => {})
  const busy = await set.origins.visit(ORIGIN, never, async () => {}).catch((error: unknown) => error)
  t.ok(busy instanceof OriginBusy && busy.retryAfterSeconds > 50 && busy.retryAfterSeconds <= 60)
})

t.test('an origin that asks for patience is left alone by everybody', async (t) => {
  await using set = await openOrigins({ concurrency: 9, spacingMs: 0 })
  const asked = set.origins.visit(ORIGIN, never, () => Promise.reject(new RetryLater(429, 30)))
  await t.rejects(asked, { name: 'OriginBusy', retryAfterSeconds: 30 })
  await t.rejects(
    set.origins.visit(ORIGIN, never, async () => {}),
    OriginBusy,
  )
})

t.test('Retry-After within the payment is waited out; one beyond it ends uncharged', async (t) => {
  let answers = 0
  await using system = await startSystem({
    pages: {
      '/soon': () => (answers++ === 0 ? { status: 503, headers: { 'retry-after': '1' }, body: '' } : { body: PAGE }),
      '/late': { status: 429, headers: { 'retry-after': '3600' }, body: '' },
    },
  })
  const buy = (path: string) =>
    system.ask({
      key: randomUUID(),
      body: { source_url: system.site.url(path), claim: 'The harbour was opened in 1874.' },
      headers: { prefer: 'wait=25' },
      fetch: payingFetch(),
    })
  t.equal((await buy('/soon')).status, 200)
  t.equal(answers, 2)
  const late = await buy('/late')
  t.equal(late.status, 422)
  t.match(await late.json(), { error: { code: 'source_http_status', message: /429/ } })
})
