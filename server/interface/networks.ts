// The networks on which a verification can be paid. An EVM network is one row here: terms, checks of signatures, results,
// capabilities and the nodes that are asked follow from it. `client/networks.ts` has the same rows, because clients do not trust
// the service to name the contract; a test compares them.

interface EvmNetworkRow {
  /** The mode that offers it. */
  mode: 'testnet' | 'mainnet'
  /** The USDC contract with its EIP-712 domain. The names differ, and so do the signatures. */
  usdc: { asset: `0x${string}`; name: string; version: string }
  /** The public node that is asked in cases of doubt, where none is configured. */
  publicNode: string
}

/** By CAIP-2 name, in the order of the terms. EVM_RPC_URL is a node of the first network of the mode. */
export const EVM_NETWORKS = {
  'eip155:8453': {
    mode: 'mainnet',
    usdc: { asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', name: 'USD Coin', version: '2' },
    publicNode: 'https://mainnet.base.org',
  },
  'eip155:84532': {
    mode: 'testnet',
    usdc: { asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', name: 'USDC', version: '2' },
    publicNode: 'https://sepolia.base.org',
  },
} as const satisfies Record<`eip155:${number}`, EvmNetworkRow>

export type EvmNetwork = keyof typeof EVM_NETWORKS

export const evmNetworks = Object.keys(EVM_NETWORKS) as [EvmNetwork, ...EvmNetwork[]]

/** The EVM networks of a mode. Each mode has one at least. */
export function evmNetworksOf(mode: EvmNetworkRow['mode']): [EvmNetwork, ...EvmNetwork[]] {
  const [first, ...further] = evmNetworks.filter((id) => EVM_NETWORKS[id].mode === mode)
  if (first === undefined) throw new Error(`no EVM network of ${mode} mode`)
  return [first, ...further]
}

/** CAIP-2 names of the Solana networks: the first 32 characters of their genesis hashes. */
export const SOLANA_MAINNET = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'
export const SOLANA_DEVNET = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'

/** The mint of USDC on each. */
export const SOLANA_USDC = {
  [SOLANA_MAINNET]: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  [SOLANA_DEVNET]: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
} as const
