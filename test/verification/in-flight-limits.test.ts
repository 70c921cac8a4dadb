// Limits on requests in flight: the calls of one caller, however many, do not keep those of others from being served.
import type pg from 'pg'
import t from 'tap'
import { PUBLIC_LIMITS } from '../../server/accounts/tiers.ts'
import type { Database } from '../../server/db/pool.ts'
import type { Admission, Admitted } from '../../server/verification/admission/admission.ts'
import { limitError } from '../../server/verification/admission/in-flight-limits.ts'
import { admit, admitUnder, type CallOptions, call, NO_LIMIT, openProcesses } from './admission-calls.ts'

/** Paid calls, each for a request of its own; members that the options leave out differ from call to call. */
function paidCalls(count: number, word: string, options: (n: number) => CallOptions): Admission[] {
  return Array.from({ length: count }, (_, n) =>
    call(`${word} ${n}`, `${word} ${n}`, {
      payer: `${word} ${n}`,
      address: n,
      domain: `${word}-${n}.test`,
      ...options(n),
    }),
  )
}

const accepted = (answers: Admitted[]) => answers.filter((answer) => answer.kind === 'row' && answer.accepted).length
const limited = (answers: Admitted[]) => answers.flatMap((answer) => (answer.kind === 'limited' ? [answer] : []))

/** Admits in groups of 64, as the service does. */
async function admitAll(db: Database, items: Admission[], maxInFlightPerPayer = NO_LIMIT): Promise<Admitted[]> {
  const answers: Admitted[] = []
  for (let from = 0; from < items.length; from += 64)
    answers.push(...(await admitUnder(maxInFlightPerPayer, db, items.slice(from, from + 64))))
  return answers
}

async function count(tables: pg.Pool, query: string): Promise<number> {
  return (await tables.query(query)).rows[0].count
}

const groups = [
  { limit: 'payer', most: 8, share: () => ({ payer: '0xone' }) },
  { limit: 'address', most: PUBLIC_LIMITS.in_flight_per_address, share: () => ({ address: 7 }) },
  { limit: 'domain', most: PUBLIC_LIMITS.in_flight_per_domain, share: () => ({ domain: 'slow.test' }) },
] as const

for (const { limit, most, share } of groups) {
  t.test(
    `no more than ${most} of one ${limit} are in flight; a refused call leaves key and payment free`,
    async (t) => {
      await using set = await openProcesses(1)
      const { tables, dbs } = set
      const [db] = dbs as [Database]
      const calls = paidCalls(most + 20, 'one', share)
      const answers = await admitAll(db, calls, 8)
      t.equal(accepted(answers), most)
      t.match(limited(answers), Array(20).fill({ limit, most }))
      t.equal(await count(tables, 'select count(*)::int from verification_requests'), most, 'no other row is left')
      t.equal(await count(tables, 'select count(*)::int from payment_claims'), most, 'no other payment is bound')
      t.equal(await count(tables, 'select count(*)::int from graphile_worker.jobs'), most, 'no other job is stored')

      t.equal(
        accepted(
          await admitAll(
            db,
            paidCalls(1, 'two', () => ({})),
            8,
          ),
        ),
        1,
        'a call of another group is served',
      )
      await tables.query(`update verification_requests set state = 'completed', payment_sealed = null, result = ''
      where id = (select id from verification_requests limit 1)`)
      const refused = calls.filter((_, n) => answers[n]?.kind === 'limited').slice(0, 2)
      t.equal(
        accepted(await admitAll(db, refused, 8)),
        1,
        'a finished request makes room for one more, with the same key',
      )
    },
  )

  t.test(`two processes at the same time: together no more than ${most} of one ${limit}`, async (t) => {
    await using set = await openProcesses(2)
    const { dbs } = set
    const words = ['left', 'right']
    const answers = await Promise.all(dbs.map((db, n) => admitAll(db, paidCalls(most, words[n] ?? '', share), 8)))
    t.equal(accepted(answers.flat()), most)
    t.equal(limited(answers.flat()).length, most)
  })
}

