// The daily limit and the idempotency keys under concurrent requests.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { transact } from '../../server/db/pool.ts'
import { submissionKey, submissions } from '../../server/receipts/submissions.ts'
import { type Account, openAccountHarness } from '../accounts/harness.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())
const twin = await office.openApiProcess()
t.teardown(() => twin[Symbol.asyncDispose]())

const SUBJECT = { subject_sha256: '11'.repeat(32) }
const post = ({ key }: Account, desk: typeof twin, headers = {}) =>
  desk.call('POST', '/v1/receipt', { key, body: SUBJECT, headers })
const tally = (answers: { status: number }[]) =>
  Object.fromEntries(
    Object.entries(Object.groupBy(answers, (one) => one.status)).map(([status, all]) => [status, all?.length]),
  )
async function counted(account: Account) {
  return (await account.call('GET', '/v1/usage')).body.used.receipts_today as number
}

t.test('concurrent requests do not exceed a limit, and refused ones do not count', async (t) => {
  const account = await office.register()
  const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => post(account, n % 2 ? twin : office)))
  t.same(tally(answers), { 201: 10, 429: 20 })
  t.equal(await counted(account), 10)
  t.equal((await post(account, office)).status, 429)
  t.equal(await counted(account), 10)
})

t.test('concurrent requests with one key make one receipt', async (t) => {
  const account = await office.register()
  const headers = { 'idempotency-key': randomUUID() }
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => post(account, n % 2 ? twin : office, headers)))
  t.same(tally(answers), { 200: 19, 201: 1 })
  t.equal(new Set(answers.map((one) => one.body.attestation.receipt_hash)).size, 1)
  t.equal(await counted(account), 1)
})

t.test('entries of one batch are checked in their order', async (t) => {
  const [account, other] = [await office.register(), await office.register()]
  const { rows } = await office.tables.query<{ id: string; handle: string }>('select id, handle from accounts')
  const idOf = ({ handle }: Account) => rows.find((row) => row.handle === handle)!.id
  const item = (who: Account, dailyLimit: number, key?: string, body: unknown = 1) => ({
    accountId: idOf(who),
    dailyLimit,
    ...(key && { key: submissionKey(key, body) }),
  })
  const batch = [
    item(account, 3, 'a'),
    item(account, 3, 'a'),
    item(account, 3, 'a', 2),
    item(other, 1),
    item(account, 3),
    item(other, 1, 'a'),
    item(account, 3, 'b'),
    item(account, 3, 'c'),
    // Its first was refused, so there is nothing to repeat.
    item(account, 3, 'c'),
  ]
  const expected = ['done', 'repeat', 'conflict', 'done', 'done', 'daily_limit', 'done', 'daily_limit', 'daily_limit']
  const outcomes = await transact(office.api.db, (tx) => submissions.check(tx, batch))
  t.same(
    outcomes.map((one) => one?.reason ?? 'done'),
    expected,
  )
  t.same([await counted(account), await counted(other)], [3, 1])
})
