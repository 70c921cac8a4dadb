// The buyer's money: what a batch signs, what it counts as spent, and what it prints when the service, the network, the
// disk or another process fails or interferes.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openBudgetFile } from '../../client/batch/budget.ts'
import { pinTerms, TermsError } from '../../client/batch/buyer.ts'
import { Journal } from '../../client/batch/journal.ts'
import { LockedError, lock } from '../../client/batch/lock.ts'
import { DamagedFileError } from '../../client/batch/log-file.ts'
import { formatUsd, parseUsd } from '../../client/batch/money.ts'
import { Pace } from '../../client/batch/pace.ts'
import {
  askFor,
  buildWallet,
  csvOf,
  errorsIn,
  linesOf,
  lose,
  openCommand,
  openFolder,
  openShop,
  PRICE,
  posts,
  resultsIn,
  rowsOf,
  runDesk,
  SERVICE_TERMS,
  type Shop,
} from './batch-desk.ts'
import { answerWith, buildClock, hangUp, refuse, TERMS } from './counterpart.ts'

/** A journal after a crash: a row is signed, and it is unknown whether its payment was sent. */
async function leaveSigned(folder: string, shop: Shop, validBefore: number, id = 'row0') {
  const expected = { service: shop.baseUrl, input_sha256: 'of the input' }
  await using journal = await Journal.open(join(folder, 'journal.jsonl'), expected, async () => SERVICE_TERMS)
  const payment = journal.nameNext(id)
  await journal.sign({ id, payment, header: 'left behind', atoms: String(PRICE), valid_before: validBefore })
  return { payment, key: journal.keyOf(id) }
}

const paymentsOf = (shop: Shop) => posts(shop).map(({ headers }) => headers['payment-signature'] ?? null)
const keysOf = (shop: Shop) => new Set(posts(shop).map(({ headers }) => headers['idempotency-key']))

t.test('amounts are exact', async (t) => {
  for (const [given, atoms] of [
    ['0', 0n],
    ['0.03', 30_000n],
    ['6.000001', 6_000_001n],
    ['999999999.999999', 999_999_999_999_999n],
  ] as const)
    t.equal(parseUsd(given), atoms)
  for (const given of ['', '-1', '+1', '1e3', '.5', '1.', '1,5', '0.0000001', '1 ', '0x10', 'Infinity'])
    t.equal(parseUsd(given), null, given)
  t.equal(formatUsd(30_001n), '0.030001')
  t.equal(formatUsd(60_000_000n), '60.00')
})

t.test('the budget is exact to the smallest unit, and a run with a higher budget continues', async (t) => {
  const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(5)]
  const first = await runDesk({ folder, shop, rows, cap: 3n * PRICE + PRICE - 1n, most: 8 })
  t.match(first, { spent: 90_000n, run: { stop: { kind: 'budget' }, untouched: 2 }, tally: { completed: 3 } })
  t.equal(first.signed.length, 3, 'nothing is signed above the cap')
  const lower = await runDesk({ folder, shop, rows, cap: 1n })
  t.match(lower, { spent: 90_000n, run: { stop: { kind: 'budget' }, untouched: 2 }, signed: [] })
  const second = await runDesk({ folder, shop, rows, cap: 5n * PRICE })
  t.match(second, { spent: 150_000n, run: { stop: null, untouched: 0 }, tally: { completed: 5 } })
  t.equal(shop.settled.size, 5)
})

t.test('a refusal returns its reservation to the budget for another row', async (t) => {
  const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(3)]
  shop.rule = ({ body }) => (body.includes('Claim 0.') ? refuse(422, 'source_not_found') : undefined)
  const { spent, tally, signed } = await runDesk({ folder, shop, rows, cap: 2n * PRICE })
  t.match({ spent, tally }, { spent: 60_000n, tally: { completed: 2, failures: { source_not_found: 1 } } })
  t.equal(signed.length, 3)
  t.match(await errorsIn(folder), [{ id: 'row0', charged: false, code: 'source_not_found' }])
  const again = await runDesk({ folder, shop, rows, cap: 2n * PRICE })
  t.match(again, { spent: 60_000n, signed: [] }, 'the next run counts the same')
})

