// The states of a request are enforced twice: by the code that changes them, and by the CHECKs of the table.
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import t from 'tap'
import { openBatcher } from '../../server/db/batch.ts'
import { transact } from '../../server/db/pool.ts'
import type { Payment } from '../../server/interface/payment.ts'
import type { SettlementProof } from '../../server/payments/x402.ts'
import { pruneRequests } from '../../server/verification/pruning.ts'
import {
  type Claim,
  claimRequest,
  claimRequests,
  failRequest,
  holdsRequest,
  moves,
  releasePayment,
  StaleAttemptError,
  type State,
  states,
  type WorkingRequest,
} from '../../server/verification/request.ts'
import { advance, type Step, writeSteps } from '../../server/verification/stages/steps.ts'
import { type Column, held, insertRow, openTables } from './rows.ts'

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
  // A payment bound to an `unpaid` or `failed` request is a second one.
  const reachable = (from: State): State[] => [...new Set(moves[from].flatMap((to) => [to, ...reachableOnce(to)]))]
  const reachableOnce = (from: State) => (from === 'unpaid' || from === 'failed' ? [] : reachable(from))
  t.notOk(reachable('settling').includes('failed'))
  t.same(moves.settled, ['completed'])
  t.same(moves.settling, ['settled', 'unpaid'])
  t.same(moves.failed, ['accepted'], 'a failure is paid anew or stays')
  t.end()
})

t.test('each state has the columns that its work needs, and the table refuses it without them', async (t) => {
  await using opened = await openTables()
  const { tables } = opened
  // Columns that an old expired or failed request may lack, since it is a tombstone.
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

/** The only states in which each of these columns may be filled. */
const places: [Column, State[]][] = [
  ['payment_sealed', ['accepted', 'observed', 'assessed', 'settling']],
  ['result', ['completed']],
  ['error', ['failed']],
]

t.test('payment, result and error are stored only in their states', async (t) => {
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

t.test('columns of later states are empty', async (t) => {
  await using opened = await openTables()
  for (const [column, allowed] of unguarded)
    for (const state of states.filter((state) => !allowed.includes(state))) {
      const columns: Column[] = [...held[state], column]
      await t.rejects(insertRow(opened.tables, state, { columns }), CHECK_VIOLATION, `${state} with ${column}`)
    }
})

t.test('a step is taken once, by the attempt that holds the request, from its state', async (t) => {
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
    ['taken', 'stale', 'stale', 'stale', 'stale'],
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
    const settlement = {
      payment,
      response: { success: true, transaction: '0x', network: 'eip155:84532' as const },
      proof,
      log_index,
    }
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
  t.same([same, ...rest], [taken, 'stale', taken], 'in the same group')
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
    'in a later one; a proof by the chain goes before the word of a facilitator',
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

t.test('a claim of a request keeps the attempt before it from committing', async (t) => {
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

t.test('only requests with work left can be claimed', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  for (const state of ['quoted', 'completed', 'unpaid', 'failed', 'expired'] as const) {
    const id = await insertRow(tables, state)
    t.same(await claimRequests(db, [{ id, attempt: randomUUID() }]), [null], state)
  }
})

t.test('requests are claimed in groups, and one whose row cannot be read fails no other', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  await using claims = openBatcher((batch: Claim[]) => claimRequests(db, batch), { batch: 8, queue: 8 })
  const [good, bad] = [await insertRow(tables, 'observed'), await insertRow(tables, 'observed')]
  await tables.query(`update verification_requests set observation = '{"cache_hit": 1}' where id = $1`, [bad])
  const attempt = randomUUID()
  const [read, unreadable] = await Promise.allSettled([claims.add({ id: good, attempt }), claimRequest(claims, bad)])
  t.match(read, { status: 'fulfilled', value: { id: good, attempt, state: 'observed' } })
  t.match(unreadable, { status: 'rejected', reason: { name: 'ZodError' } })
})

t.test('a request that may have been charged cannot fail, and only a settling one can be released', async (t) => {
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

t.test('expired data is deleted, and a request that ever had a payment leaves a tombstone', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  const ids = new Map<string, string>()
  for (const state of states) {
    ids.set(`${state}, old`, await insertRow(tables, state, { changed: DAY + 60, quote: -1 }))
    ids.set(`${state}, young`, await insertRow(tables, state, { changed: DAY - 60, quote: 60 }))
  }
  await pruneRequests(db, DAY)
  const whole = Object.fromEntries([...ids.keys()].map((name) => [name, `${name.split(',')[0]}, whole`]))
  t.same(await summaries(tables, ids), {
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

async function summaries(tables: pg.Pool, ids: Map<string, string>) {
  const { rows } = await tables.query<{ id: string; summary: string }>(`
    select id, state || case when body is null and result is null and observation is null and assessment is null
                              and settlement is null then ', empty' else ', whole' end summary
    from verification_requests`)
  const found = new Map(rows.map((row) => [row.id, row.summary]))
  return Object.fromEntries([...ids].map(([name, id]) => [name, found.get(id)]))
}
