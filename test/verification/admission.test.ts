// Admission in groups: if keys or payments are repeated, in one group or in two processes at the same time, each key and each
// payment still ends with one request.
import type pg from 'pg'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { type Database, sql, transact } from '../../server/db/pool.ts'
import { type Admission, admitBatch } from '../../server/verification/admission/admission.ts'
import { until } from '../until.ts'
import { admit, call, NO_LIMIT, openProcesses, summary } from './admission-calls.ts'

async function jobs(tables: pg.Pool): Promise<number> {
  return (await tables.query('select count(*)::int from graphile_worker.jobs')).rows[0].count
}

async function requests(tables: pg.Pool): Promise<Record<string, number>> {
  const { rows } = await tables.query('select state, count(*)::int from verification_requests group by state')
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]))
}

interface Case {
  name: string
  items: () => Admission[]
  answers: string[]
  requests: Record<string, number>
}

const cases: Case[] = [
  {
    name: 'two calls for a key get one quote',
    items: () => [call('a'), call('a')],
    answers: ['quoted', 'quoted'],
    requests: { quoted: 1 },
  },
  {
    name: 'the same call twice binds its payment once',
    items: () => [call('a', 'one'), call('a', 'one')],
    answers: ['accepted, accepted', 'accepted'],
    requests: { accepted: 1 },
  },
  {
    name: 'two payments for one key: one is bound, the other stays free',
    items: () => [call('a', 'one'), call('a', 'two')],
    answers: ['accepted, accepted', 'accepted'],
    requests: { accepted: 1 },
  },
  {
    name: 'one payment for two keys: one is accepted, the other refused',
    items: () => [call('a', 'one'), call('b', 'one')],
    answers: ['accepted, accepted', 'payment_taken'],
    requests: { accepted: 1 },
  },
  {
    name: 'a call without payment, next to one with payment, gets the accepted request',
    items: () => [call('a'), call('a', 'one')],
    answers: ['accepted', 'accepted, accepted'],
    requests: { accepted: 1 },
  },
  {
    name: 'a payment for a second body of a key is not bound',
    items: () => [call('a'), call('a', 'one', { claim: 'It is not so.' })],
    answers: ['quoted', 'quoted'],
    requests: { quoted: 1 },
  },
  {
    name: 'crossed payments: each authorization serves one request, each request takes one',
    items: () => [call('a', 'one'), call('b', 'two'), call('a', 'two'), call('b', 'one')],
    answers: ['accepted, accepted', 'accepted, accepted', 'accepted', 'accepted'],
    requests: { accepted: 2 },
  },
]

/** The database chooses which of two equal calls wins. */
const anyOrder = (answers: string[]) => answers.toSorted()

for (const { name, items, answers, requests: expected } of cases)
  t.test(`in one group: ${name}`, async (t) => {
    await using set = await openProcesses(1)
    const { tables, dbs } = set
    t.same(anyOrder(summary(await admit(dbs[0]!, ...items()))), anyOrder(answers))
    t.same(await requests(tables), expected)
    t.equal(await jobs(tables), expected.accepted ?? 0, 'one job per accepted request')
    await expectOneToOne(t, tables)
  })

t.test('an accepted request takes no second payment, an expired quote takes none', async (t) => {
  await using set = await openProcesses(1)
  const { tables, dbs } = set
  const [db] = dbs as [Database]
  await admit(db, call('a', 'one'), call('old'))
  t.same(summary(await admit(db, call('a', 'two', { known: true }))), ['accepted'])
  await tables.query(`update verification_requests set quote_expires_at = now() where state = 'quoted'`)
  t.same(summary(await admit(db, call('old', 'two', { known: true }))), ['quoted'])
  t.same(summary(await admit(db, call('b', 'two'))), ['accepted, accepted'], 'the payment is still free')
})

t.test('a request that was proved unpaid continues where its work ended', async (t) => {
  await using set = await openProcesses(1)
  const { tables, dbs } = set
  const [db] = dbs as [Database]
  await admit(db, call('a', 'one'))
  await tables.query(`
    update verification_requests set state = 'unpaid', payment_sealed = null, observation = '{}', assessment = '{}'`)
  await tables.query('delete from payment_claims')
  await tables.query('delete from graphile_worker._private_jobs')
  t.same(summary(await admit(db, call('a', 'two', { known: true }))), ['assessed, accepted'])
  t.equal(await jobs(tables), 1)
})

