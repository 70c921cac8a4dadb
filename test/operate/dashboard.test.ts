// The data and the actions of the operator's dashboard: the pages of requests, the timeline of one, undelivered alerts, and
// the log of actions.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { listActions, recorded } from '../../server/operate/actions.ts'
import { listUndelivered, redeliverAsOperator } from '../../server/operate/alerts.ts'
import { pageRequests, type RequestSearch } from '../../server/operate/request-pages.ts'
import { showRequest } from '../../server/operate/requests.ts'
import { timelineOf } from '../../server/operate/timeline.ts'
import { openWork } from '../../workers/context.ts'
import { openApiHarness } from '../api-harness.ts'
import { openQueue } from '../queue.ts'
import { payingFetch } from '../system.ts'
import { openTables } from '../verification/rows.ts'

const ROWS = 10_000

t.test('requests are read in pages, each once, and quickly with many rows', async (t) => {
  await using opened = await openTables()
  const { db, tables } = opened
  // Of every second, three requests share one time, so that the order within a time counts.
  await tables.query(`
    insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at, created_at, changed_at, error)
    select gen_random_uuid(), sha256(i::text::bytea), sha256(i::text::bytea),
           case i % 3 when 0 then 'failed' when 1 then 'quoted' else 'expired' end,
           json_build_object('source_url', 'https://host-' || i % 50 || '.test/page', 'claim', 'c'), now(),
           now() - (i / 3) * interval '1 second', now(),
           case i % 3 when 0 then json_build_object('code', 'source_timeout', 'message', 'm', 'retryable', true) end
    from generate_series(1, ${ROWS}) i`)
  await tables.query('analyze verification_requests')
  const seen: string[] = []
  const times: number[] = []
  for (let after: RequestSearch['after'] | null; after !== null; ) {
    const begun = performance.now()
    const page = await pageRequests(db, { limit: 500, ...(after && { after }) })
    times.push(performance.now() - begun)
    seen.push(...page.requests.map(({ id }) => id))
    after = page.next
  }
  const { rows } = await tables.query('select id from verification_requests order by created_at desc, id desc')
  t.same(
    seen,
    rows.map(({ id }) => id),
    'all of them, newest first, none twice',
  )
  t.ok(Math.max(...times) < 2000, `${Math.max(...times)} ms for a page`)
  t.comment(`pages of 500 of ${ROWS}: ${times.map(Math.round).join(', ')} ms`)

  const found = async (search: Omit<RequestSearch, 'limit'>) =>
    (await pageRequests(db, { ...search, limit: 5 })).requests
  const [one = ''] = seen
  t.match(await found({ text: one }), [{ id: one }])
  t.ok(
    (await found({ text: one.slice(0, 11) })).some(({ id }) => id === one),
    'by the beginning of an id',
  )
  t.ok((await found({ text: 'host-7.test' })).every(({ host }) => host === 'host-7.test'))
  t.equal((await found({ text: ' HOST-7.test ', state: 'failed' })).length, 5)
  t.same(await found({ text: 'nobody.test' }), [])
  t.match(
    await found({ state: 'failed', code: 'source_timeout' }),
    Array(5).fill({ state: 'failed', code: 'source_timeout' }),
  )
  t.same(await found({ code: 'no_such_code' }), [])
  t.same(await found({ text: `0x${'a'.repeat(40)}` }), [])
  t.same(await found({ text: `0x${'a'.repeat(64)}` }), [])
})

