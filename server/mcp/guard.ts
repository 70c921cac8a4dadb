// Who may talk to this endpoint through a browser. A page that makes its own name resolve to our address (DNS rebinding)
// sends that name as Host, and a page of another site its Origin; programs send no Origin.
import { isIP } from 'node:net'
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server'
import { CODES, RpcError } from './rpc.ts'

const LOCAL = localhostAllowedHostnames()

/** Throws a RpcError (403). @param baseUrl where callers find us */
export function refuseForeign(headers: { host?: string; origin?: string }, baseUrl: string): void {
  const ours = [...LOCAL, new URL(baseUrl).hostname]
  const host = validateHostHeader(headers.host, ours)
  // An address is not a name, so none can have been made to point here.
  if (!host.ok && !isAddress(host.hostname))
    throw new RpcError(403, CODES.server, 'This is not the name of this service.')
  if (headers.origin !== undefined && !validateOriginHeader(headers.origin, [...ours, host.hostname ?? '']).ok)
    throw new RpcError(403, CODES.server, 'Pages of this origin may not use this endpoint.')
}

function isAddress(hostname = ''): boolean {
  return isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0
}
