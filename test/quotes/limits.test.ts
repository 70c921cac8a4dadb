// The limits of quote checks: pages a day by tier, checks in flight by account and by domain.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { measurePruneLag, pruneAccounts } from '../../server/accounts/pruning.ts'
import { LIMITS, PUBLIC_LIMITS, TIERS } from '../../server/accounts/tiers.ts'
import { openQuoteHarness, type Reader } from './harness.ts'

t.test('pages a day, by tier; a body that is checked already is not refused', async (t) => {
  await using harness = await openQuoteHarness()
  const { tables } = harness.front
  for (const tier of TIERS) {
    const reader = await harness.register(tier)
    const known = await reader.check('/harbour', ['a'])
    t.equal(known.status, 202)
    const most = LIMITS[tier].quote_check_pages_per_day
    const used = (pages: number) =>
      tables.query(
        'update quote_check_days set pages = $2 where account_id = (select id from accounts where handle = $1)',
        [reader.handle, pages],
      )
    await used(most - 1)
    t.equal((await reader.check('/harbour', ['b'])).status, 202, `page ${most}`)
    const refused = await reader.check('/harbour', ['c'])
    t.match(refused, {
      status: 429,
      body: {
        error: {
          code: 'daily_limit',
          message: `quote_check_pages_per_day: the ${tier} tier has ${most} a day (UTC).`,
          retryable: true,
        },
      },
    })
    const seconds = Number(refused.headers.get('retry-after'))
    t.ok(Math.abs(seconds - (86_400 - ((Date.now() / 1000) % 86_400))) < 60, `${seconds} s to the next UTC midnight`)
    t.equal((await reader.check('/harbour', ['a'])).body.check_id, known.body.check_id)
    t.equal((await reader.used()).pages, most)
    await tables.query('update quote_check_days set day = day - 1')
    t.equal((await reader.used()).pages, 0)
    t.equal((await reader.check('/harbour', ['c'])).status, 202, 'the next day')
  }
})

const fill = (reader: Reader, n: number) =>
  Promise.all(Array.from({ length: n }, (_, i) => reader.check('/harbour', [`quote ${i}`])))

t.test('checks in flight of an account, also when they come at once', async (t) => {
  await using harness = await openQuoteHarness()
  for (const tier of ['free', 'dev'] as const) {
    const reader = await harness.register(tier)
    const most = LIMITS[tier].quote_checks_in_flight
    const answers = await fill(reader, most + 6)
    t.equal(answers.filter(({ status }) => status === 202).length, most)
    for (const refused of answers.filter(({ status }) => status !== 202)) {
      t.match(refused.body.error, {
        code: 'rate_limited',
        message: `quote_checks_in_flight: the ${tier} tier has ${most}.`,
      })
      t.match(refused.headers.get('retry-after'), /^([1-9]|[1-5]\d|60)$/)
    }
    t.same(await reader.used(), { pages: most, inFlight: most }, 'what is refused does not count')
    const held = answers.findIndex(({ status }) => status === 202)
    t.equal((await reader.check('/harbour', [`quote ${held}`])).status, 202, 'a known body is answered')
    await harness.queue.drain()
    t.equal((await reader.used()).inFlight, 0)
    t.equal((await reader.check('/harbour', ['after'])).status, 202)
    await harness.queue.drain()
  }
})

t.test('pages of one domain in flight, verifications included', async (t) => {
  await using harness = await openQuoteHarness()
  const { tables } = harness.front
  const readers = [await harness.register('pro'), await harness.register('pro')] as const
  const most = PUBLIC_LIMITS.in_flight_per_domain
  // A verification of the same domain in flight.
  const bought = await harness.front.ask({ key: randomUUID() })
  t.equal(bought.status, 402)
  await tables.query(
    `update verification_requests set state = 'accepted', payment = '{}', payment_sealed = '', domain = 'site.test',
       accepted_at = now()`,
  )
  const answers = [...(await fill(readers[0], most / 2)), ...(await fill(readers[1], most / 2))]
  t.equal(answers.filter(({ status }) => status === 202).length, most - 1)
  const refused = answers.filter(({ status }) => status !== 202)
  t.match(refused, [
    { body: { error: { code: 'rate_limited', message: `The limit of a domain is ${most} pages in flight.` } } },
  ])
  const source_url = 'https://other.test/harbour'
  const other = await readers[1].call('POST', '/v1/quote-check', { source_url, quotes: ['a'] })
  t.equal(other.status, 202, 'another domain has room')
  t.equal((await readers[1].used()).pages, most / 2)
})

t.test('answers are deleted a day after they were made, checks under way never', async (t) => {
  await using harness = await openQuoteHarness()
  const { tables } = harness.front
  const { db } = harness.work
  const reader = await harness.register()
  const done = await reader.check('/harbour', ['three piers'])
  await harness.queue.drain()
  const pending = await reader.check('/harbour', ['four piers'])
  await tables.query(`
    update quote_checks set changed_at = changed_at - interval '25 hours', expires_at = expires_at - interval '25 hours'`)
  const path = `/v1/quote-check/${done.body.check_id}`
  t.equal((await reader.call('GET', path)).status, 404, 'it has expired')
  const lag = async () => (await measurePruneLag(db)).find(({ table }) => table === 'quote_checks')?.seconds ?? -1
  t.ok(Math.abs((await lag()) - 3600) < 60, `${await lag()} s`)
  t.equal(await pruneAccounts(db), 1)
  t.equal(await lag(), 0)
  t.equal((await reader.call('GET', `/v1/quote-check/${pending.body.check_id}`)).status, 202)
  const again = await reader.check('/harbour', ['three piers'])
  t.equal(again.status, 202)
  t.not(again.body.check_id, done.body.check_id)
  await tables.query(`update quote_check_days set day = day - 3`)
  t.equal(await pruneAccounts(db), 1)
  const { text } = await fetch(harness.front.url('/metrics')).then(async (answer) => ({ text: await answer.text() }))
  for (const table of ['quote_checks', 'quote_check_days'])
    t.match(text, `countersign_prune_lag_seconds{table="${table}"} 0\n`)
})

t.test('an expired answer that is not deleted yet is made anew', async (t) => {
  await using harness = await openQuoteHarness()
  const reader = await harness.register()
  await reader.check('/harbour', ['three piers'])
  await harness.queue.drain()
  await harness.front.tables.query(`update quote_checks set expires_at = now()`)
  harness.front.site.pages.set('/harbour', { body: '<p>There are four piers.</p>' })
  await harness.front.tables.query('delete from observations')
  t.equal((await reader.check('/harbour', ['three piers'])).status, 202)
  await harness.queue.drain()
  t.match((await reader.check('/harbour', ['three piers'])).body, { quotes: [{ match: 'absent' }] })
  t.same(await reader.used(), { pages: 2, inFlight: 0 })
})
