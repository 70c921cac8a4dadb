// The routes for operators: liveness, readiness, metrics.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { openApiHarness } from '../api-harness.ts'
import { openScriptedFacilitator, payingFetch, startSystem } from '../system.ts'
import { until } from '../until.ts'

const TOKEN = 'operator-token-of-this-test'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

const get = (path: string, at = system.service.address, headers: Record<string, string> = {}) =>
  fetch(new URL(path, at), { headers })

t.test('/healthz and /readyz answer 200 on a ready service', async (t) => {
  for (const path of ['/healthz', '/readyz']) {
    const response = await get(path)
    t.equal(response.status, 200, path)
    t.match(response.headers.get('content-type'), /json/, path)
  }
})

t.test('/readyz says if no worker is alive, and stays ready', async (t) => {
  const warnings = async (address: string) => {
    const answer = await get('/readyz', address)
    return [answer.status, ((await answer.json()) as { warnings: string[] }).warnings]
  }
  t.same(await warnings(system.service.address), [200, []])
  await using front = await openApiHarness()
  // An answer does not wait long for a check that is only a warning.
  const answer = await until(async () => {
    const answer = await warnings(front.url('/'))
    return String(answer[1]) === '' ? undefined : answer
  })
  t.match(answer, [200, [/^No worker is alive/]])
})

t.test('/readyz: 503 while a migration is pending', async (t) => {
  // A new process makes its own check; a result is used for a second.
  await using before = await system.openTwin()
  await using after = await system.openTwin()
  const [last] = await system.sql('select * from schema_migrations order by name desc limit 1')
  await system.sql('delete from schema_migrations where name = $1', [last?.name])
  const pending = await get('/readyz', before.address)
  t.equal(pending.status, 503)
  t.match(await pending.text(), new RegExp(String(last?.name)), 'names the migration')
  t.equal((await get('/healthz', before.address)).status, 200)
  const columns = Object.keys(last ?? {})
  await system.sql(
    `insert into schema_migrations (${columns}) values (${columns.map((_, n) => `$${n + 1}`)})`,
    Object.values(last ?? {}),
  )
  t.equal((await get('/readyz', after.address)).status, 200)
})

