// `countersign batch` on a chain: the facilitator loses answers, the command is killed, and the balances prove what was paid.
import { join } from 'node:path'
import t from 'tap'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { type Deed, deeds } from '../payments/evm-facilitator.ts'
import { openEvmHarness, PRICE } from '../payments/evm-harness.ts'
import { openCommand, resultsIn } from './batch-desk.ts'

const ROWS = 100
const DEEDS: Deed[] = [
  deeds.settles,
  deeds.lostAfter,
  deeds.settles,
  deeds.lostBefore,
  deeds.notJsonAfter,
  deeds.settles,
  deeds.notJsonBefore,
]

t.test('a hundred rows from a wallet with a hundred times the price', async (t) => {
  await using harness = await openEvmHarness()
  const { system, chain, facilitator, logLines } = harness
  const { folder, wallet, start, end, write } = openCommand(t, { baseUrl: system.service.address })
  const key = generatePrivateKey()
  const buyer = privateKeyToAccount(key).address
  write('wallet.key', key)
  await chain.mint(buyer, BigInt(ROWS) * PRICE)
  const rows = Array.from(
    { length: ROWS },
    (_, i) => `row${i},${system.site.url('/harbour')},"The harbour was opened in 1874, says row ${i}."`,
  )
  write('claims.csv', ['id,source_url,claim', ...rows, ''].join('\n'))

  // Lost settlements are repeated at once, not after the service's usual pause.
  let isOver = false
  const over = Promise.withResolvers<void>()
  const hurrying = (async () => {
    while (!isOver) {
      await Promise.race([logLines.next('settlement'), over.promise])
      if (!isOver) await harness.hurry()
    }
  })()

  const args = ['batch', 'claims.csv', '--wallet', wallet, '--budget', '3.00', '--out', 'out', '--yes', '--json']
  const more = [...args, '--concurrency', '4']
  for (const [place, resume] of [[25, []] as const, [30, ['--resume']] as const]) {
    const reached = Promise.withResolvers<void>()
    facilitator.script.push(
      ...Array.from({ length: place }, (_, i) => DEEDS[i % DEEDS.length] as Deed),
      async (call) => {
        reached.resolve()
        await deeds.settles(call)
      },
    )
    const child = start([...more, ...resume])
    const ended = end(child)
    await Promise.race([reached.promise, ended])
    child.kill('SIGKILL')
    t.match(await ended, { code: null }, 'it is killed in the middle')
  }
  facilitator.script.push(...Array.from({ length: 20 }, (_, i) => DEEDS[i % DEEDS.length] as Deed))
  const last = await end(start([...more, '--resume']))
  isOver = true
  over.resolve()
  await hurrying

  const { completed, failed, spent_usd } = JSON.parse(last.stdout || '{}')
  t.match({ code: last.code, completed, failed, spent_usd }, { code: 0, completed: ROWS, failed: 0, spent_usd: '3.00' })
  const results = await resultsIn(join(folder, 'out'))
  t.equal(results.length, ROWS)
  t.equal(new Set(results.map(({ id }) => id)).size, ROWS, 'each row once')
  t.equal(new Set(results.map(({ receipt_serial }) => receipt_serial)).size, ROWS)
  t.equal(await chain.balanceOf(buyer), 0n, 'the buyer has paid for all of them')
  t.equal(await chain.balanceOf(harness.payTo), BigInt(ROWS) * PRICE, 'and the payee got it: none is paid twice')
})
