// The key under which a caller's address is counted by every limit on addresses.
import { isIP } from 'node:net'
import { canonicalAddress, ipv6Groups } from '../outbound/addresses.ts'

/**
 * An IPv4 address is its own key, in every notation, also as an IPv4-mapped IPv6 address. The key of an IPv6 address is its
 * /64, the smallest block that a network gives a subscriber. Ports and zones are left out. Text that is not an address has
 * the key `unknown`.
 */
export function addressKey(address: string): string {
  return keyOfBlock(bareAddress(address), 4)
}

/** Without port and zone. */
function bareAddress(address: string): string {
  return address
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1')
    .replace(/%.*$/, '')
}

/**
 * As `addressKey`, for the network of an address: the /48 of an IPv6 address, which is what a provider gives one customer at most, as
 * many as 65,536 /64s. An IPv4 address is its own network.
 */
export function networkKey(address: string): string {
  return keyOfBlock(bareAddress(address), 3)
}

/** @param groupsKept groups of 16 bits that an IPv6 address is known by */
function keyOfBlock(bare: string, groupsKept: number): string {
  if (isIP(bare) === 4) return bare
  if (isIP(bare) !== 6) return 'unknown'
  const groups = ipv6Groups(canonicalAddress(bare))
  const mapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (mapped)
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 255])
      .join('.')
  return `${groups
    .slice(0, groupsKept)
    .map((group) => group.toString(16))
    .join(':')}::/${groupsKept * 16}`
}
