// The domain that one owner registered and under which that owner can make any number of host names: the public suffix and
// one label more.
import { parse } from 'tldts'
import { type Fixtures, hostOf } from './url-policy.ts'

/**
 * The registrable domain of a URL's host, by the Public Suffix List and its private section: `a.pages.dev` and `b.pages.dev`
 * have different owners. An IP address, a fixture host, and a host that is a public suffix itself stand for themselves.
 */
export function registrableDomain(url: URL, fixtures: Fixtures): string {
  const host = hostOf(url)
  if (fixtures.hosts.has(host)) return host
  return parse(host, { allowPrivateDomains: true, detectIp: true }).domain ?? host
}