t.test('the timeline of a request names each state, its time and its process', async (t) => {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openApiHarness())
  const work = opened.use(await openWork(front.core))
  const queue = opened.use(openQueue(work))
  const buy = async (body?: object, key: string = randomUUID()) => {
    const answer = await front.ask({ key, fetch: payingFetch(), ...(body && { body }) })
    return ((await answer.json()) as { request_id: string }).request_id
  }
  const bought = await buy()
  const missing = { source_url: front.site.url('/missing'), claim: 'It is there.' }
  const again = randomUUID()
  const failing = await buy(missing, again)
  await queue.drain()
  const of = async (id: string) => {
    const found = await showRequest(front.core.db, id)
    return found ? timelineOf(found) : []
  }
  const moments = await of(bought)
  t.same(
    moments.map(({ state }) => state),
    ['quoted', 'accepted', 'observed', 'assessed', 'settling', 'settled', 'completed'],
  )
  t.equal(moments[0]?.seconds, null)
  for (const { by, seconds } of moments.slice(1)) {
    t.ok(by?.endsWith(`:${process.pid}`), `${by}`)
    t.ok(seconds !== null && seconds >= 0 && seconds < 600, `${seconds} s`)
  }
  t.same(
    (await of(failing)).map(({ state }) => state),
    ['quoted', 'accepted', 'failed'],
  )
  const payer = (await front.tables.query('select payer from verification_requests where id = $1', [bought])).rows[0]
    ?.payer
  const { requests } = await pageRequests(front.core.db, { text: payer, limit: 5 })
  t.match(requests, [{ id: bought }], 'found by its payer')

  // The history of a process of the release before has gaps: the present state is shown all the same.
  await front.tables.query('update verification_requests set history = null where id = $1', [bought])
  t.same(
    (await of(bought)).map(({ state }) => state),
    ['quoted', 'completed'],
  )
  // However often a request is paid anew, its history stays short.
  await front.tables.query(
    `update verification_requests
     set history = (select jsonb_agg(history -> 0) from verification_requests v, generate_series(1, 50) where v.id = $1),
         error = json_build_object('code', 'source_timeout', 'message', 'm', 'retryable', true)
     where id = $1`,
    [failing],
  )
  t.equal(await buy(missing, again), failing)
  const { rows } = await front.tables.query(
    `select state, jsonb_array_length(history) n, history -> -1 ->> 'state' last from verification_requests where id = $1`,
    [failing],
  )
  t.same(rows, [{ state: 'accepted', n: 50, last: 'accepted' }])
})

t.test('an action is stored before it is done, and kept', async (t) => {
  await using opened = await openTables()
  const { db, tables } = opened
  const act = { action: 'retry_request', subject: 'r-1', session: 'abc' } as const
  const outcome = await recorded(db, act, async () => {
    t.match(await listActions(db, 10), [{ ...act, outcome: null }])
    return 'retried'
  })
  t.equal(outcome, 'retried')
  await t.rejects(
    recorded(db, { ...act, subject: 'r-2' }, () => Promise.reject(new Error('broken'))),
    /broken/,
  )
  t.match(await listActions(db, 10), [
    { subject: 'r-2', outcome: 'failed' },
    { subject: 'r-1', outcome: 'retried' },
  ])
  const [last] = await listActions(db, 1)
  t.match(await listActions(db, 10, last?.action_id), [{ subject: 'r-1' }])
  for (const change of [
    `update operator_actions set outcome = 'other'`,
    `update operator_actions set subject = 'other'`,
    'delete from operator_actions',
    'truncate operator_actions',
  ])
    await t.rejects(tables.query(change), { code: '23001' }, change)
})

t.test('an alert that was given up is listed, and sent once more', async (t) => {
  await using opened = await openTables()
  const { db, tables } = opened
  const [account, webhook] = [randomUUID(), randomUUID()]
  const id = `wh_${'0'.repeat(32)}`
  await tables.query(`insert into accounts (id, handle) values ($1, 'kelby')`, [account])
  await tables.query(`insert into webhooks (id, account_id, url) values ($1, $2, 'https://hook.test/x')`, [
    webhook,
    account,
  ])
  await tables.query('set session_replication_role = replica')
  await tables.query(
    `insert into alerts (id, webhook_id, event_seq, type, body, serial, state, attempts, settled_at)
     values ($1, $2, 1, 'watchdog.missed', '{}', 1, 'failed', 12, now())`,
    [id, webhook],
  )
  await tables.query(
    `insert into alert_attempts (alert_id, attempt, at, ms, status, error) values ($1, 12, now(), 9, 500, 'status 500')`,
    [id],
  )
  t.match(await listUndelivered(db, 10), [
    { id, state: 'failed', host: 'hook.test', handle: 'kelby', last_error: 'status 500' },
  ])
  t.equal(await redeliverAsOperator(db, id), 'sent_again')
  t.match(await listUndelivered(db, 10), [{ id, next_attempt_at: Date }])
  t.equal(await redeliverAsOperator(db, `wh_${'1'.repeat(32)}`), 'not_found')
})