t.test('MAX_IN_FLIGHT_PER_PAYER=0: only address and domain limit a payer', async (t) => {
  await using set = await openProcesses(1)
  const answers = await admitAll(
    set.dbs[0]!,
    paidCalls(300, 'one', () => ({ payer: '0xone' })),
  )
  t.equal(accepted(answers), 300)
})

t.test('two calls for one request take one place, and a request in flight takes none again', async (t) => {
  await using set = await openProcesses(1)
  const [db] = set.dbs as [Database]
  const twice = [call('a', 'one'), call('a', 'one'), call('a', 'two'), call('b', 'three'), call('c', 'four')]
  const answers = await admitUnder(2, db, twice)
  t.same(
    answers.map((answer) => (answer.kind === 'row' ? answer.row.state : answer.kind)),
    ['accepted', 'accepted', 'accepted', 'accepted', 'limited'],
  )
  const again = await admitUnder(2, db, [call('a', 'one', { known: true }), call('b', 'three')])
  t.match(again, [
    { kind: 'row', row: { state: 'accepted' }, accepted: false },
    { kind: 'row', row: { state: 'accepted' }, accepted: false },
  ])
})

t.test('the refusal names the limit, its number, when to retry, and that nothing was charged', (t) => {
  for (const limit of ['payer', 'balance', 'address', 'domain', 'open_quotes'] as const) {
    const error = limitError({ kind: 'limited', limit, most: 77, retryAfterSeconds: 12 })
    t.match(error, { code: 'rate_limited', retryable: true, headers: { 'retry-after': '12' } })
    t.match(error.message, /\b77\b.*Nothing was charged\./)
    t.match(error.message, limit === 'balance' ? /balance/ : limit === 'payer' ? /payer/ : /address|domain/)
  }
  t.end()
})

t.test('Retry-After is the mean age of the requests in flight, divided by their number', async (t) => {
  await using set = await openProcesses(1)
  const { tables, dbs } = set
  const [db] = dbs as [Database]
  await admitUnder(
    4,
    db,
    paidCalls(4, 'one', () => ({ payer: '0xone' })),
  )
  const retryAfter = async () => limited(await admitUnder(4, db, [call('more', 'more', { payer: '0xone' })]))
  t.match(await retryAfter(), [{ retryAfterSeconds: 1 }], 'at least a second')
  for (const [age, seconds] of [
    [40, 10],
    [9, 3],
    [4000, 60],
  ]) {
    await tables.query(`update verification_requests set accepted_at = now() - $1 * interval '1 second'`, [age])
    const [refusal] = await retryAfter()
    // A second may have passed since the update.
    t.ok(refusal && refusal.retryAfterSeconds >= seconds! && refusal.retryAfterSeconds <= seconds! + 1, `${age} s old`)
  }
})

t.test('open quotes of one address are limited; an existing quote is still answered 402', async (t) => {
  await using set = await openProcesses(1)
  const { tables, dbs } = set
  const [db] = dbs as [Database]
  const most = PUBLIC_LIMITS.open_quotes_per_address
  const quotes = Array.from({ length: most + 70 }, (_, n) => call(`quote ${n}`))
  const answers = await admitAll(db, quotes)
  const refused = limited(answers)
  t.match(refused, Array(70).fill({ limit: 'open_quotes', most }))
  t.equal(await count(tables, 'select count(*)::int from verification_requests'), most, 'refused calls left no row')
  t.ok(refused.at(-1)!.retryAfterSeconds > 800, 'until the first of them expires')
  t.match(await admit(db, call('quote 3')), [{ kind: 'row' }], 'an existing quote')
  t.match(await admit(db, call('elsewhere', undefined, { address: 2 })), [{ kind: 'row' }], 'another address')
  t.equal(accepted(await admit(db, { ...call('quote 3', 'paid'), known: true })), 1, 'a payment for one of them')
  t.match(await admit(db, call('one more')), [{ kind: 'row' }], 'a paid quote is no longer open')
  await tables.query(`update verification_requests set quote_expires_at = now() where state = 'quoted'`)
  t.match(await admit(db, call('one more again')), [{ kind: 'row' }], 'an expired quote is not open either')
})

