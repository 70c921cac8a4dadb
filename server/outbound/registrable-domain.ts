// The registrable domain of a host, by the public suffix list. All subdomains of one owner share it.
import { getDomain } from 'tldts'
import { type Fixtures, hostOf } from './url-policy.ts'

/**
 * `shop.example.co.uk` gives `example.co.uk`. Suffixes under which a company lets others register (`github.io`) count as
 * suffixes. An address, or a name that is itself a suffix, is its own domain. Pure.
 *
 * @param host lower case, A-labels, as `hostOf` gives it
 */
export function registrableDomain(host: string): string {
  return getDomain(host, { allowPrivateDomains: true }) ?? host
}

/** The registrable domain of a page's host. A fixture host is its own domain, because fixtures share a server, not an owner. */
export function sourceDomain(url: URL, fixtures: Fixtures): string {
  const host = hostOf(url)
  return fixtures.hosts.has(host) ? host : registrableDomain(host)
}
