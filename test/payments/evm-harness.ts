// A service that is paid on a local EVM chain. The test controls everything between them: the facilitator's answers, the node's
// reachability, the miner.
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { x402Client } from '@x402/fetch'
import type { PrivateKeyAccount } from 'viem/accounts'
import type { EvmNetwork } from '../../server/interface/networks.ts'
import { type LiveOverrides, openLiveFacilitator } from '../../server/payments/facilitators/live-setup.ts'
import { evmAuthorization } from '../../server/payments/payload.ts'
import { sharedThreads } from '../shared-threads.ts'
import { openEvmChain } from './evm-chain.ts'
import { deeds, openFacilitatorRig } from './evm-facilitator.ts'
import { openPurchaseHarness } from './purchase-harness.ts'
import { openRpcProxy } from './rpc-proxy.ts'
import { openPurchase, type PurchaseOptions } from './test-purchase.ts'

export const PRICE = 30_000n

export type EvmHarness = Awaited<ReturnType<typeof openEvmHarness>>
export type Purchase = Awaited<ReturnType<EvmHarness['order']>>

export interface EvmHarnessOptions {
  network?: EvmNetwork
  overrides?: LiveOverrides
  /** No node is configured; the node of the chain is asked as a public one. */
  nodeless?: true
}

export async function openEvmHarness(options: EvmHarnessOptions = {}) {
  await using opened = new AsyncDisposableStack()
  const network = options.network ?? 'eip155:84532'
  const chain = opened.use(await openEvmChain(network))
  const rpc = opened.use(await openRpcProxy(chain.url))
  const facilitator = opened.use(await openFacilitatorRig(chain))
  const payTo = (await chain.openAccount()).address
  const env = {
    PAYMENT_MODE: 'testnet',
    BASE_URL: 'https://shop.example',
    FACILITATOR_URL: facilitator.url,
    EVM_RPC_URL: options.nodeless ? '' : rpc.url,
    PAY_TO_EVM: payTo,
  }
  const config = {
    // Mainnet mode refuses fixture hosts, so only the facilitator is in mainnet mode.
    paymentMode: network === 'eip155:8453' ? ('mainnet' as const) : ('testnet' as const),
    facilitatorUrl: facilitator.url,
    cdpKey: undefined,
    payToEvm: payTo,
    payToSolana: undefined,
    evmRpcUrl: options.nodeless ? undefined : rpc.url,
    solanaRpcUrl: undefined,
  }
  const overrides = { publicRpcUrl: rpc.url, threads: sharedThreads(), ...options.overrides }
  const harness = opened.use(await openPurchaseHarness(env, (log) => openLiveFacilitator(config, log, overrides)))
  const closing = opened.move()
  return {
    ...harness,
    chain,
    rpc,
    facilitator,
    config,
    payTo,
    /** A purchase by a wallet that holds ten times the price. */
    async order({ wallet, ...rest }: PurchaseOptions & { wallet?: PrivateKeyAccount } = {}) {
      const account = wallet ?? (await chain.openAccount())
      await chain.mint(account.address, 10n * PRICE)
      const client = new x402Client().register(network, new ExactEvmScheme(account))
      const buyer = { client, balance: () => chain.balanceOf(account.address) }
      const order = await openPurchase(harness.system, buyer, { balance: () => chain.balanceOf(payTo) }, rest)
      return { ...order, wallet: account }
    },
    /** Lets the next payment expire on the chain before the facilitator tries to settle it. */
    expireNext() {
      facilitator.script.push(async (call) => {
        const { authorization } = evmAuthorization.parse(call.payload.payload)
        await chain.passTime(Number(authorization.validBefore))
        await deeds.settles(call)
      })
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}
