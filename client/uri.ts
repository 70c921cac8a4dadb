// What the service takes as the address of a page: a URI by RFC 3986. Browsers take more, and escape it before they send it.

/** Characters that RFC 3986 has after the host; "%" and "#" are judged apart. */
const FOREIGN = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%#]/
const BARE_PERCENT = /%(?![0-9A-Fa-f]{2})/

/** The first character of an address that must be escaped, and how; null for a URI. Takes an ASCII URL with scheme and host. */
export function uriFault(url: string): string | null {
  const rest = url.slice(url.indexOf('//') + 2).replace(/^[^/?#]*/, '')
  const foreign = FOREIGN.exec(rest)?.[0]
  if (foreign !== undefined) return `write ${foreign} as ${escaped(foreign)}`
  if (BARE_PERCENT.test(rest)) return 'write % as %25 where no two hexadecimal digits follow it'
  return rest.indexOf('#') === rest.lastIndexOf('#') ? null : 'write # as %23 after the first one'
}

function escaped(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}
