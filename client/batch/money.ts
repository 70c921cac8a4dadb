// Amounts of USDC: whole atomic units, six decimals, never floating point.
import { NETWORKS } from '../networks.ts'

const DECIMALS = 6

const KNOWN: ReadonlyMap<string, { usdc: string; isTest: boolean }> = new Map(Object.entries(NETWORKS))

/** Whether USDC is worth nothing on the network. */
export function isTestNetwork(network: string): boolean {
  return KNOWN.get(network)?.isTest ?? false
}

export const networkNames: readonly string[] = [...KNOWN.keys()]

export function usdcOf(network: string): string | undefined {
  return KNOWN.get(network)?.usdc
}

/** Whether the asset is USDC of this network. Hexadecimal letters have no case; base58 has one. */
export function isUsdc(network: string, asset: string): boolean {
  const usdc = usdcOf(network)
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
