// Parser of the variable FIXTURE_HOSTS: host names that tests and the demo reach at an address of their choice.
import { z } from 'zod'

export const fixtureHosts = z
  .string()
  .regex(/^[^=,\s]+=[^=,\s]+:\d+(,[^=,\s]+=[^=,\s]+:\d+)*$/, 'must be name=address:port,...')
  .refine(
    (text) => [...readFixtureHosts(text).values()].every(({ port }) => port >= 1 && port <= 65_535),
    'must have ports from 1 to 65535',
  )

/**
 * Reads `name=address:port` with commas between; IPv6 addresses are in brackets. Empty text has no hosts. The keys are
 * lower-case host names.
 */
export function readFixtureHosts(text: string): ReadonlyMap<string, { address: string; port: number }> {
  const hosts = new Map<string, { address: string; port: number }>()
  for (const entry of text ? text.split(',') : []) {
    const [name = '', target = ''] = entry.split('=')
    const colon = target.lastIndexOf(':')
    const address = target.slice(0, colon).replace(/^\[|\]$/g, '')
    hosts.set(name.toLowerCase(), { address, port: Number(target.slice(colon + 1)) })
  }
  return hosts
}