t.test('what may have been charged stays counted', async (t) => {
  for (const [status, code] of [
    [409, 'idempotency_conflict'],
    [410, 'result_expired'],
  ] as const) {
    const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(1)]
    shop.rule = () => refuse(status, code)
    t.match(await runDesk({ folder, shop, rows }), { spent: PRICE, tally: { failures: { [code]: 1 } } })
    t.match(await errorsIn(folder), [{ charged: true }])
    const retried = await runDesk({ folder, shop, rows, retry: true })
    t.match(retried, { spent: PRICE, signed: [] }, `${code} is not paid again by --retry-errors`)
  }
})

t.test('a request whose answer is lost is sent again as it was', async (t) => {
  const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(3)]
  let losses = 4
  shop.rule = (_request, sell) => (losses-- > 0 ? lose(sell) : undefined)
  const { spent, signed, tally } = await runDesk({ folder, shop, rows })
  t.match({ spent, tally }, { spent: 3n * PRICE, tally: { completed: 3, failed: 0 } })
  t.equal(signed.length, 3)
  t.equal(shop.settled.size, 3)
  t.equal(new Set(shop.payments).size, 3, 'one payment for each row')
})

t.test('while the service does not answer nothing is paid twice, and the run ends in time', async (t) => {
  const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(40)]
  shop.rule = hangUp
  const first = await runDesk({ folder, shop, rows })
  t.match(first.run, { stop: { kind: 'unreachable' } })
  t.ok(first.signed.length < 15, `${first.signed.length} rows were signed for`)
  t.equal(first.spent, BigInt(first.signed.length) * PRICE, 'what was sent counts')
  t.equal(first.run.unfinished.length + first.run.untouched, 40, 'each row is accounted for')
  t.equal((await errorsIn(folder)).length, 0, 'and none has failed')
  shop.rule = () => undefined
  const second = await runDesk({ folder, shop, rows })
  t.match(second, { spent: 40n * PRICE, tally: { completed: 40 }, run: { stop: null } })
  t.equal(second.signed.length + first.signed.length, 40, 'what was signed was sent again')
})

t.test('a response of a proxy does not decide a row', async (t) => {
  for (const status of [400, 402, 413, 415, 422, 404]) {
    const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(1)]
    let count = 0
    // The row is bought and the answer is lost; then a proxy refuses the repeated call.
    shop.rule = (_request, sell) =>
      ++count === 1 ? lose(sell) : count === 2 ? answerWith(status, '<html>no</html>') : undefined
    const { spent, tally } = await runDesk({ folder, shop, rows })
    t.match({ spent, tally }, { spent: PRICE, tally: { completed: 1, failed: 0 } }, String(status))
    t.equal(shop.settled.size, 1)
  }
})

t.test('a 200 response that is no result does not count as one', async (t) => {
  const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(2)]
  shop.rule = ({ body }) =>
    body.includes('Claim 0.') ? answerWith(200, JSON.stringify({ status: 'completed' })) : undefined
  const { run, spent, tally } = await runDesk({ folder, shop, rows })
  t.match(run.unfinished, [{ row: { id: 'row0' }, error: { code: 'unexpected_response' } }])
  t.match({ spent, tally }, { spent: 2n * PRICE, tally: { completed: 1 } })
})