t.test('/readyz: 503 without a database, and without delay', async (t) => {
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
  const form = /^(# (HELP|TYPE) \w+ .+|\w+(\{([a-zA-Z_]\w*="[^"]*",?)*\})? (NaN|[+-]?Inf|[-+.\deE]+))$/
  t.same(
    text.split('\n').filter((line) => line !== '' && !form.test(line)),
    [],
    'every line has the form',
  )
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

/** A second process whose database pool counts its queries. */
async function openCounted(env: Record<string, string> = {}) {
  const twin = await system.openTwin({}, env)
  const { db } = twin.api
  const asked = { count: 0 }
  twin.api.db = new Proxy(db, {
    get(target, name) {
      asked.count++
      return Reflect.get(target, name)
    },
  })
  const restore = () => {
    twin.api.db = db
  }
  return { twin, asked, restore }
}

for (const path of ['/readyz', '/metrics', '/api/agent/v1/capabilities'])
  t.test(`a flood of ${path} costs the database one reading a second`, async (t) => {
    const { twin, asked, restore } = await openCounted()
    await using _ = twin
    t.equal((await get(path, twin.address)).status, 200)
    const one = asked.count
    t.ok(one > 0, 'the first one reads')
    const started = performance.now()
    const statuses = await Promise.all(Array.from({ length: 40 }, async () => (await get(path, twin.address)).status))
    const seconds = (performance.now() - started) / 1000
    t.same([...new Set(statuses)], [200])
    // A slow machine may need longer than the second for which a reading is used.
    t.ok(asked.count <= one * (1 + Math.ceil(seconds)), `${asked.count} queries for 41 answers in ${seconds} s`)
    restore()
  })

const LIVE = {
  PAYMENT_MODE: 'testnet',
  SIGNING_SEED: '5e'.repeat(32),
  PAY_TO_EVM: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  BASE_URL: 'https://verify.example',
}

t.test('/metrics in a live mode without OPERATOR_TOKEN is closed, and the log gives the reason', async (t) => {
  await using live = await startSystem({ env: LIVE, overrides: { facilitator: openScriptedFacilitator() } })
  for (const authorization of ['', 'Bearer undefined', `Bearer ${TOKEN}`]) {
    const response = await get('/metrics', live.service.address, { authorization })
    t.equal(response.status, 404)
    t.match(await response.text(), /OPERATOR_TOKEN is not set/)
  }
  t.match(
    live.logged.find(({ event }) => event === 'metrics_closed'),
    { reason: /OPERATOR_TOKEN/ },
  )
  await using guarded = await live.openTwin({ facilitator: openScriptedFacilitator() }, { OPERATOR_TOKEN: TOKEN })
  t.equal((await get('/metrics', guarded.address)).status, 401)
  const read = await get('/metrics', guarded.address, { authorization: `Bearer ${TOKEN}` })
  t.equal(read.status, 200)
})

t.test('pages of other sites may not read /metrics, /readyz and /healthz, nor look at pages', async (t) => {
  const origin = 'https://shop.example'
  for (const path of ['/metrics', '/readyz', '/healthz', '/%6detrics', '/readyz?x=1']) {
    const response = await get(path, undefined, { origin })
    t.equal(response.status, 200, path)
    t.equal(response.headers.get('access-control-allow-origin'), null, path)
  }
  for (const path of ['/metrics', '/readyz', '/healthz']) {
    const preflight = await fetch(system.url(path), {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'GET' },
    })
    t.equal(preflight.headers.get('access-control-allow-origin'), null, `${path}: preflight`)
  }
  for (const method of ['OPTIONS', 'POST']) {
    const looked = await fetch(system.url('/try'), {
      method,
      headers: { origin, 'content-type': 'application/json', 'access-control-request-method': 'POST' },
      ...(method === 'POST' && { body: '{}' }),
    })
    t.equal(looked.headers.get('access-control-allow-origin'), null, `${method} /try`)
    await looked.body?.cancel()
  }
  t.equal((await get('/llms.txt', undefined, { origin })).headers.get('access-control-allow-origin'), '*')
})

t.test('no spelling of the path of a private route gets past its preflight, or is read by another site', async (t) => {
  const origin = 'https://shop.example'
  const paths = ['/metrics', '/readyz', '/healthz', '/try', '/operator', '/operator/requests', '/operator/sign-in']
  for (const path of paths)
    for (const spelling of [path, `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`, `${path}?`, `${path}?x=/`])
      for (const method of ['OPTIONS', 'GET']) {
        const headers = { origin, 'access-control-request-method': 'POST' }
        const answer = await fetch(system.url(spelling), { method, headers })
        // There is no GET of a sign-in, so that answer says nothing about a route.
        if (method === 'GET' && path === '/operator/sign-in') continue
        t.equal(answer.headers.get('access-control-allow-origin'), null, `${method} ${spelling}`)
        await answer.body?.cancel()
      }
})

t.test('the limit per address applies to metrics, documents and pages, and not to probes', async (t) => {
  const paths = [
    '/metrics',
    '/openapi.json',
    '/docs',
    '/guide',
    '/pricing',
    '/robots.txt',
    '/',
    '/llms.txt',
    '/.well-known/x402',
    '/risk-flags',
    '/methodology',
  ]
  await using twin = await system.openTwin({}, { RATE_LIMIT_PER_MINUTE: '1', TRUST_PROXY: '1' })
  for (const [n, path] of paths.entries()) {
    // Each path is asked from an address that has asked for no other.
    const from = { 'x-forwarded-for': `192.0.2.${n + 1}` }
    t.not((await get(path, twin.address, from)).status, 429, path)
    const refused = await get(path, twin.address, from)
    t.equal(refused.status, 429, path)
    t.ok(Number(refused.headers.get('retry-after')) >= 1, path)
    for (const probe of ['/healthz', '/readyz']) t.equal((await get(probe, twin.address, from)).status, 200, probe)
  }
})

t.test('/openapi.json is served from memory, and not sent to clients that have it', async (t) => {
  const first = await get('/openapi.json')
  const etag = first.headers.get('etag') ?? ''
  t.match(etag, /^"[\w-]{43}"$/)
  const text = await first.text()
  t.equal(await (await get('/openapi.json')).text(), text)
  const again = await get('/openapi.json', undefined, { 'if-none-match': etag })
  t.equal(again.status, 304)
  t.equal(again.headers.get('etag'), etag)
  t.equal(await again.text(), '')
  t.equal((await get('/openapi.json', undefined, { 'if-none-match': '"other"' })).status, 200)
})
