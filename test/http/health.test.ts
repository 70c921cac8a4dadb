// What operators ask: does it live, can it work, how is it doing.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { payingFetch, startSystem } from '../system.ts'

const TOKEN = 'operator-token-of-this-test'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

const get = (path: string, at = system.service.address, headers: Record<string, string> = {}) =>
  fetch(new URL(path, at), { headers })

t.test('/healthz and /readyz when all is well', async (t) => {
  for (const path of ['/healthz', '/readyz']) {
    const response = await get(path)
    t.equal(response.status, 200, path)
    t.match(response.headers.get('content-type'), /json/, path)
  }
})

t.test('/readyz: 503 while a migration is pending', async (t) => {
  const [last] = await system.sql('select * from schema_migrations order by name desc limit 1')
  await system.sql('delete from schema_migrations where name = $1', [last?.name])
  const pending = await get('/readyz')
  t.equal(pending.status, 503)
  t.match(await pending.text(), new RegExp(String(last?.name)), 'and says which')
  t.equal((await get('/healthz')).status, 200)
  const columns = Object.keys(last ?? {})
  await system.sql(
    `insert into schema_migrations (${columns}) values (${columns.map((_, n) => `$${n + 1}`)})`,
    Object.values(last ?? {}),
  )
  t.equal((await get('/readyz')).status, 200)
})

t.test('/readyz: 503 without its database, and it does not hang', async (t) => {
  await using twin = await system.openTwin()
  const { db } = twin.api
  twin.api.db = new Proxy(db, { get: () => () => Promise.reject(new Error('password for secret_user')) })
  const response = await get('/readyz', twin.address)
  t.equal(response.status, 503)
  t.notMatch(await response.text(), /secret_user/)
  t.equal((await get('/healthz', twin.address)).status, 200)
  twin.api.db = db
})

t.test('/readyz: 503 while draining, so that nothing new is sent here', async (t) => {
  await using twin = await system.openTwin()
  t.equal((await get('/readyz', twin.address)).status, 200)
  twin.api.drain()
  t.equal((await get('/readyz', twin.address)).status, 503)
  t.equal((await get('/healthz', twin.address)).status, 200)
})

t.test('/metrics: Prometheus text, open without OPERATOR_TOKEN', async (t) => {
  await system.ask({ key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=20' } })
  await fetch(system.url(`/api/agent/v1/requests/${randomUUID()}`))
  const response = await get('/metrics')
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /^text\/plain; version=/)
  const text = await response.text()
  for (const line of text.split('\n').filter(Boolean))
    t.match(line, /^(# (HELP|TYPE) \w+ .+|\w+(\{([a-zA-Z_]\w*="[^"]*",?)*\})? (NaN|[+-]?Inf|[-+.\deE]+))$/, line)
  const samples = text.split('\n').filter((line) => !line.startsWith('#'))
  t.ok(
    samples.some((line) => /settle/.test(line) && / 1$/.test(line)),
    'the settlement is counted',
  )
  t.ok(
    samples.some((line) => /402/.test(line)),
    'so is the 402',
  )
  t.notMatch(text, /site\.test|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}/, 'no URL and no id is a label')
})

t.test('/metrics behind OPERATOR_TOKEN', async (t) => {
  await using twin = await system.openTwin({}, { OPERATOR_TOKEN: TOKEN })
  const ask = (headers: Record<string, string> = {}) => get('/metrics', twin.address, headers)
  for (const authorization of ['', `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, 'Bearer', `Basic ${TOKEN}`, TOKEN]) {
    const response = await ask({ authorization })
    t.ok([401, 403, 404].includes(response.status), `${authorization}: ${response.status}`)
    t.notMatch(await response.text(), /# HELP/)
  }
  t.ok([401, 403, 404].includes((await ask()).status))
  t.equal((await get(`/metrics?token=${TOKEN}`, twin.address)).status, (await ask()).status)
  const response = await ask({ authorization: `Bearer ${TOKEN}` })
  t.equal(response.status, 200)
  t.match(await response.text(), /# HELP/)
  t.equal((await ask({ authorization: `bearer ${TOKEN}` })).status, 200, 'the scheme is not case-sensitive')
  for (const path of ['/healthz', '/readyz']) t.equal((await get(path, twin.address)).status, 200, 'these stay open')
})