t.test('crashes', async (t) => {
  const now = buildClock().now() / 1000

  await t.test('between signing and sending: the same payment is sent', async (t) => {
    const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(1)]
    const { key } = await leaveSigned(folder, shop, now + 200)
    t.match(await runDesk({ folder, shop, rows, cap: PRICE }), { spent: PRICE, signed: [], tally: { completed: 1 } })
    t.same(paymentsOf(shop), ['left behind'])
    t.same([...keysOf(shop)], [key])
  })

  await t.test('and a signed payment is sent before any row that needs a new one', async (t) => {
    const shop = await openShop(t)
    const { folder, run, start, end, write } = openCommand(t, shop)
    write('in.csv', csvOf(rowsOf(3)))
    const args = ['batch', 'in.csv', '--budget', '0.03', '--out', 'out', '--yes', '--concurrency', '1']
    const arrived = Promise.withResolvers<void>()
    // Only the last row is paid for, and the command is killed before it has the answer.
    shop.rule = ({ headers, body }) => {
      if (headers['payment-signature'] === undefined && body.includes('Claim 1.')) return undefined
      if (!body.includes('Claim 2.')) return refuse(422, 'source_unavailable', { retryable: true })
      return () => arrived.resolve()
    }
    const child = start(args)
    const ended = end(child)
    await Promise.race([arrived.promise, ended])
    child.kill('SIGKILL')
    t.match(await ended, { code: null })
    shop.rule = () => undefined
    const resumed = await run([...args, '--retry-errors'])
    t.equal(resumed.code, 3, resumed.stderr)
    t.match(await resultsIn(join(folder, 'out')), [{ id: 'row2' }])
    t.equal(shop.settled.size, 1)
    t.equal((await errorsIn(join(folder, 'out'))).length, 0, 'the others wait for a higher budget')
  })

  await t.test('after the payment has expired: the service is asked first, without a payment', async (t) => {
    const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(1)]
    const { key } = await leaveSigned(folder, shop, now - 1000)
    shop.settled.set(key, 'left behind')
    t.match(await runDesk({ folder, shop, rows }), { spent: PRICE, signed: [], tally: { completed: 1 } })
    t.same(paymentsOf(shop), [null], 'it was settled, and the result is fetched')
  })

  await t.test('and a new payment is signed only if the service has none', async (t) => {
    const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(1)]
    await leaveSigned(folder, shop, now - 1000)
    const { spent, signed, tally } = await runDesk({ folder, shop, rows, cap: PRICE })
    t.match({ spent, tally }, { spent: PRICE, tally: { completed: 1 } }, 'the old one is given back for the new one')
    t.equal(signed.length, 1)
    t.same(paymentsOf(shop), [null, 'payment-1'])
  })

  await t.test('the run waits until a payment that is about to expire has expired', async (t) => {
    const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(1)]
    await leaveSigned(folder, shop, now + 20)
    const clock = buildClock()
    const { signed } = await runDesk({ folder, shop, rows, clock })
    t.equal(signed.length, 1)
    t.same(clock.waits, [80_000], 'with room for clocks that differ')
  })

  await t.test('between reserving and signing: the reservation of a budget file is given back', async (t) => {
    const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(2)]
    const budgetFile = join(folder, 'budget.jsonl')
    const { payment } = await leaveSigned(folder, shop, now + 200)
    const run = payment.split('/')[0]
    const line = (payment: string) => `${JSON.stringify({ at: 'then', payment, atoms: '30000' })}\n`
    writeFileSync(budgetFile, line(payment) + line(`${run}/row1/2`) + line('another-run/row1/1'))
    const { spent } = await runDesk({ folder, shop, rows, budgetFile, cap: 3n * PRICE })
    t.equal(spent, 3n * PRICE, 'two rows of this batch, and one of another')
    t.equal(shop.settled.size, 2)
  })

  await t.test('a budget file that some runs did not name still counts', async (t) => {
    const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(4)]
    const budgetFile = join(folder, 'budget.jsonl')
    await runDesk({ folder, shop, rows: rows.slice(0, 1), budgetFile })
    await runDesk({ folder, shop, rows: rows.slice(0, 3) })
    const { spent, run } = await runDesk({ folder, shop, rows, budgetFile, cap: 3n * PRICE })
    t.match({ spent, run }, { spent: 3n * PRICE, run: { stop: { kind: 'budget' }, untouched: 1 } })
    await using reopened = await openBudgetFile(budgetFile, { cap: 0n, run: 'other/', sent: new Map() })
    t.equal(reopened.spent, 3n * PRICE, 'on the disk')
  })

  await t.test('after the line of a result: it is not bought again', async (t) => {
    const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(2)]
    await runDesk({ folder, shop, rows: rows.slice(0, 1) })
    writeFileSync(join(folder, 'results.csv'), 'half a li')
    const { tally, spent } = await runDesk({ folder, shop, rows })
    t.match({ tally, spent }, { tally: { completed: 2 }, spent: 2n * PRICE })
    t.equal(readFileSync(join(folder, 'results.csv'), 'utf8').trim().split('\n').length, 3)
  })

  await t.test('before the line of a result: it is fetched, not bought', async (t) => {
    const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(1)]
    await runDesk({ folder, shop, rows })
    writeFileSync(join(folder, 'results.jsonl'), '')
    t.match(await runDesk({ folder, shop, rows }), { spent: PRICE, signed: [], tally: { completed: 1 } })
    t.equal(shop.settled.size, 1)
  })
})

