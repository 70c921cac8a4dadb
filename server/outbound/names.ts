// Resolves host names only by DNS: no hosts file, no search list, no thread of libuv. A query can be cancelled.
import { Resolver } from 'node:dns/promises'
import { BlockList } from 'node:net'
import { AppError } from '../errors.ts'
import { ipv6Groups } from './addresses.ts'

export interface Names {
  /** The IPv4 and IPv6 addresses that DNS gives for a name, without repeats. Throws AppError `source_dns_failed`. */
  findAddresses(hostname: string, signal: AbortSignal): Promise<string[]>
  /** Whether an IPv6 address lies in this network's own NAT64 prefix. Throws AppError `source_dns_failed`. */
  isNat64(address: string, signal: AbortSignal): Promise<boolean>
}

/** @param servers "address:port" of name servers; undefined for the system's */
export function buildNames(servers: readonly string[] | undefined): Names {
  let prefixes: BlockList | undefined
  return {
    findAddresses: (hostname, signal) => ask(servers, signal, (resolver) => findAddresses(resolver, hostname)),
    async isNat64(address, signal) {
      // Queried once, because a network does not change its prefix while a process runs. After a failure it is queried
      // again.
      prefixes ??= await ask(servers, signal, findNat64Prefixes)
      return prefixes.check(address, 'ipv6')
    },
  }
}

async function ask<T>(
  servers: readonly string[] | undefined,
  signal: AbortSignal,
  question: (resolver: Resolver) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  // One resolver for each query, because cancel() ends every query of a resolver.
  const resolver = new Resolver({ timeout: 2500, tries: 2 })
  if (servers) resolver.setServers(servers)
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel)
  try {
    return await question(resolver)
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

async function findAddresses(resolver: Resolver, hostname: string): Promise<string[]> {
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  // Often one family fails. That is safe, because only checked addresses are dialled.
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (addresses.length > 0) return [...new Set(addresses)]
  const causes = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))
  throw new AppError('source_dns_failed', `"${hostname}" does not resolve to an address.`, {
    cause: causes.find((cause) => !isAbsence(cause)) ?? causes[0],
  })
}

/** RFC 7050: in a network with NAT64 this IPv4-only name has an IPv6 address, which shows the prefix. */
async function findNat64Prefixes(resolver: Resolver): Promise<BlockList> {
  const prefixes = new BlockList()
  for (const address of await resolver.resolve6('ipv4only.arpa').catch(emptyIfAbsent)) {
    for (const length of embeddingPrefixes(address)) prefixes.addSubnet(address, length, 'ipv6')
  }
  return prefixes
}

/** The prefix lengths for which an address contains 192.0.0.170 or .171 at the bytes of RFC 6052 §2.2. */
function embeddingPrefixes(address: string): number[] {
  const bytes = ipv6Groups(address).flatMap((group) => [group >> 8, group & 255])
  return Object.entries(RFC6052_PLACES)
    .filter(([, places]) => /^192,0,0,17[01]$/.test(String(places.map((place) => bytes[place]))))
    .map(([length]) => Number(length))
}

const RFC6052_PLACES = {
  32: [4, 5, 6, 7],
  40: [5, 6, 7, 9],
  48: [6, 7, 9, 10],
  56: [7, 9, 10, 11],
  64: [9, 10, 11, 12],
  96: [12, 13, 14, 15],
}

/** The name, or its record, does not exist. Other errors mean that there was no answer. */
const isAbsence = (error: { code?: string }) => error.code === 'ENOTFOUND' || error.code === 'ENODATA'

function emptyIfAbsent(error: { code?: string }): string[] {
  if (isAbsence(error)) return []
  throw new AppError('source_dns_failed', 'The name service does not answer.', { cause: error })
}
