// The states of a request are guarded twice: by the code that moves it, and by the table.
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { openDatabase, transact } from '../../server/db/pool.ts'
import type { Payment } from '../../server/interface/payment.ts'
import type { SettlementProof } from '../../server/payments/x402.ts'
import { pruneRequests } from '../../server/verification/pruning.ts'
import {
  claimRequest,
  failRequest,
  holdsRequest,
  moves,
  releasePayment,
  StaleAttemptError,
  type State,
  states,
  type WorkingRequest,
} from '../../server/verification/request.ts'
import { advance, type Step, writeSteps } from '../../server/verification/steps.ts'
import { openTestDatabase } from '../database.ts'
import { type Column, held, insertRow } from './rows.ts'

async function openTables() {
  await using opened = new AsyncDisposableStack()
  const { url } = opened.use(await openTestDatabase())
  const tables = new pg.Pool({ connectionString: url, max: 2 })
  // Connections that are still closing when the database is dropped.
  tables.on('error', () => {})
  opened.defer(() => tables.end())
  const db = await openDatabase(url, { maxConnections: 4 })
  opened.defer(() => db.end())
  const closing = opened.move()
  return { tables, db, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

const CHECK_VIOLATION = { code: '23514' }

t.test('a move that is not in the table of moves is refused before anything is written', async (t) => {
  const written: Step[] = []
  const steps = {
    async add(step: Step) {
      written.push(step)
      return 'taken' as const
    },
    size: 0,
    async [Symbol.asyncDispose]() {},
  }
  for (const from of states)
    for (const to of states) {
      const request = { id: randomUUID(), attempt: randomUUID(), state: from } as WorkingRequest
      if (moves[from].includes(to)) {
        t.equal((await advance(steps, request, to)).state, to)
        t.match(written.pop(), { from, to })
      } else await t.rejects(advance(steps, request, to), { message: `no move from ${from} to ${to}` })
    }
  t.same(written, [])
})

t.test('only a request that was never settling can fail, and a charged one can only be completed', (t) => {
  // A payment that is bound to `unpaid` or `failed` is another one.
  const reachable = (from: State): State[] => [...new Set(moves[from].flatMap((to) => [to, ...reachableOnce(to)]))]
  const reachableOnce = (from: State) => (from === 'unpaid' || from === 'failed' ? [] : reachable(from))
  t.notOk(reachable('settling').includes('failed'))
  t.same(moves.settled, ['completed'])
  t.same(moves.settling, ['settled', 'unpaid'])
  t.same(moves.failed, ['accepted'], 'a failure is paid anew or stays')
  t.end()
})

t.test('each state has what its work needs, and the table refuses it without', async (t) => {
  await using opened = await openTables()
  const { tables } = opened
  // What a request of long ago may lack: an expired or failed one is a tombstone.
  const needed: Record<State, Column[]> = { ...held, failed: ['error'], unpaid: ['body'], expired: [] }
  for (const state of states) {
    await t.resolves(insertRow(tables, state), state)
    for (const missing of needed[state].filter((column) => column !== 'settlement_intent' || state === 'settling')) {
      if (state === 'completed' && missing === 'settlement') continue
      const columns = held[state].filter((column) => column !== missing)
      await t.rejects(insertRow(tables, state, { columns }), CHECK_VIOLATION, `${state} without ${missing}`)
    }
  }
})

/** Where each of these may be filled, and nowhere else. */
const places: [Column, State[]][] = [
  ['payment_sealed', ['accepted', 'observed', 'assessed', 'settling']],
  ['result', ['completed']],
  ['error', ['failed']],
]

t.test('what could be charged, was served, or went wrong is nowhere but in its states', async (t) => {
  await using opened = await openTables()
  for (const [column, allowed] of places)
    for (const state of states.filter((state) => !allowed.includes(state))) {
      const columns: Column[] = [...held[state], column]
      await t.rejects(insertRow(opened.tables, state, { columns }), CHECK_VIOLATION, `${state} with ${column}`)
    }
})

const unguarded: [Column, State[]][] = [
  ['settlement', ['settled', 'completed']],
  ['observation', ['observed', 'assessed', 'settling', 'settled', 'unpaid']],
  ['assessment', ['assessed', 'settling', 'settled', 'unpaid']],
]

t.test('what is not done yet is nowhere stored', async (t) => {
  await using opened = await openTables()
  for (const [column, allowed] of unguarded)
    for (const state of states.filter((state) => !allowed.includes(state))) {
      const columns: Column[] = [...held[state], column]
      await t.rejects(insertRow(opened.tables, state, { columns }), CHECK_VIOLATION, `${state} with ${column}`)
    }
})

t.test('a step is taken by the attempt that holds the request, from the state it is in, and once', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  const [mine, other] = [randomUUID(), randomUUID()]
  const ids = await Promise.all(
    Array.from({ length: 4 }, () => insertRow(tables, 'assessed', { attempt: mine, columns: held.settling })),
  )
  const [taken, foreign, elsewhere, repeated] = ids as [string, string, string, string]
  const step = { attempt: mine, from: 'assessed', to: 'settling' } as const
  await writeSteps(db, [{ ...step, id: repeated }], 8)
  t.same(
    await writeSteps(
      db,
      [
        { ...step, id: taken },
        { ...step, id: foreign, attempt: other },
        { ...step, id: elsewhere, from: 'observed', to: 'assessed' },
        { ...step, id: repeated },
        { ...step, id: randomUUID() },
      ],
      8,
    ),
    ['taken', 'fenced', 'fenced', 'fenced', 'fenced'],
  )
  const { rows } = await tables.query(`select id from verification_requests where state = 'assessed'`)
  t.same(new Set(rows.map(({ id }) => id)), new Set([foreign, elsewhere]), 'the others stay as they are')
})

t.test('one log of a transaction pays one request; the other steps of the group are taken all the same', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  const attempt = randomUUID()
  const settle = async (transaction: string, proof: SettlementProof, log_index: number | null): Promise<Step> => {
    const payment = { provider: 'x', mode: 'testnet', transaction } as Payment
    const settlement = { payment, response: {}, proof, log_index }
    return {
      id: await insertRow(tables, 'settling', { attempt }),
      attempt,
      from: 'settling',
      to: 'settled',
      settlement,
    }
  }
  const other: Step = {
    id: await insertRow(tables, 'assessed', { attempt, columns: held.settling }),
    attempt,
    from: 'assessed',
    to: 'settling',
  }
  const foreign: Step = { ...(await settle('0x9', 'chain', 1)), attempt: randomUUID() }
  const write = async (...steps: Step[]) => {
    const outcomes = await writeSteps(db, steps, 8)
    const { rows } = await tables.query(
      `select id, state, payment_sealed is not null sealed from verification_requests where id = any($1)`,
      [steps.map(({ id }) => id)],
    )
    for (const [index, { id, to }] of steps.entries()) {
      const row = rows.find((row) => row.id === id)
      const wanted = outcomes[index] === 'taken' ? { state: to } : { state: 'settling', sealed: true }
      t.match(row, wanted, String(outcomes[index]))
    }
    return outcomes
  }
  const [taken, refused] = ['taken', 'transaction_taken']
  const [one, another, same, ...rest] = await write(
    await settle('0x1', 'chain', 3),
    await settle('0x1', 'chain', 3),
    other,
    foreign,
    await settle('0x1', 'chain', 5),
  )
  t.same([one, another].sort(), [taken, refused], 'one of the two')
  t.same([same, ...rest], [taken, 'fenced', taken], 'in the same group')
  const words = [await settle('0x2', 'facilitator', null), await settle('0x2', 'unconfirmed', null)]
  t.same((await write(...words)).sort(), [taken, refused], 'one of the two')
  t.same(
    await write(
      await settle('0x1', 'chain', 5),
      await settle('0x1', 'chain', 7),
      await settle('0x1', 'unconfirmed', null),
      await settle('0x2', 'facilitator', null),
      await settle('0x2', 'chain', 0),
      await settle('0x3', 'facilitator', null),
    ),
    [refused, taken, refused, refused, taken, taken],
    'in a later one; what the chain shows goes before a word',
  )
  const { rows } = await tables.query(`select transaction, proof, log_index from payment_ledger order by 1, 3`)
  t.match(rows, [
    { transaction: '0x1', proof: 'chain', log_index: 3 },
    { transaction: '0x1', proof: 'chain', log_index: 5 },
    { transaction: '0x1', proof: 'chain', log_index: 7 },
    { transaction: '0x2', proof: 'chain', log_index: 0 },
    { transaction: '0x2', proof: /facilitator|unconfirmed/, log_index: null },
    { transaction: '0x3', proof: 'facilitator', log_index: null },
  ])
})