t.test('other terms are refused, and nothing is signed for them', async (t) => {
  const changes = {
    payTo: '0x000000000000000000000000000000000000dEaD',
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    network: 'eip155:8453',
    amount: '30001',
    scheme: 'upto',
  }
  for (const [name, value] of Object.entries(changes)) {
    const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(3)]
    Object.assign(shop.terms.accepts[0]!, { [name]: value })
    // As after a crash, the first call has no payment, so the new terms are seen before anything is signed.
    await leaveSigned(folder, shop, 1000)
    const { run, signed, spent } = await runDesk({ folder, shop, rows })
    t.match(run.stop, { kind: 'terms', message: /other terms/ }, name)
    t.same(signed, [])
    t.equal(spent, 0n)
  }
  const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(3)]
  shop.rule = () => askFor({ ...TERMS, accepts: [{ ...SERVICE_TERMS, amount: '60000' }] })
  const { run, signed, spent } = await runDesk({ folder, shop, rows })
  t.match(run.stop, { kind: 'terms' })
  t.match({ signed, spent }, { signed: [SERVICE_TERMS], spent: PRICE }, 'the agreed payment was sent, and may be taken')
  t.equal(signed.length, 1)
})

t.test('terms that let a payment stay valid for long are refused', async (t) => {
  const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(1)]
  shop.terms.accepts[0]!.maxTimeoutSeconds = 315_360_000
  await leaveSigned(folder, shop, 1000)
  const { run, signed } = await runDesk({ folder, shop, rows })
  t.match(run.stop, { kind: 'terms', message: /good for 315360000 seconds/ })
  t.same(signed, [])
})

t.test('terms that are agreed on at the start', async (t) => {
  const { wallet } = buildWallet(buildClock())
  const pin = (terms: object, mode: 'offline' | 'testnet' | 'mainnet' = 'testnet', priceAtoms = '30000') =>
    pinTerms({ ...TERMS, accepts: [{ ...SERVICE_TERMS, ...terms }] }, wallet, { priceAtoms, mode })
  const base = { network: 'eip155:8453', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' }
  t.match(pin({}), SERVICE_TERMS)
  t.match(pin({ asset: SERVICE_TERMS.asset.toLowerCase() }), { network: 'eip155:84532' })
  t.match(pin(base, 'mainnet'), base)
  const refused = (message: RegExp, ...args: Parameters<typeof pin>) =>
    t.throws(() => pin(...args), { constructor: TermsError, message })
  refused(/asks for 30001 atomic units and publishes a price of 30000/, { amount: '30001' })
  refused(/which is no price/, { amount: '-30000' }, 'testnet', '-30000')
  refused(/not USDC/, { asset: '0x000000000000000000000000000000000000dEaD' })
  refused(/not USDC/, { network: 'eip155:8453' }, 'mainnet')
  refused(/names no recipient/, { payTo: '' })
  refused(/good for/, { maxTimeoutSeconds: 901 })
  refused(/good for/, { maxTimeoutSeconds: undefined })
  refused(/in offline mode, and asks for real money/, base, 'offline')
  refused(/in testnet mode, and asks for real money/, base, 'testnet')
})

t.test('payments that are refused', async (t) => {
  const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(20)]
  shop.rule = ({ headers }) => (headers['payment-signature'] ? askFor(TERMS, 'payment_invalid') : undefined)
  const { run, signed, tally, spent } = await runDesk({ folder, shop, rows })
  t.match({ run, tally, spent }, { run: { stop: { kind: 'payments_refused' }, untouched: 15 }, spent: 0n })
  t.equal(signed.length, 5, 'five in a row end the batch')
  t.equal(tally.failures.payment_invalid, 5)
  shop.rule = () => undefined
  const keys = keysOf(shop)
  const retried = await runDesk({ folder, shop, rows, retry: true })
  t.match(retried, { spent: 20n * PRICE, tally: { completed: 20, failed: 0 } })
  t.equal([...keysOf(shop)].filter((key) => keys.has(key)).length, 5)
  for (const key of keys) t.notOk(shop.settled.has(String(key)), 'a row is tried again under another key')
})