t.test('a group that fails stores nothing', async (t) => {
  await using set = await openProcesses(1)
  const { tables, dbs } = set
  const broken = call('b', 'two')
  broken.payment = {
    ...broken.payment!,
    sealFor: () => {
      throw new Error('no key')
    },
  }
  await t.rejects(admit(dbs[0]!, call('a', 'one'), broken), { message: 'no key' })
  t.same(await requests(tables), {})
  t.equal(await jobs(tables), 0)
})

t.test('two processes at the same time: the second sees what the first has committed', async (t) => {
  await using set = await openProcesses(2)
  const { tables, dbs } = set
  const [one, two] = dbs as [Database, Database]
  for (const [first, second, expected] of [
    [call('a', 'one'), call('a', 'two'), 'accepted'],
    [call('b', 'three'), call('c', 'three'), 'payment_taken'],
    [call('d'), call('d', 'four'), 'accepted, accepted'],
  ] as const) {
    const written = Promise.withResolvers<void>()
    const commit = Promise.withResolvers<void>()
    const winning = transact(one, async (tx) => {
      const answers = await admitBatch(tx, [first], NO_LIMIT)
      written.resolve()
      await commit.promise
      return answers
    })
    await written.promise
    const losing = transact(two, async (tx) => {
      // The backend's pid is read before it has to wait.
      const { pid } = await tx.one(pidOf)
      void waitUntilBlocked(tables, pid).then(commit.resolve)
      return admitBatch(tx, [second], NO_LIMIT)
    })
    await winning
    t.same(summary(await losing), [expected])
  }
  await expectOneToOne(t, tables)
})

t.test('many groups at the same time, in any order: no deadlock and no duplicate', async (t) => {
  await using set = await openProcesses(4)
  const { tables, dbs } = set
  const words = (kind: string, count: number) => Array.from({ length: count }, (_, n) => `${kind} ${n}`)
  let state = 7
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state % below
  }
  const pick = (from: string[]) => from[random(from.length)]!
  const accepted: string[] = []
  for (let round = 0; round < 15; round++) {
    const [keys, nonces] = [words(`key ${round}`, 10), words(`nonce ${round}`, 10)]
    // Some rows exist already, as for a caller who was just asked to pay.
    await admit(dbs[0]!, ...keys.slice(0, 5).map((key) => call(key)))
    const group = () =>
      Array.from({ length: 12 }, () => {
        const key = pick(keys)
        return call(key, random(4) === 0 ? undefined : pick(nonces), { known: keys.indexOf(key) < 5 })
      })
    const answers = await Promise.all(dbs.map((db) => admit(db, ...group())))
    for (const answer of answers.flat()) if (answer.kind === 'row' && answer.accepted) accepted.push(answer.row.id)
  }
  t.equal(new Set(accepted).size, accepted.length, 'one caller each was answered that its payment is bound')
  t.equal((await requests(tables)).accepted, accepted.length)
  t.equal(await jobs(tables), accepted.length)
  await expectOneToOne(t, tables)
  // Postgres counts a deadlock when its session ends.
  await Promise.all(dbs.splice(0).map((db) => db.end()))
  const { rows } = await tables.query('select deadlocks::int from pg_stat_database where datname = current_database()')
  t.equal(rows[0].deadlocks, 0)
})

const pidOf = sql.type(z.object({ pid: z.number() }))`select pg_backend_pid() pid`

/** Polls the database, because no event announces that a session waits for a lock. */
async function waitUntilBlocked(tables: pg.Pool, pid: number) {
  await until(async () => {
    const { rows } = await tables.query('select cardinality(pg_blocking_pids($1)) > 0 blocked', [pid])
    return rows[0].blocked
  })
}

/** Each accepted request has a claim on its payment, and each claim has a request. */
async function expectOneToOne(t: Test, tables: pg.Pool) {
  const { rows } = await tables.query(`
    select r.id from verification_requests r
    full join payment_claims c on c.request_id = r.id and c.nonce = r.payment #>> '{identity,nonce}'
    where (r.state = 'accepted') is distinct from (c.request_id is not null)`)
  t.same(rows, [], 'payments and requests belong together')
}
