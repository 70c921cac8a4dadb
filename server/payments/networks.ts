// The chains that each payment mode is paid on (CAIP-2), and which of them a configuration offers.
import type { Config } from '../config.ts'
import { SOLANA_DEVNET, SOLANA_MAINNET } from '../interface/payment.ts'

export const NETWORKS = {
  testnet: { evm: 'eip155:84532', solana: SOLANA_DEVNET },
  mainnet: { evm: 'eip155:8453', solana: SOLANA_MAINNET },
} as const

/** In the order in which terms are offered. A facilitator that is away changes nothing here. */
export function configuredNetworks({
  paymentMode,
  payToEvm,
  payToSolana,
}: Pick<Config, 'paymentMode' | 'payToEvm' | 'payToSolana'>): string[] {
  // Offline terms are those of Base's test chain, and name an address of their own where none is set.
  if (paymentMode === 'offline') return [NETWORKS.testnet.evm]
  const { evm, solana } = NETWORKS[paymentMode]
  return [...(payToEvm ? [evm] : []), ...(payToSolana ? [solana] : [])]
}