t.test('a wallet that cannot sign spends nothing and ends no other row', async (t) => {
  const [folder, shop, rows, clock] = [openFolder(t), await openShop(t), rowsOf(3), buildClock()]
  const { wallet, signed } = buildWallet(clock)
  let faults = 2
  const flaky = {
    ...wallet,
    sign: async (...args: Parameters<typeof wallet.sign>) => {
      if (faults-- > 0) throw new Error('the node is away')
      return wallet.sign(...args)
    },
  }
  const { run, spent, tally } = await runDesk({ folder, shop, rows, clock, wallet: flaky, cap: 3n * PRICE })
  t.match({ stop: run.stop, spent, tally }, { stop: null, spent: 3n * PRICE, tally: { completed: 3 } })
  t.equal(signed.length, 3)
  faults = Number.POSITIVE_INFINITY
  const other = openFolder(t)
  const dead = await runDesk({ folder: other, shop, rows, clock, wallet: flaky })
  t.match(dead, { spent: 0n, run: { unfinished: { length: 3 } } })
  t.match(dead.run.unfinished[0]?.error, { code: 'signing_failed', message: /the node is away/ })
})

t.test('a busy service: the run waits as long as Retry-After says, and no row is lost', async (t) => {
  for (const [status, after] of [
    [429, 7],
    [503, 7],
  ] as const) {
    const [folder, shop, rows, clock] = [openFolder(t), await openShop(t), rowsOf(30), buildClock()]
    let busy = 12
    shop.rule = () =>
      busy-- > 0
        ? refuse(status, 'too_many', { retryable: true, headers: { 'retry-after': String(after) } })
        : undefined
    const { tally, spent, run } = await runDesk({ folder, shop, rows, clock, most: 8 })
    t.match(
      { tally, spent, run },
      { tally: { completed: 30 }, spent: 30n * PRICE, run: { stop: null } },
      String(status),
    )
    t.equal(shop.settled.size, 30)
    t.ok(clock.waits.some((ms) => ms >= after * 1000))
  }
  const clock = buildClock()
  const never = new AbortController().signal
  const pace = new Pace(8, clock)
  for (let i = 0; i < 8; i++) await pace.enter(never)
  for (let i = 0; i < 8; i++) pace.slow(5000)
  t.equal(pace.limit, 5, 'refusals together count once')
  for (let i = 0; i < 8; i++) pace.leave()
  await pace.enter(never)
  t.ok(clock.now() >= buildClock().now() + 5000)
  pace.slow(5000)
  t.equal(pace.limit, 3)
  for (let i = 0; i < 100; i++) pace.succeed()
  t.equal(pace.limit, 8, 'and back up to what is allowed')
  pace.slow(50 * 60_000)
  await pace.clear(never)
  t.ok(Math.max(...clock.waits) >= 50 * 60_000)
  pace.slow(40 * 86_400_000)
  await t.rejects(pace.clear(never), { name: 'CapacityError' }, 'a run does not last for days')
  await t.rejects(pace.enter(never), { name: 'CapacityError' })
})

