// What bounds free looks: the day's counts, the work in flight, the order behind purchases, and a worker that dies.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { pruneAccounts } from '../../server/accounts/pruning.ts'
import { ADDRESS_LIMITS, PUBLIC_LIMITS } from '../../server/accounts/tiers.ts'
import { sweep } from '../../server/free-work/jobs.ts'
import { expireLooks } from '../../server/looks/look.ts'
import { LOOKS } from '../../server/looks/reading.ts'
import { openWork } from '../../workers/context.ts'
import { openRunner } from '../../workers/runner.ts'
import { openSlowPage } from '../api-harness.ts'
import { startChild } from '../children.ts'
import { declareDead } from '../crash-harness.ts'
import { openQuoteHarness } from '../quotes/harness.ts'
import { harbourClaim, PAGE, payingFetch, startSystem } from '../system.ts'
import { until } from '../until.ts'
import { look } from './looking.ts'

const from = (address: string) => ({ 'x-forwarded-for': address })

t.test('a day has a number of pairs for an address, and one for all', async (t) => {
  const env = { TRY_PER_ADDRESS_PER_DAY: '2', TRY_PER_DAY: '5', TRUST_PROXY: '1' }
  await using system = await startSystem({ env })
  const { source_url } = harbourClaim(system.site)
  const ask = (claim: string, address: string) => look(system, { source_url, claim }, from(address))
  for (const claim of ['a pier', 'a ferry', 'a pier', 'a ferry']) t.equal((await ask(claim, '192.0.2.1')).status, 200)
  const refused = await ask('a lighthouse', '192.0.2.1')
  t.match(refused, {
    status: 429,
    body: {
      status: 'failed',
      error: { code: 'daily_limit', message: /An internet address such as yours can try 2 /, retryable: true },
    },
  })
  const seconds = Number(refused.headers.get('retry-after'))
  t.ok(Math.abs(seconds - (86_400 - ((Date.now() / 1000) % 86_400))) < 60, `${seconds} s to the next UTC midnight`)
  t.equal((await ask('a pier', '192.0.2.1')).status, 200, 'a pair that was asked is still answered')

  for (const claim of ['a pier', 'a ferry']) t.equal((await ask(claim, '192.0.2.2')).status, 200)
  t.equal((await ask('a pier', '192.0.2.3')).status, 200)
  const all = await ask('a pier', '192.0.2.4')
  t.match(all, { status: 429, body: { error: { code: 'daily_limit', message: /All callers together can try 5 / } } })
  t.ok(Number(all.headers.get('retry-after')) > 0)
  await system.sql('update looks set day = day - 1')
  t.equal((await ask('a lighthouse', '192.0.2.1')).status, 200, 'the next day')
})

t.test('of the looks of all callers, a quarter is kept for networks that had at most two today', async (t) => {
  const env = { TRY_PER_ADDRESS_PER_DAY: '9', TRY_PER_DAY: '4', TRUST_PROXY: '1' }
  await using system = await startSystem({ env })
  const { source_url } = harbourClaim(system.site)
  const ask = async (claim: string, address: string) =>
    (await look(system, { source_url, claim }, from(address))).status
  for (const claim of ['a pier', 'a ferry', 'a buoy']) t.equal(await ask(claim, '2001:db8:1:1::1'), 200)
  t.equal(await ask('a lamp', '2001:db8:1:2::1'), 429, 'its network had three')
  t.equal(await ask('a lamp', '2001:db8:2:1::1'), 200, 'a newcomer')
  t.equal(await ask('a lamp', '2001:db8:3:1::1'), 429, 'all are used')
})

t.test('an IPv6 address counts with its /64, and the /48 has five times as many', async (t) => {
  await using system = await startSystem({ env: { TRY_PER_ADDRESS_PER_DAY: '1', TRUST_PROXY: '1' } })
  const { source_url } = harbourClaim(system.site)
  const ask = (claim: string, address: string) => look(system, { source_url, claim }, from(address))
  t.equal((await ask('a pier', '2001:db8:1:1::1')).status, 200)
  t.equal((await ask('a ferry', '2001:db8:1:1::2')).status, 429, 'the same /64')
  for (const subnet of [2, 3, 4, 5]) t.equal((await ask('a ferry', `2001:db8:1:${subnet}::1`)).status, 200)
  t.match(await ask('a ferry', '2001:db8:1:6::1'), {
    status: 429,
    body: { error: { message: /A network can try 5 / } },
  })
  t.equal((await ask('a ferry', '2001:db8:2:6::1')).status, 200, 'another /48')
  const [row] = await system.sql('select body::text from looks limit 1')
  t.notMatch(JSON.stringify(row), /2001/)
})

