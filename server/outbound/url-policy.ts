// The URL policy: which URLs this service may contact. It checks only the text, before any DNS query; connection.ts checks
// the addresses that a name resolves to.
import { isIP } from 'node:net'
import { AppError } from '../errors.ts'
import { specialBlockOf } from './addresses.ts'

/** Hosts reached at configured addresses, for the demo and for tests; never in mainnet mode. */
export interface Fixtures {
  /** By lower-case host name, the address that is dialled instead. */
  readonly hosts: ReadonlyMap<string, { address: string; port: number }>
  /** PEM of the CA of their certificates, trusted for these hosts only; undefined for the public CAs. */
  readonly ca: string | undefined
}

export const noFixtures: Fixtures = { hosts: new Map(), ca: undefined }

const MAX_URL_CHARS = 2048

/**
 * Parses a URL that this service may contact: https, port 443, no user name, a public host. Fetch the URL that is returned,
 * never the text: Node's parser reads 0x7f000001, ①②⑦.⓪.⓪.① and 127。0。0。1 all as 127.0.0.1, and only the result of that
 * parser is checked here. One trailing dot of the host is dropped. Fixture hosts are exempt from the special-use rule
 * alone.
 *
 * Throws AppError `invalid_request` for text that is not an https URL with a host name or address, `source_blocked` for a
 * URL that may not be contacted. Has no side effects.
 */
export function parsePublicUrl(raw: string, fixtures: Fixtures, maxChars = MAX_URL_CHARS): URL {
  const { authority, url } = parseHttpsUrl(raw, maxChars)
  // The parser drops an empty user name ("https://:@host"), so the text is checked too.
  if (authority.includes('@') || url.username || url.password) throw blocked('The URL must not carry a user name.')
  if (url.port !== '') throw blocked('Only port 443 may be contacted.')
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1)
  judgeHost(url.hostname, fixtures)
  return url
}

/** The host of a URL as DNS, sockets and results have it: A-labels, or an address without brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

function parseHttpsUrl(raw: string, maxChars: number) {
  if (raw.length > maxChars) throw invalid(`The URL is longer than ${maxChars} characters.`)
  // The parser deletes tabs and newlines anywhere, and trims the ends.
  if (/[\s\p{Cc}]/u.test(raw)) throw invalid('The URL contains white space or control characters.')
  // The parser accepts "https:host", and reads a backslash as a slash, which would move the end of the host.
  const authority = /^https:\/\/([^/?#\\]+)(?=[/?#]|$)/.exec(raw)?.[1]
  const url = URL.parse(raw)
  if (authority === undefined || url === null) throw invalid('The URL must have the form https://host/path.')
  return { authority, url }
}

function judgeHost(hostname: string, fixtures: Fixtures): void {
  const address = hostname.replace(/^\[|\]$/g, '')
  if (isIP(address)) {
    const block = specialBlockOf(address)
    if (block) throw blocked(`${address} is not a public address (${block.name}).`)
    return
  }
  if (!isHostName(hostname)) throw invalid('The URL has no valid host name.')
  if (!fixtures.hosts.has(hostname) && isSpecialUse(hostname)) throw blocked(`"${hostname}" is not a public host name.`)
}

/** Underscores are no part of host names by RFC 952, but DNS has such names, and browsers open them. */
function isHostName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label))
}

/** A name without a dot is never public: the local network decides what it means. */
function isSpecialUse(name: string): boolean {
  return !name.includes('.') || SPECIAL_USE.some((suffix) => name === suffix || name.endsWith(`.${suffix}`))
}

const SPECIAL_USE = [
  // IANA Special-Use Domain Names registry; `arpa` covers home.arpa, the reverse zones and the rest below it.
  ...['alt', 'arpa', 'example', 'internal', 'invalid', 'local', 'localhost', 'onion', 'test'],
  // Customary private zones (RFC 6762 appendix G; ICANN's never-delegated corp, home, mail; container networks).
  ...['corp', 'home', 'intranet', 'lan', 'localdomain', 'mail', 'private', 'svc'],
  // Resolves to link-local metadata inside that cloud.
  'metadata.tencentyun.com',
]

const invalid = (message: string) => new AppError('invalid_request', message)
const blocked = (message: string) => new AppError('source_blocked', message)
