// The networks on which a verification can be paid, and USDC on each as its issuer names it: one row for each. A client does not
// believe the service which contract is USDC.

/** By CAIP-2 name. `title`: as people call it. `isTest`: USDC is worth nothing there. `node`: a public one, which anyone may ask. */
export const NETWORKS = {
  'eip155:8453': {
    title: 'Base',
    usdc: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    isTest: false,
    node: 'https://mainnet.base.org',
  },
  'eip155:84532': {
    title: 'Base Sepolia',
    usdc: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    isTest: true,
    node: 'https://sepolia.base.org',
  },
  'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp': {
    title: 'Solana',
    usdc: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    isTest: false,
    node: 'https://api.mainnet-beta.solana.com',
  },
  'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1': {
    title: 'Solana devnet',
    usdc: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
    isTest: true,
    node: 'https://api.devnet.solana.com',
  },
} as const

export type NetworkName = keyof typeof NETWORKS

/** The network as people call it; an unknown one is named as it is. */
export function networkInWords(network: string): string {
  if (network === 'none') return 'no network'
  if (!Object.hasOwn(NETWORKS, network)) return network
  const { title, isTest } = NETWORKS[network as NetworkName]
  return isTest ? `${title} (test money)` : title
}
