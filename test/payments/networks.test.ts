// An EVM network is one row for the service and one for clients, and everything else follows from them.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isTestNetwork, isUsdc, networkNames } from '../../client/batch/money.ts'
import { NETWORKS as CLIENT_NETWORKS } from '../../client/networks.ts'
import type { Network } from '../../client/result.ts'
import {
  EVM_NETWORKS,
  evmNetworks,
  evmNetworksOf,
  SOLANA_DEVNET,
  SOLANA_MAINNET,
  SOLANA_USDC,
} from '../../server/interface/networks.ts'
import { type Payment, payment } from '../../server/interface/payment.ts'
import { chainIdOf } from '../../server/payments/chains/signature-checks.ts'
import { configuredNetworks } from '../../server/payments/networks.ts'
import { evmTerms } from '../../server/payments/x402.ts'

const root = join(import.meta.dirname, '../..')

t.test('no other file of service or client names an EVM network or its contract', async (t) => {
  const rows =
    /eip155:\d|0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913|0x036CbD53842c5426634e7929541eC2318f3dCF7e|(?:sepolia|mainnet)\.base\.org/i
  const files = globSync(['server/**/*.ts', 'workers/**/*.ts', 'client/**/*.{ts,tsx}'], {
    cwd: root,
    exclude: ['client/dist/**'],
  })
  t.ok(files.length > 300, `${files.length} files`)
  const naming = files.filter((file) => {
    const lines = readFileSync(join(root, file), 'utf8').split('\n')
    // Comments, and commands that a person may copy.
    return lines.some((line) => rows.test(line) && !/^\s*(?:\/\/|\/?\*)|countersign wallet /.test(line))
  })
  t.same(naming.sort(), ['client/networks.ts', 'server/interface/networks.ts'])
})

t.test('service and client have the same networks and contracts', async (t) => {
  const evm = Object.fromEntries(evmNetworks.map((id) => [id, EVM_NETWORKS[id].usdc.asset]))
  t.same(Object.fromEntries(Object.entries(CLIENT_NETWORKS).map(([id, { usdc }]) => [id, usdc])), {
    ...evm,
    ...SOLANA_USDC,
  })
  t.same(networkNames, [...evmNetworks, SOLANA_MAINNET, SOLANA_DEVNET])
  for (const id of evmNetworks) {
    t.equal(isTestNetwork(id), EVM_NETWORKS[id].mode === 'testnet', id)
    t.ok(isUsdc(id, EVM_NETWORKS[id].usdc.asset), id)
  }
  // Types alone: each is assignable to the other.
  const ofClient = (network: Payment['network']): Network => network
  const ofService = (network: Network): Payment['network'] => network
  t.equal(ofService(ofClient('none')), 'none')
})

t.test('a row is offered in its mode, has terms of its own, and may stand in a result', async (t) => {
  const payTo = { payToEvm: '0x0000000000000000000000000000000000000001', payToSolana: 'owner' }
  for (const mode of ['testnet', 'mainnet'] as const) {
    const ofMode = evmNetworks.filter((id) => EVM_NETWORKS[id].mode === mode)
    t.same(evmNetworksOf(mode), ofMode)
    t.same(
      configuredNetworks({ paymentMode: mode, ...payTo }).slice(0, -1),
      ofMode,
      `${mode}: all of them, Solana last`,
    )
  }
  t.same(configuredNetworks({ paymentMode: 'offline', ...payTo }), evmNetworksOf('testnet').slice(0, 1))
  for (const id of evmNetworks) {
    const { asset, name, version } = EVM_NETWORKS[id].usdc
    t.match(evmTerms(id, payTo.payToEvm), { network: id, asset, extra: { name, version } })
    t.ok(payment.shape.network.safeParse(id).success, id)
    t.equal(`eip155:${chainIdOf(id)}`, id)
  }
  t.notOk(payment.shape.network.safeParse('eip155:1').success, 'a chain that is no row')
})