t.test('--retry-errors', async (t) => {
  const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(3)]
  shop.rule = ({ body }) =>
    body.includes('Claim 0.')
      ? refuse(422, 'source_not_found')
      : body.includes('Claim 1.')
        ? refuse(422, 'source_unavailable', { retryable: true })
        : refuse(410, 'result_expired')
  const first = await runDesk({ folder, shop, rows })
  t.match(first, { spent: PRICE, tally: { failed: 3 } })
  const keys = keysOf(shop)
  shop.rule = () => undefined
  const second = await runDesk({ folder, shop, rows, retry: true })
  t.match(second, { spent: 2n * PRICE, tally: { completed: 1, failed: 2 } }, 'the passing failure alone')
  t.equal(second.signed.length, 1)
  t.equal(keysOf(shop).size, keys.size + 1, 'under a new key')
  const errors = await errorsIn(folder)
  t.same(errors.map(({ id }) => id).sort(), ['row0', 'row2'])
  const yesterday = errors.map((line) => ({
    ...line,
    remembered_until: line.remembered_until && new Date(0).toISOString(),
  }))
  writeFileSync(join(folder, 'errors.jsonl'), yesterday.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const third = await runDesk({ folder, shop, rows, retry: true })
  t.match(third, { spent: 3n * PRICE, tally: { completed: 2, failures: { result_expired: 1 } } }, 'a day later')
})

t.test('files whose last line a crash cut off', async (t) => {
  const [folder, shop, rows] = [openFolder(t), await openShop(t), rowsOf(4)]
  const budgetFile = join(folder, 'budget.jsonl')
  shop.rule = ({ body }) => (body.includes('Claim 0.') ? refuse(422, 'source_not_found') : undefined)
  await runDesk({ folder, shop, rows: rows.slice(0, 2), budgetFile })
  for (const name of ['journal', 'results', 'errors', 'budget'])
    appendFileSync(join(folder, `${name}.jsonl`), '{"id":"ro')
  appendFileSync(budgetFile, '\0\0\0\0')
  const { spent, tally } = await runDesk({ folder, shop, rows, budgetFile })
  t.match({ spent, tally }, { spent: 3n * PRICE, tally: { completed: 3, failed: 1 } })
  t.equal(shop.settled.size, 3)
  for (const name of ['journal', 'results', 'errors', 'budget'])
    t.ok(await linesOf(join(folder, `${name}.jsonl`)), `${name} has whole lines only`)

  const results = join(folder, 'results.jsonl')
  const whole = readFileSync(results, 'utf8')
  writeFileSync(results, whole.trimEnd())
  t.match(await runDesk({ folder, shop, rows, budgetFile }), { signed: [], tally: { completed: 3 } }, 'but for its end')
  t.equal(readFileSync(results, 'utf8'), whole)

  for (const name of ['journal', 'results', 'errors', 'budget'])
    for (const damage of ['{"id":"ro\n', 'null\n', '"text"\n']) {
      const path = join(folder, `${name}.jsonl`)
      const before = readFileSync(path, 'utf8')
      writeFileSync(path, `${damage}${before}`)
      await t.rejects(runDesk({ folder, shop, rows, budgetFile }), { constructor: DamagedFileError, message: /line 1/ })
      t.equal(readFileSync(path, 'utf8'), `${damage}${before}`, 'and it is left as it is')
      writeFileSync(path, before)
    }
})

t.test('a wrong file named by mistake is not truncated', async (t) => {
  const folder = openFolder(t)
  for (const contents of ['5b'.repeat(32), '[1,2,3]', '6.00', '{"name":"project"}', `${'5b'.repeat(32)}\n`]) {
    const path = join(folder, 'wallet.key')
    writeFileSync(path, contents, { mode: 0o600 })
    const opening = openBudgetFile(path, { cap: 1n, run: 'r/', sent: new Map() })
    const error = await opening.then(
      () => null,
      (error: Error) => error,
    )
    t.match(error, { constructor: DamagedFileError })
    t.notMatch(String(error?.message) + String(error?.cause ?? ''), '5b5b', 'and a key is not repeated')
    t.equal(readFileSync(path, 'utf8'), contents)
  }
})

