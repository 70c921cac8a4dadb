// `countersign batch` paid on a Solana ledger: each row has terms with its own memo, payments expire with a blockhash, and
// the balances prove what was paid.
import { join } from 'node:path'
import { address } from '@solana/kit'
import t from 'tap'
import { createWalletKey } from '../../client/wallet.ts'
import { openSolanaHarness } from '../payments/solana-harness.ts'
import { openCommand, resultsIn } from './batch-desk.ts'
import { countersign } from './command-line.ts'

const PRICE = 30_000n

t.test('rows from a Solana wallet, up to the budget and then the rest', async (t) => {
  await using harness = await openSolanaHarness()
  const { system, ledger } = harness
  const { folder, path, write } = openCommand(t)
  const key = await createWalletKey('solana')
  write('wallet.key', key.text)
  const buyer = address(key.address)
  await ledger.fund(buyer, 5n * PRICE)
  const rows = ['one', 'two', 'three'].map(
    (id) => `${id},${system.site.url('/harbour')},"The harbour was opened in 1874, says row ${id}."`,
  )
  write('claims.csv', `${['id,source_url,claim', ...rows].join('\n')}\n`)
  const env = { COUNTERSIGN_SERVICE: system.service.address, COUNTERSIGN_WALLET: path('wallet.key') }
  const args = ['batch', path('claims.csv'), '--out', path('out'), '--solana-rpc', ledger.url, '--yes', '--json']
  const batch = (...more: string[]) => countersign([...args, ...more], { env })

  const first = await batch('--budget', '0.06')
  t.equal(first.code, 3, first.stderr)
  t.match(first.stderr, `on solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1, from ${key.address}.`)
  t.match(JSON.parse(first.stdout), { completed: 2, spent_usd: '0.06', stopped: { reason: 'budget' } })
  t.equal(await ledger.balanceOf(buyer), 3n * PRICE)

  const second = await batch('--budget', '0.09', '--resume')
  t.equal(second.code, 0, second.stderr)
  t.match(JSON.parse(second.stdout), { completed: 3, failed: 0, spent_usd: '0.09' })
  t.equal(await ledger.balanceOf(buyer), 2n * PRICE, 'each row once')
  t.equal(await ledger.balanceOf(harness.payTo), 3n * PRICE)
  t.equal((await resultsIn(join(folder, 'out'))).length, 3)
})
