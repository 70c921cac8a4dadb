// A caller can cancel a request until its source has been read, and not later.
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { openDatabase, transact } from '../../server/db/pool.ts'
import { cancelRequest, claimRequests, holdsRequest, states } from '../../server/verification/request.ts'
import { openTestDatabase } from '../database.ts'
import { insertRow } from './rows.ts'

const database = await openTestDatabase()
const tables = new pg.Pool({ connectionString: database.url })
// Ignores errors of connections that are still closing when the database is dropped.
tables.on('error', () => {})
const db = await openDatabase(database.url, { maxConnections: 4 })
t.teardown(async () => {
  await db.end()
  await tables.end()
  await database[Symbol.asyncDispose]()
})
const cancel = (id: string) => transact(db, (tx) => cancelRequest(tx, id, 8))

async function stateOf(id: string) {
  const { rows } = await tables.query('select state from verification_requests where id = $1', [id])
  return rows[0]?.state
}

for (const state of states) {
  t.test(state, async (t) => {
    const id = await insertRow(tables, state)
    t.equal(await cancel(id), state === 'accepted')
    t.equal(await stateOf(id), state === 'accepted' ? 'failed' : state)
    t.equal(await cancel(id), false, 'a second cancellation does nothing')
  })
}

t.test('a worker that holds a cancelled request can commit nothing, and the payment is free', async (t) => {
  const [id, attempt] = [await insertRow(tables, 'accepted'), randomUUID()]
  await tables.query(
    `insert into payment_claims (network, asset, payer, nonce, request_id) values ('n', 'a', 'p', 'x', $1)`,
    [id],
  )
  t.match(await claimRequests(db, [{ id, attempt }]), [{ id }])
  t.equal(await cancel(id), true)
  t.equal(await transact(db, (tx) => holdsRequest(tx, { id, attempt })), false)
  t.same(await claimRequests(db, [{ id, attempt: randomUUID() }]), [null])
  const { rows } = await tables.query('select 1 from payment_claims where request_id = $1', [id])
  t.same(rows, [])
  const booked = await tables.query('select outcome, reason from payment_ledger where request_id = $1', [id])
  t.same(booked.rows, [{ outcome: 'failed', reason: 'cancelled' }])
})