t.test('two runs at once', async (t) => {
  await t.test('one run holds the lock', async (t) => {
    const path = join(openFolder(t), 'lock')
    const held = await lock(path)
    const other = spawnSync(process.execPath, ['-e', lockingProcess(path)], { encoding: 'utf8' })
    t.match(other.stdout, `LockedError Another run uses this (process ${process.pid})`)
    await held[Symbol.asyncDispose]()
    t.notOk(existsSync(path))
  })

  await t.test('one of many runs takes over the lock of a process that has ended', async (t) => {
    const path = join(openFolder(t), 'lock')
    writeFileSync(path, String(spawnSync(process.execPath, ['-e', '0']).pid))
    const tries = await Promise.allSettled(Array.from({ length: 20 }, () => lock(path)))
    t.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const one of tries) if (one.status === 'rejected') t.match(one.reason, { constructor: LockedError })
    t.notOk(existsSync(`${path}.takeover`))
  })

  await t.test('what this process holds is not taken over, and what another with its number left is', async (t) => {
    const path = join(openFolder(t), 'lock')
    writeFileSync(path, String(process.pid))
    {
      await using _held = await lock(path)
      await t.rejects(lock(path), { name: 'LockedError' })
    }
    await using _again = await lock(path)
    t.ok(existsSync(path))
  })

  await t.test('one budget file', async (t) => {
    const shop = await openShop(t)
    const { run, start, end, write, path } = openCommand(t, shop)
    write('in.csv', csvOf(rowsOf(2)))
    const args = (out: string) => [
      'batch',
      'in.csv',
      '--budget',
      '0.09',
      '--budget-file',
      'money.jsonl',
      '--out',
      out,
      '--yes',
    ]
    const reached = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    shop.rule = (request, sell) =>
      request.headers['payment-signature'] === undefined
        ? undefined
        : (response) => {
            reached.resolve()
            void released.promise.then(() => sell(response, request))
          }
    const first = end(start(args('one')))
    await reached.promise
    const second = await run(args('two'))
    t.match(second, { code: 2, stderr: /Another run uses this.*money\.jsonl\.lock/s })
    t.notOk(existsSync(path('two')), 'nothing is begun')
    const same = await run([...args('one'), '--resume'])
    t.match(same, { code: 2, stderr: /Another run uses this/ })
    released.resolve()
    t.match(await first, { code: 0 })
    t.equal(shop.settled.size, 2, 'the second has bought nothing')
    shop.rule = () => undefined
    const third = await run([...args('two'), '--json'])
    t.match(third, { code: 3 }, third.stderr)
    t.match(JSON.parse(third.stdout), {
      spent_usd: '0.09',
      completed: 1,
      untouched: 1,
      stopped: { reason: 'budget' },
    })
    t.equal(shop.settled.size, 3, 'both together keep to one budget')
    t.equal(statSync(path('money.jsonl')).mode & 0o777, 0o600)
    const more = await run([...args('two').map((arg) => (arg === '0.09' ? '0.12' : arg)), '--resume'])
    t.match(more, { code: 0, stdout: /Spent 0\.12 of 0\.12 USDC/ })
  })
})

const lockingProcess = (path: string) =>
  `import(${JSON.stringify(new URL('../../client/batch/lock.ts', import.meta.url).href)})
  .then(({ lock }) => lock(${JSON.stringify(path)}))
  .then(() => console.log('held'), ({ name, message }) => console.log(name, message))`