t.test('two processes at the same time: together no more open quotes than the limit', async (t) => {
  await using set = await openProcesses(2)
  const most = PUBLIC_LIMITS.open_quotes_per_address
  const answers = await Promise.all(
    set.dbs.map((db, n) =>
      admitAll(
        db,
        Array.from({ length: most }, (_, m) => call(`process ${n} quote ${m}`)),
      ),
    ),
  )
  t.equal(limited(answers.flat()).length, most)
})

t.test('the hundredth waiting request of one payer runs after the first of another', async (t) => {
  await using set = await openProcesses(1)
  const { tables, dbs } = set
  const [db] = dbs as [Database]
  await admitAll(
    db,
    paidCalls(100, 'many', () => ({ payer: '0xmany' })),
  )
  await admit(db, call('first', 'first', { payer: '0xother', address: 999 }))
  // One address with many payers: each payer is new, and each request weighs an eighth.
  await admitAll(
    db,
    paidCalls(80, 'crowd', () => ({ address: 5000 })),
  )
  await admit(db, call('second', 'second', { payer: '0xanother', address: 1000 }))
  const { rows } = await tables.query<{ payer: string; priority: number }>(`
    select r.payment #>> '{identity,payer}' payer, j.priority
    from graphile_worker.jobs j join verification_requests r on j.key = 'verify:' || r.id order by j.priority, j.id`)
  const place = (payer: string) => rows.findIndex((row) => row.payer === payer)
  const hundredth = rows.findLastIndex((row) => row.payer === '0xmany')
  t.equal(rows[hundredth]?.priority, 99)
  t.equal(rows[place('0xother')]?.priority, 0)
  t.ok(place('0xother') < rows.findIndex((row) => row.payer === '0xmany' && row.priority === 1))
  t.ok(place('0xanother') < rows.findIndex((row) => row.payer.startsWith('crowd') && row.priority === 1))
  t.equal(Math.max(...rows.filter((row) => row.payer.startsWith('crowd')).map((row) => row.priority)), 9)
  t.same(
    await count(
      tables,
      `select count(*)::int from verification_requests r
      join graphile_worker.jobs j on j.key = 'verify:' || r.id where r.priority <> j.priority`,
    ),
    0,
    'the row stores the priority too, for a job that is stored again',
  )
})

t.test('one balance does not cover many assessments', async (t) => {
  await using set = await openProcesses(1)
  const { tables, dbs } = set
  const [db] = dbs as [Database]
  const calls = (word: string, length: number, cover?: number | null) =>
    Array.from({ length }, (_, n) => call(`${word} ${n}`, `${word} ${n}`, { cover, domain: `${word}-${n}.test` }))
  const first = await admitUnder(8, db, calls('first', 3))
  t.same(
    first.map(({ kind }) => kind),
    ['row', 'cover_unknown', 'cover_unknown'],
    'the first needs no cover, the others do',
  )
  t.equal(await count(tables, 'select count(*)::int from verification_requests'), 1, 'until then nothing is stored')
  const covered = await admitUnder(8, db, calls('first', 3, 2).slice(1))
  t.equal(accepted(covered), 1)
  t.match(limited(covered), [{ limit: 'balance', most: 2 }])
  t.match(limited(await admitUnder(8, db, calls('empty', 1, 0))), [{ limit: 'balance', most: 1 }])
  t.equal(accepted(await admitUnder(8, db, calls('free', 2, null))), 2, 'null: not limited')

  await tables.query(`insert into payers (payer, settled, max_in_flight) values ('0xpayer', 6, 14)`)
  const known = await admitUnder(8, db, calls('known', 3))
  t.equal(accepted(known), 2, 'earlier settlements are cover too: 4 and 2 are 6')
  t.equal(known.at(-1)?.kind, 'cover_unknown')
  await tables.query(`
    update verification_requests set state = 'settled', payment_sealed = null, observation = '{}', assessment = '{}',
      settlement = '{}'`)
  t.equal(accepted(await admitUnder(20, db, calls('settled', 1, 0))), 1, 'a settled request needs no cover')
})
