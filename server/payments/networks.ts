// The chains of each payment mode (CAIP-2), and those that a configuration offers.
import type { Config } from '../config.ts'
import { type EvmNetwork, evmNetworksOf, SOLANA_DEVNET, SOLANA_MAINNET } from '../interface/networks.ts'

export const NETWORKS = {
  testnet: { evm: evmNetworksOf('testnet'), solana: SOLANA_DEVNET },
  mainnet: { evm: evmNetworksOf('mainnet'), solana: SOLANA_MAINNET },
} as const
/** A chain on which money moves. */
export type LiveNetworkId = EvmNetwork | typeof SOLANA_DEVNET | typeof SOLANA_MAINNET

/** Offline terms are those of the first test chain. */
export const OFFLINE_NETWORK: EvmNetwork = NETWORKS.testnet.evm[0]

/** In the order of the terms. Does not depend on whether the facilitator answers. */
export function configuredNetworks({
  paymentMode,
  payToEvm,
  payToSolana,
}: Pick<Config, 'paymentMode' | 'payToEvm' | 'payToSolana'>): string[] {
  if (paymentMode === 'offline') return [OFFLINE_NETWORK]
  const { evm, solana } = NETWORKS[paymentMode]
  return [...(payToEvm ? evm : []), ...(payToSolana ? [solana] : [])]
}