t.test('Ctrl-C', async (t) => {
  const interrupt = async (t: Test, times: number) => {
    const shop = await openShop(t)
    const { start, end, run, write, folder } = openCommand(t, shop)
    write('in.csv', csvOf(rowsOf(20)))
    const args = ['batch', 'in.csv', '--budget', '6.00', '--out', 'out', '--yes', '--concurrency', '2', '--json']
    const arrived = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    let waiting = 0
    shop.rule = (request, sell) =>
      request.headers['payment-signature'] === undefined
        ? undefined
        : (response) => {
            if (++waiting === 2) arrived.resolve()
            void released.promise.then(() => sell(response, request))
          }
    const child = start(args)
    const ended = end(child)
    await arrived.promise
    child.kill('SIGINT')
    // The note about the rows under way.
    const noted = Promise.withResolvers<void>()
    child.stderr.on('data', (chunk) => String(chunk).includes('Ctrl-C') && noted.resolve())
    await noted.promise
    if (times === 2) {
      // As often as this, one signal at least comes while the process puts its parts away.
      const insisting = setInterval(() => child.kill('SIGINT'), 2)
      await once(child, 'exit')
      clearInterval(insisting)
    }
    released.resolve()
    return { shop, folder, run, args, ended: await ended }
  }

  await t.test('once: the rows in progress are finished', async (t) => {
    const { shop, ended, run, args } = await interrupt(t, 1)
    t.equal(ended.code, 130)
    t.match(JSON.parse(ended.stdout), {
      completed: 2,
      untouched: 18,
      spent_usd: '0.06',
      stopped: { reason: 'interrupted' },
    })
    shop.rule = () => undefined
    t.match(await run([...args, '--resume']), { code: 0 })
    t.equal(shop.settled.size, 20)
  })

  await t.test('twice: the rows in progress are left, and the next run fetches them', async (t) => {
    const { shop, ended, run, args } = await interrupt(t, 2)
    t.equal(ended.code, 130)
    t.match(JSON.parse(ended.stdout), { completed: 0, unfinished: 2, untouched: 18, spent_usd: '0.06' })
    shop.rule = () => undefined
    const resumed = await run([...args, '--resume'])
    t.match(JSON.parse(resumed.stdout), { completed: 20, spent_usd: '0.60' })
    t.equal(shop.settled.size, 20)
    t.equal(new Set(shop.payments).size, 20, 'with the payments that were signed')
  })

  await t.test('SIGTERM: rows that do not end are left after three seconds', async (t) => {
    const shop = await openShop(t)
    const { start, end, run, write } = openCommand(t, shop)
    write('in.csv', csvOf(rowsOf(20)))
    const args = ['batch', 'in.csv', '--budget', '6.00', '--out', 'out', '--yes', '--concurrency', '2', '--json']
    const arrived = Promise.withResolvers<void>()
    // Accepted, and never answered.
    shop.rule = (request, sell) =>
      request.headers['payment-signature'] === undefined
        ? undefined
        : (_response, request) => {
            const sink = { writeHead: () => sink, end: () => {} } as unknown as ServerResponse
            sell(sink, request)
            if (shop.settled.size === 2) arrived.resolve()
          }
    const child = start(args)
    const ended = end(child)
    await arrived.promise
    const asked = performance.now()
    child.kill('SIGTERM')
    const { code, stdout } = await ended
    t.equal(code, 130)
    t.ok(performance.now() - asked < 5000, `${performance.now() - asked} ms`)
    t.match(JSON.parse(stdout), { unfinished: 2, untouched: 18, stopped: { reason: 'interrupted' } })
    shop.rule = () => undefined
    t.match(await run([...args, '--resume']), { code: 0 })
    t.equal(shop.settled.size, 20)
  })

  await t.test('before anything is bought: the command ends at once', async (t) => {
    const shop = await openShop(t)
    const { start, end, write } = openCommand(t, shop)
    write('in.csv', csvOf(rowsOf(2)))
    const arrived = Promise.withResolvers<void>()
    shop.rule = () => () => arrived.resolve()
    const child = start(['batch', 'in.csv', '--budget', '6.00', '--out', 'out', '--yes'])
    const ended = end(child)
    await arrived.promise
    child.kill('SIGTERM')
    t.match(await ended, { code: 130 })
  })
})
