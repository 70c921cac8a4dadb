// Which IP addresses are public. Blocks of the IANA IPv4 and IPv6 Special-Purpose Address Registries as of 2026-09-17, and
// further blocks, of other registries or of none, in which there are no public web servers.
import { BlockList, isIP } from 'node:net'

/** A block without public web servers, and its purpose. */
export interface SpecialBlock {
  cidr: string
  name: string
}

/** True for a public unicast address in text form; false for any other text. */
export function isPublicAddress(address: string): boolean {
  return specialBlockOf(address) === null
}

/** The block for which an address is refused; null for a public unicast address. */
export function specialBlockOf(address: string): SpecialBlock | null {
  // isIP comes first: BlockList answers false, which would mean public, for text that is no address.
  const family = isIP(address)
  if (family === 4) return findBlock(IPV4, address, 'ipv4')
  if (family === 6 && !address.includes('%')) return ipv6BlockOf(address)
  return { cidr: '', name: 'not an IP address, or one with a zone' }
}

function ipv6BlockOf(address: string): SpecialBlock | null {
  const listed = findBlock(IPV6, address, 'ipv6')
  if (listed) return listed
  if (!GLOBAL_UNICAST.check(address, 'ipv6')) return { cidr: '::/0', name: 'outside global unicast (2000::/3)' }
  return isIsatap(address) ? { cidr: '', name: 'ISATAP interface identifier' } : null
}

/** The last 32 bits hold an IPv4 address, under any prefix (RFC 5214 §6.1). */
function isIsatap(address: string): boolean {
  const groups = ipv6Groups(address)
  return groups[5] === 0x5efe && (groups[4] === 0 || groups[4] === 0x200)
}

/** One text for each address, so that addresses of DNS, URLs and sockets can be compared. Other text is returned as it is. */
export function canonicalAddress(address: string): string {
  // The URL parser's form never has a dotted tail. The parser accepts no zones.
  return isIP(address) === 6 && !address.includes('%')
    ? new URL(`https://[${address}]/`).hostname.slice(1, -1)
    : address
}

/** The eight 16-bit groups of an IPv6 address. */
export function ipv6Groups(address: string): number[] {
  const [head, tail] = canonicalAddress(address).split('::')
  const left = head ? head.split(':') : []
  const right = tail ? tail.split(':') : []
  const zeros = Array<string>(8 - left.length - right.length).fill('0')
  return [...left, ...zeros, ...right].map((group) => Number.parseInt(group, 16))
}

interface Row extends SpecialBlock {
  list: BlockList
}

/**
 * Each row has a separate list, which is used only for addresses of its family: in a shared list one IPv6 rule such as
 * ::ffff:0:0/96 would match every IPv4 address.
 */
function rows(family: 'ipv4' | 'ipv6', table: Record<string, string>): Row[] {
  return Object.entries(table).map(([cidr, name]) => {
    const [network = '', prefix] = cidr.split('/')
    const list = new BlockList()
    list.addSubnet(network, Number(prefix), family)
    return { cidr, name, list }
  })
}

function findBlock(table: readonly Row[], address: string, family: 'ipv4' | 'ipv6'): SpecialBlock | null {
  const row = table.find(({ list }) => list.check(address, family))
  return row ? { cidr: row.cidr, name: row.name } : null
}

const IPV4 = rows('ipv4', {
  '0.0.0.0/8': 'this network',
  '10.0.0.0/8': 'private use',
  '100.64.0.0/10': 'shared address space (carrier-grade NAT)',
  '127.0.0.0/8': 'loopback',
  '169.254.0.0/16': 'link local (cloud metadata)',
  '172.16.0.0/12': 'private use',
  '192.0.0.0/24': 'IETF protocol assignments',
  '192.0.2.0/24': 'documentation (TEST-NET-1)',
  '192.31.196.0/24': 'AS112-v4',
  '192.52.193.0/24': 'AMT',
  '192.88.99.0/24': 'deprecated 6to4 relay anycast',
  '192.168.0.0/16': 'private use',
  '192.175.48.0/24': 'direct delegation AS112 service',
  '198.18.0.0/15': 'benchmarking',
  '198.51.100.0/24': 'documentation (TEST-NET-2)',
  '203.0.113.0/24': 'documentation (TEST-NET-3)',
  '224.0.0.0/4': 'multicast',
  '240.0.0.0/4': 'reserved, limited broadcast',
  // Azure's WireServer: a plain unicast address, answered by the hypervisor of the virtual machine.
  '168.63.129.16/32': 'Azure platform endpoint',
})

const GLOBAL_UNICAST = new BlockList()
GLOBAL_UNICAST.addSubnet('2000::', 3, 'ipv6')

// Rows outside 2000::/3 only give the refusal its name. Every form that contains an IPv4 address is refused, public or not.
// 2001::/23 is refused whole: its globally reachable blocks are anycast services, not web sites.
const IPV6 = rows('ipv6', {
  '::1/128': 'loopback',
  '::/128': 'unspecified',
  '::/96': 'IPv4-compatible',
  '::ffff:0:0/96': 'IPv4-mapped',
  '::ffff:0:0:0/96': 'IPv4-translated (SIIT)',
  '64:ff9b::/96': 'IPv4/IPv6 translation (NAT64)',
  '64:ff9b:1::/48': 'local-use IPv4/IPv6 translation (NAT64)',
  '100::/64': 'discard only',
  '100:0:0:1::/64': 'dummy prefix',
  '2001::/23': 'IETF protocol assignments (Teredo, ORCHID, benchmarking)',
  '2001:db8::/32': 'documentation',
  '2002::/16': '6to4',
  '2620:4f:8000::/48': 'direct delegation AS112 service',
  '3fff::/20': 'documentation',
  '5f00::/16': 'segment routing SIDs',
  'fc00::/7': 'unique local',
  'fe80::/10': 'link local',
  'fec0::/10': 'deprecated site local',
  'ff00::/8': 'multicast',
})