t.test('whoever claims a request fences the one before out of everything', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  const [before, after] = [randomUUID(), randomUUID()]
  for (const state of ['accepted', 'settling'] as const) {
    const id = await insertRow(tables, state, { attempt: before })
    await tables.query('update verification_requests set attempt = $2 where id = $1', [id, after])
    const late = { id, attempt: before }
    t.equal(await transact(db, (tx) => holdsRequest(tx, late)), false)
    t.equal(await transact(db, (tx) => holdsRequest(tx, { id, attempt: after })), true)
    await t.rejects(
      transact(db, (tx) => failRequest(tx, late, { code: 'x', message: 'x', retryable: true }, 8)),
      StaleAttemptError,
    )
    await t.rejects(
      transact(db, (tx) => releasePayment(tx, late, { reason: 'x', quoteTtlSeconds: 1, maxInFlightPerPayer: 8 })),
      StaleAttemptError,
    )
  }
  const { rows } = await tables.query('select count(*)::int from payment_ledger')
  t.equal(rows[0].count, 0, 'nothing was booked')
})

t.test('only work can be claimed', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  for (const state of ['quoted', 'completed', 'unpaid', 'failed', 'expired'] as const) {
    const id = await insertRow(tables, state)
    t.equal(await claimRequest(db, id, randomUUID()), null, state)
  }
})

