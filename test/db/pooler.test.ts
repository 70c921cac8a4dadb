// The whole service behind a real PgBouncer in transaction mode, and PgBouncer replaced while the service runs.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { z } from 'zod'
import { isConnectionLoss, openDatabase, sql, transact } from '../../server/db/pool.ts'
import { openApiHarness, outcomeOf, readResult } from '../api-harness.ts'
import { startChild } from '../children.ts'
import { openTestDatabase } from '../database.ts'
import { hasPooler, openPooler } from '../pooler.ts'
import { PAGE, payingFetch, VERIFY } from '../system.ts'
import { openTcpProxy } from '../tcp-proxy.ts'

const skip = !hasPooler && 'there is no pgbouncer on this machine'

t.test('web and worker work behind PgBouncer; they listen and lock on direct connections', { skip }, async (t) => {
  await using harness = await openApiHarness()
  await using opened = new AsyncDisposableStack()
  let pooler = await openPooler(harness.databaseUrl)
  opened.defer(() => pooler[Symbol.asyncDispose]())
  const env = {
    ...harness.env,
    DATABASE_URL: pooler.url,
    DATABASE_DIRECT_URL: harness.databaseUrl,
    LOG_LEVEL: 'info',
  }
  const web = opened.use(startChild('server/main.ts', env))
  const worker = opened.use(startChild('workers/main.ts', env))
  const { address } = await web.logs('listening')
  await worker.logs('worker_started')
  const buy = async (claim: string) => {
    const path = `/${randomUUID()}`
    harness.site.pages.set(path, { body: PAGE })
    const answer = await payingFetch()(new URL(VERIFY, String(address)), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), prefer: 'wait=25' },
      body: JSON.stringify({ source_url: harness.site.url(path), claim }),
    })
    return readResult(await outcomeOf(answer))
  }
  // More at once than PgBouncer needs server connections for, so that statements of one client meet several sessions.
  const results = await Promise.all(Array.from({ length: 12 }, (_, n) => buy(`The harbour was opened in ${1870 + n}.`)))
  t.equal(new Set(results.map(({ request_id }) => request_id)).size, 12)
  const { rows } = await harness.tables.query('select lock_key is not null locked from worker_beats')
  t.same(rows, [{ locked: true }], 'the worker holds the lock of its session')

  await pooler[Symbol.asyncDispose]()
  pooler = await openPooler(harness.databaseUrl, new URL(pooler.url).port)
  const again = async (): Promise<number> => {
    const answer = await fetch(new URL('/readyz', String(address)))
    await answer.body?.cancel()
    return answer.status === 200 ? 200 : again()
  }
  t.equal(await again(), 200)
  t.match(await buy('The harbour was opened in 1874.'), { status: 'completed' }, 'after PgBouncer was replaced')
  for (const child of [web, worker]) child.kill('SIGTERM')
  t.same(await Promise.all([web.ended, worker.ended]), Array(2).fill({ code: 0, signal: null }))
})

t.test(
  'a connection that is lost behind PgBouncer, and one that it cannot make, count as lost',
  { skip },
  async (t) => {
    await using database = await openTestDatabase({ template: false })
    const url = new URL(database.url)
    const target = Number(url.port)
    await using proxy = await openTcpProxy(() => target)
    url.port = String(proxy.port)
    await using pooler = await openPooler(url.href)
    const db = await openDatabase(pooler.url, { maxConnections: 2, pooled: true })
    t.teardown(() => db.end())
    const one = sql.type(z.object({ one: z.number() }))`select 1 one`
    const thrownBy = (work: Promise<unknown>) =>
      work.then(
        () => null,
        (error: unknown) => error,
      )
    const cut = await thrownBy(
      transact(db, async (tx) => {
        await tx.oneFirst(one)
        proxy.drop()
        return tx.oneFirst(one)
      }),
    )
    t.ok(isConnectionLoss(cut), String(cut))
    t.equal(await db.oneFirst(one), 1)
    await proxy.close()
    // Until PgBouncer has tried to connect, it has no answer.
    const refused = await thrownBy(db.oneFirst(one))
    t.ok(isConnectionLoss(refused), String(refused))
  },
)
