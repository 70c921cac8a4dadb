// Amounts of USDC: whole atomic units, six decimals, never floating point.

const DECIMALS = 6

/** USDC by network (CAIP-2), as the issuer names it. */
const USDC: Readonly<Record<string, string>> = {
  'eip155:8453': '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  'eip155:84532': '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp': 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1': '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
}

/** Networks on which USDC is worth nothing. */
const TEST_NETWORKS: ReadonlySet<string> = new Set(['eip155:84532', 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'])

export function isTestNetwork(network: string): boolean {
  return TEST_NETWORKS.has(network)
}

export const NETWORKS = Object.keys(USDC)

export function usdcOf(network: string): string | undefined {
  return USDC[network]
}

/** Whether the asset is USDC of this network. Hexadecimal letters have no case; base58 has one. */
export function isUsdc(network: string, asset: string): boolean {
  const usdc = USDC[network]
  return (
    usdc !== undefined && (network.startsWith('eip155:') ? asset.toLowerCase() === usdc.toLowerCase() : asset === usdc)
  )
}

/** An amount such as `12` or `0.03`, with at most six decimals and no sign; null for any other text. */
export function parseUsd(text: string): bigint | null {
  const [, whole, part = ''] = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text) ?? []
  return whole === undefined ? null : BigInt(whole + part.padEnd(DECIMALS, '0'))
}

/** `0.03`, `60.00`, `0.030001`: at least two decimals. */
export function formatUsd(atoms: bigint): string {
  const digits = String(atoms).padStart(DECIMALS + 1, '0')
  const part = digits.slice(-DECIMALS).replace(/0{1,4}$/, '')
  return `${digits.slice(0, -DECIMALS)}.${part}`
}
