// The format `uri` of the interface: RFC 3986, read as strictly as validators of JSON Schema read it. Nothing is imported here.

/** A character that may not follow the authority of a URI. "%" and "#" are judged apart. */
const FOREIGN = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%#]/g
const BARE_PERCENT = /%(?![0-9A-Fa-f]{2})/g
const AUTHORITY = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]*/
const VALID_AUTHORITY =
  /^[^:]+:\/\/([A-Za-z0-9\-._~!$&'()*+,;=:%]*@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~!$&'()*+,;=%]*)(:\d*)?$/

/** Most characters that one message advises to encode. */
const MAX_ADVICE = 8

/**
 * What keeps a text from being a URI with a scheme and an authority, as a clause that says what to encode; null for a
 * URI. Takes time in proportion to the length.
 */
export function uriProblem(text: string): string | null {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII includes the control characters
  if (!/^[\x00-\x7f]*$/.test(text))
    return 'must be an ASCII URI: percent-encode the path and query, and write the host as its A-label (xn--...)'
  const authority = AUTHORITY.exec(text)?.[0]
  if (authority === undefined) return 'must be a URI with a scheme and a host (RFC 3986)'
  const rest = text.slice(authority.length)
  const advice = new Set((rest.match(FOREIGN) ?? []).map((character) => `${show(character)} as ${escaped(character)}`))
  if (rest.search(BARE_PERCENT) >= 0) advice.add('"%" as %25 where no two hexadecimal digits follow it')
  if (rest.indexOf('#') !== rest.lastIndexOf('#')) advice.add('"#" as %23 after the first one')
  if (advice.size > 0) return `must be a URI (RFC 3986): percent-encode ${[...advice].slice(0, MAX_ADVICE).join(', ')}`
  const validHost = authority.search(BARE_PERCENT) < 0 && (!authority.includes('[') || URL.canParse(text))
  return VALID_AUTHORITY.test(authority) && validHost ? null : 'must be a URI (RFC 3986): its host or port is not valid'
}

/**
 * The URL that is asked for and named in results: as the URL parser reads it, then with every character escaped that the
 * parser keeps and RFC 3986 does not allow, without the fragment, which is never sent. Leaves the argument unchanged.
 */
export function asUri(url: URL): URL {
  const uri = new URL(url)
  uri.hash = ''
  uri.pathname = escapeForeign(uri.pathname)
  // Setting an empty query would remove its question mark.
  if (uri.search !== '') uri.search = escapeForeign(uri.search)
  return uri
}

function escapeForeign(part: string): string {
  return part.replace(FOREIGN, escaped).replace(BARE_PERCENT, '%25')
}

function escaped(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}

function show(character: string): string {
  return character > ' ' && character < '\x7f' ? `"${character}"` : 'a control character or space'
}
