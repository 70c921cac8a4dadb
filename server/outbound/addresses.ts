// Which IP addresses are public. IANA IPv4 and IPv6 Special-Purpose Address Registries as of 2026-09-17, plus the blocks
// that stand in other registries or in none and are just as little a place to find a web page.
import { BlockList, isIP } from 'node:net'

/** A block no page lives in, and what it is for. */
export interface SpecialBlock {
  cidr: string
  name: string
}

/** True for a public unicast address in plain text form; false for everything else, text that is no address included. */
export function isPublicAddress(address: string): boolean {
  return specialBlockOf(address) === null
}

/** The block that makes an address unfit to be contacted; null for a public unicast address. */
export function specialBlockOf(address: string): SpecialBlock | null {
  // isIP comes first: BlockList answers false, which would mean public, for text it cannot read.
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

/** An IPv4 address rides in the last 32 bits, under whatever prefix a network has (RFC 5214 section 6.1). */
function isIsatap(address: string): boolean {
  const groups = ipv6Groups(address)
  return groups[5] === 0x5efe && (groups[4] === 0 || groups[4] === 0x200)
}

/** One text for one address, so that addresses from DNS, URLs and sockets can be compared; other text stays as it is. */
export function canonicalAddress(address: string): string {
  // The URL parser's form never has a dotted tail, and the parser knows no zones.
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

/**
 * Whom an address stands for where callers are counted: an IPv4 address for itself, an IPv6 address for its /64, because one
 * customer has all of it. An IPv4-mapped address is the IPv4 address. Other text stays as it is.
 */
export function callerNetwork(address: string): string {
  const plain = address.replace(/%.*$/, '')
  if (isIP(plain) !== 6) return plain
  const groups = ipv6Groups(plain)
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (isMapped)
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 0xff])
      .join('.')
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`
}

interface Row extends SpecialBlock {
  list: BlockList
}

/**
 * Each row has its own list, of its own family, and is only asked about addresses of that family: one IPv6 rule such as
 * ::ffff:0:0/96 in a shared list would match every IPv4 address.
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
  // Azure's WireServer: plain unicast by number, answered by the hypervisor of whoever asks.
  '168.63.129.16/32': 'Azure platform endpoint',
})

const GLOBAL_UNICAST = new BlockList()
GLOBAL_UNICAST.addSubnet('2000::', 3, 'ipv6')

// Rows outside 2000::/3 only give the refusal its name. Every form that carries an IPv4 address is refused, whatever
// address it carries. 2001::/23 is refused whole: its globally reachable children are anycast services, not sites.
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
