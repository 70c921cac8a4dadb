// A service that is paid on a local Solana ledger, and on an EVM chain if one is given.
import { generateKeyPairSigner } from '@solana/kit'
import { x402Facilitator } from '@x402/core/facilitator'
import { x402Client } from '@x402/fetch'
import { toFacilitatorSvmSigner } from '@x402/svm'
import { ExactSvmScheme as ExactSvmClient } from '@x402/svm/exact/client'
import { ExactSvmScheme as ExactSvmFacilitator } from '@x402/svm/exact/facilitator'
import { SOLANA_DEVNET } from '../../server/interface/networks.ts'
import type { EvmChain } from './evm-chain.ts'
import { buildEvmScheme, openShell } from './evm-facilitator.ts'
import { openPurchaseHarness } from './purchase-harness.ts'
import { openRpcProxy } from './rpc-proxy.ts'
import { openSolanaLedger } from './solana-ledger.ts'
import { openPurchase, type PurchaseOptions } from './test-purchase.ts'

export type SolanaHarness = Awaited<ReturnType<typeof openSolanaHarness>>

/** @param chain an EVM chain that is paid on too */
export async function openSolanaHarness(chain?: EvmChain) {
  await using opened = new AsyncDisposableStack()
  const ledger = opened.use(await openSolanaLedger())
  const rpc = opened.use(await openRpcProxy(ledger.url))
  const facilitator = opened.use(await openSolanaFacilitator(ledger.url, chain))
  ledger.airdrop(facilitator.feePayer)
  const payTo = (await generateKeyPairSigner()).address
  await ledger.fund(payTo, 0n)
  const own = {
    PAYMENT_MODE: 'testnet',
    BASE_URL: 'https://shop.example',
    FACILITATOR_URL: facilitator.url,
    SOLANA_RPC_URL: rpc.url,
    PAY_TO_SOLANA: payTo,
  }
  const more = chain && { EVM_RPC_URL: chain.url, PAY_TO_EVM: (await chain.openAccount()).address }
  const harness = opened.use(await openPurchaseHarness({ ...own, ...more }))
  const closing = opened.move()
  return {
    ...harness,
    ledger,
    rpc,
    facilitator,
    payTo,
    async order(options: PurchaseOptions = {}) {
      const wallet = await generateKeyPairSigner()
      await ledger.fund(wallet.address, 300_000n)
      const client = new x402Client().register(SOLANA_DEVNET, new ExactSvmClient(wallet, { rpcUrl: ledger.url }))
      const buyer = { client, balance: () => ledger.balanceOf(wallet.address) }
      return openPurchase(harness.system, buyer, { balance: () => ledger.balanceOf(payTo) }, options)
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

async function openSolanaFacilitator(rpcUrl: string, chain?: EvmChain) {
  const signer = await generateKeyPairSigner()
  const scheme = new ExactSvmFacilitator(toFacilitatorSvmSigner(signer, { defaultRpcUrl: rpcUrl }))
  const facilitator = new x402Facilitator().register(SOLANA_DEVNET, scheme)
  if (chain) facilitator.register(chain.network, (await buildEvmScheme(chain)).scheme)
  return openShell(facilitator, { feePayer: signer.address })
}