t.test('in flight: a number for an address, and one for a domain', async (t) => {
  await using harness = await openQuoteHarness({ TRUST_PROXY: '1' })
  const { front } = harness
  const most = ADDRESS_LIMITS.looks_in_flight
  const stop = new AbortController()
  const pending = async () =>
    Number((await front.tables.query(`select count(*)::int n from looks where state = 'pending'`)).rows[0].n)
  const begin = (n: number, address: string) =>
    fetch(front.url('/try'), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...from(address) },
      body: JSON.stringify({ source_url: front.site.url('/harbour'), claim: `pier ${n}` }),
      signal: stop.signal,
    }).catch(() => {})
  for (let n = 0; n < most; n++) begin(n, '192.0.2.1')
  await until(async () => (await pending()) === most)
  const refused = await look(front, { source_url: front.site.url('/harbour'), claim: 'pier' }, from('192.0.2.1'))
  t.match(refused, {
    status: 429,
    body: { error: { code: 'rate_limited', message: /looks_in_flight: an address has 4/ } },
  })
  t.match(refused.headers.get('retry-after'), /^([1-9]|[1-5]\d|60)$/)

  await front.tables.query(
    `insert into looks (id, address_key, network_key, day, pair_hash, body, domain, priority)
     select gen_random_uuid(), decode(md5(n::text), 'hex'), decode(md5(n::text), 'hex'), current_date,
            sha256(n::text::bytea), '{}', 'site.test', 10 from generate_series(1, $1) n`,
    [PUBLIC_LIMITS.in_flight_per_domain - most],
  )
  const full = await look(front, { source_url: front.site.url('/harbour'), claim: 'pier' }, from('192.0.2.9'))
  t.match(full, { status: 429, body: { error: { code: 'rate_limited', message: /limit of a domain is 64/ } } })
  const bought = await front.ask({ key: randomUUID(), fetch: payingFetch() })
  t.equal(bought.status, 202, 'what is paid for is not refused for it')
  await bought.body?.cancel()

  const { rows } = await front.tables.query(
    'select task_identifier task, priority from graphile_worker.jobs order by priority, run_at, id',
  )
  t.equal(rows[0].task, 'verify_request', 'what came last and was paid for is served first')
  t.same(
    rows.filter(({ task }) => task === 'take_look').map(({ priority }) => priority),
    [10, 11, 12, 13],
    'those of one address come one after the other',
  )
  stop.abort()
})

t.test('what a look reads is kept for half an hour, its count for its day', async (t) => {
  await using system = await startSystem()
  const body = harbourClaim(system.site)
  const first = await look(system, body)
  t.equal((await look(system, body)).body.checked_at, first.body.checked_at)
  const { db } = system.service.api
  t.equal(await expireLooks(db), 0)
  await system.sql(`update looks set changed_at = changed_at - interval '31 minutes'`)
  t.equal(await expireLooks(db), 1)
  t.same(await system.sql('select state, body, result from looks'), [{ state: 'expired', body: null, result: null }])
  await system.sql('delete from observations')
  const again = await look(system, body)
  t.equal(again.status, 200)
  t.not(again.body.checked_at, first.body.checked_at)
  t.same(await system.sql('select count(*)::int n from looks'), [{ n: 1 }], 'it is counted once')
  await system.sql(`update looks set state = 'expired', body = null, result = null, runs = 60`)
  t.match(await look(system, body), {
    status: 429,
    body: { error: { code: 'daily_limit', message: /60 times a day/ } },
  })

  await system.sql(`update looks set day = day - 1`)
  t.equal(await pruneAccounts(db), 0)
  await system.sql(`update looks set day = day - 2`)
  t.equal(await pruneAccounts(db), 1)
  t.same(await system.sql('select count(*)::int n from looks'), [{ n: 0 }])
})

for (const fetches of ['0', '4'])
  t.test(`a worker that is killed loses no look, with ${fetches} slow fetches`, async (t) => {
    await using harness = await openQuoteHarness({ WORKER_FETCHES: fetches })
    const { front } = harness
    const slow = openSlowPage(PAGE)
    front.site.pages.set('/slow', slow.page)
    await using child = startChild('workers/main.ts', front.env)
    const body = { source_url: front.site.url('/slow'), claim: 'The harbour has three piers.' }
    const answer = look(front, body)
    await slow.asked
    child.kill('SIGKILL')
    await child.ended
    slow.serve()
    await front.tables.query(`update origin_visits set until = now() - interval '1 second'`)
    await declareDead(front)
    await front.tables.query('update graphile_worker._private_jobs set run_at = now()')
    await using work = await openWork(front.core)
    await using runner = await openRunner(work)
    runner.died.catch(() => {})
    const late = await answer
    const { status } = late.status === 202 ? await look(front, body) : late
    t.equal(status, 200)
    const { rows } = await front.tables.query('select count(*)::int n from looks')
    t.same(rows, [{ n: 1 }], 'it is counted once')
  })

t.test('a look that lost its job gets another, and one that kills its worker fails', async (t) => {
  await using harness = await openQuoteHarness()
  const { front, work, queue } = harness
  const body = harbourClaim(front.site)
  const answer = look(front, body)
  await until(async () => (await front.tables.query('select from looks')).rowCount === 1)
  await front.tables.query('delete from graphile_worker._private_jobs')
  t.same(await sweep(LOOKS, work, 0), { requeued: 1, failed: 0 })
  await queue.drain()
  t.equal((await answer).status, 200)

  const other = { ...body, claim: 'The harbour has three piers.' }
  const failing = look(front, other)
  await until(async () => (await front.tables.query(`select from looks where state = 'pending'`)).rowCount === 1)
  await front.tables.query('update graphile_worker._private_jobs set attempts = max_attempts')
  t.same(await sweep(LOOKS, work), { requeued: 0, failed: 1 })
  t.match(await failing, { status: 422, body: { error: { code: 'execution_failed', retryable: true } } })
})
