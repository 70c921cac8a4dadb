// The registrable domain of a host, by the public suffix list: what one owner holds, however many subdomains it makes.
import { getDomain } from 'tldts'

/**
 * `shop.example.co.uk` gives `example.co.uk`. Suffixes under which a company lets strangers register (`github.io`) count as
 * suffixes. An address, and a name that is itself a suffix, is its own domain. Pure.
 *
 * @param host lower case, A-labels, as `hostOf` gives it
 */
export function registrableDomain(host: string): string {
  return getDomain(host, { allowPrivateDomains: true }) ?? host
}