t.test('a request that may have been charged cannot be failed, one that was not settling not released', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  const attempt = randomUUID()
  const error = { code: 'execution_failed', message: 'No.', retryable: true }
  for (const state of states) {
    const id = await insertRow(tables, state, { attempt })
    const fail = transact(db, (tx) => failRequest(tx, { id, attempt }, error, 8))
    if (moves[state].includes('failed')) await t.resolves(fail, state)
    else await t.rejects(fail, StaleAttemptError, state)
    const other = await insertRow(tables, state, { attempt })
    const release = transact(db, (tx) =>
      releasePayment(tx, { id: other, attempt }, { reason: 'x', quoteTtlSeconds: 9, maxInFlightPerPayer: 8 }),
    )
    if (moves[state].includes('unpaid')) await t.resolves(release, state)
    else await t.rejects(release, StaleAttemptError, state)
  }
})

const DAY = 86_400

t.test('what has run out is forgotten, and leaves a tombstone where anything was ever paid', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  const ids = new Map<string, string>()
  for (const state of states) {
    ids.set(`${state}, old`, await insertRow(tables, state, { changed: DAY + 60, quote: -1 }))
    ids.set(`${state}, young`, await insertRow(tables, state, { changed: DAY - 60, quote: 60 }))
  }
  await pruneRequests(db, DAY)
  const whole = Object.fromEntries([...ids.keys()].map((name) => [name, `${name.split(',')[0]}, whole`]))
  t.same(await standing(tables, ids), {
    ...whole,
    'quoted, old': 'expired, empty',
    'unpaid, old': 'expired, empty',
    'completed, old': 'expired, empty',
    'failed, old': 'failed, empty',
    'expired, old': 'expired, empty',
    'expired, young': 'expired, empty',
  })
  t.equal(await pruneRequests(db, DAY), 0, 'once')
})

async function standing(tables: pg.Pool, ids: Map<string, string>) {
  const { rows } = await tables.query<{ id: string; standing: string }>(`
    select id, state || case when body is null and result is null and observation is null and assessment is null
                              and settlement is null then ', empty' else ', whole' end standing
    from verification_requests`)
  const found = new Map(rows.map((row) => [row.id, row.standing]))
  return Object.fromEntries([...ids].map(([name, id]) => [name, found.get(id)]))
}
