// The payments in the status: all entries of the ledger, whether their minutes were already counted or not.
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { openDatabase, sql } from '../../server/db/pool.ts'
import { readFacts } from '../../server/operate/facts.ts'
import { paymentsOf } from '../../server/operate/minutes.ts'
import { countOutcomes, sumToday } from '../../server/operate/money.ts'
import { openTestDatabase } from '../database.ts'
import { query } from '../system.ts'

const ENTRIES = 3000

/**
 * Over 26 hours, some in the same minute: settled in two places, unpaid, and failed for two reasons. None leaves the last hour or the last
 * day within five minutes, in which a count would be another one than the count before it.
 */
const FILL = `with guards as materialized (select set_config('session_replication_role', 'replica', true) setting)
  insert into payment_ledger (entered_at, request_id, outcome, reason, network, asset, payer, nonce, pay_to, amount_atomic,
    valid_before, provider, mode)
  select now() - (age - case when age between 3300 and 3600 or age between 86100 and 86400 then 300 else 0 end) * interval '1 second',
    gen_random_uuid(), outcome, case outcome when 'settled' then null else reason end,
    'network-' || n % 2, 'usdc', 'payer', 'nonce-' || n, 'us', 30000 + n, 0, 'offline',
    case outcome when 'settled' then 'offline' end
  from guards, (select n, random() * 26 * 3600 age from generate_series(1, ${ENTRIES}) n) drawn,
    lateral (select (array['settled', 'settled', 'unpaid', 'failed'])[1 + n % 4] outcome,
                    (array['timeout', 'refused'])[1 + n / 4 % 2] reason) kind`

const EXPECTED = `select
  (select json_object_agg(outcome, n) from (select outcome, count(*) n from payment_ledger
    where entered_at > now() - $1 * interval '1 second' group by outcome) o) outcomes,
  (select json_object_agg(reason, n) from (select reason, count(*) n from payment_ledger
    where outcome = 'failed' and entered_at > now() - $1 * interval '1 second' group by reason) r) failures,
  (select json_agg(today order by today.network) from (
    select mode, network, count(*) payments, (sum(amount_atomic) / 1000000)::numeric(30, 2)::text amount_usd from payment_ledger
    where outcome = 'settled' and entered_at >= date_trunc('day', now(), 'utc') group by mode, network) today) today`

t.test('figures are those of the ledger', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  t.teardown(() => db.end())
  t.same(await countOutcomes(db, 86_400), { settled: 0, failed: 0, unpaid: 0, failures: {} })
  t.same(await sumToday(db), [])
  await query(database.url, FILL)

  async function compare(what: string) {
    for (const seconds of [3600, 86_400]) {
      const [expected] = await query(database.url, EXPECTED, [seconds])
      const { outcomes, failures, today } = expected as { outcomes: object; failures: object; today: object[] | null }
      t.same(await countOutcomes(db, seconds), { ...outcomes, failures }, `${what}, ${seconds} s`)
      const found = (await sumToday(db)).toSorted((a, b) => a.network.localeCompare(b.network))
      t.same(found, today ?? [], `${what}, today`)
    }
  }

  await compare('no minute was counted')
  const { sql: payments, values } = sql.type({} as never)`${paymentsOf(sql.fragment`minute`)}`
  t.same(values, [])
  // Some minutes have no row, some are not counted yet, and some were counted without reasons by an earlier release.
  await query(
    database.url,
    `insert into minute_figures (minute, well, queue_depth, oldest_seconds, counters, payments)
    select minute, true, 0, 0, '{}', case n % 5 when 0 then null when 1 then
      (select coalesce(jsonb_agg(entry - 'reason'), '[]') from jsonb_array_elements(${payments}) entry) else ${payments} end
    from generate_series(2, 27 * 60) n, lateral (select date_trunc('minute', now()) - n * interval '1 minute' as minute) m
    where n % 7 > 0`,
  )
  await compare('most were')
  await query(database.url, `delete from minute_figures where minute > now() - interval '2 hours'`)
  await compare('no process ran lately')

  // A counted minute is not read from the ledger again: this one has counts that the ledger does not have.
  const before = await countOutcomes(db, 86_400)
  await query(
    database.url,
    `insert into minute_figures (minute, well, queue_depth, oldest_seconds, counters, payments)
    select date_trunc('minute', now()) - interval '30 minutes', true, 0, 0, '{}',
      ${payments} || '[{"outcome": "settled", "reason": null, "mode": "offline", "network": "n", "count": 7000, "amount_atomic": "7"}]'
    from (select date_trunc('minute', now()) - interval '30 minutes' as minute) m`,
  )
  t.same(await countOutcomes(db, 86_400), { ...before, settled: before.settled + 7000 })
})

t.test('accounts are counted, and the disabled ones', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  t.teardown(() => db.end())
  await query(
    database.url,
    `insert into accounts (id, handle, disabled_at)
    select gen_random_uuid(), 'some-' || n, case when n % 10 = 0 then now() end from generate_series(1, 100) n`,
  )
  const { accounts } = await readFacts(db, readConfig({}))
  t.same(accounts, { total: 100, disabled: 10 })
})
