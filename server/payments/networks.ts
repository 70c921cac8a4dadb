// The chains of each payment mode (CAIP-2), and those that a configuration offers.
import type { Config } from '../config.ts'
import { SOLANA_DEVNET, SOLANA_MAINNET } from '../interface/payment.ts'

export const NETWORKS = {
  testnet: { evm: 'eip155:84532', solana: SOLANA_DEVNET },
  mainnet: { evm: 'eip155:8453', solana: SOLANA_MAINNET },
} as const
type NetworksByKind = (typeof NETWORKS)[keyof typeof NETWORKS]
/** A chain on which money moves. */
export type LiveNetworkId = NetworksByKind[keyof NetworksByKind]

/** In the order of the terms. Does not depend on whether the facilitator answers. */
export function configuredNetworks({
  paymentMode,
  payToEvm,
  payToSolana,
}: Pick<Config, 'paymentMode' | 'payToEvm' | 'payToSolana'>): string[] {
  // Offline terms are those of Base's test chain.
  if (paymentMode === 'offline') return [NETWORKS.testnet.evm]
  const { evm, solana } = NETWORKS[paymentMode]
  return [...(payToEvm ? [evm] : []), ...(payToSolana ? [solana] : [])]
}
