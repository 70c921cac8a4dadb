// Refuses web pages of other sites. A page that makes its own name resolve to this service's address (DNS rebinding) sends
// that name as Host; a page of another site sends its Origin. Programs send no Origin.
import { isIP } from 'node:net'
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server'
import { CODES, RpcError } from './rpc.ts'

const LOCAL = localhostAllowedHostnames()

/** Throws RpcError (403). @param baseUrl this service's public address */
export function checkOrigin(headers: { host?: string; origin?: string }, baseUrl: string): void {
  const allowed = [...LOCAL, new URL(baseUrl).hostname]
  const host = validateHostHeader(headers.host, allowed)
  // An IP address is not resolved, so DNS rebinding is not possible.
  if (!host.ok && !isAddress(host.hostname))
    throw new RpcError(403, CODES.server, 'The Host header does not name this service.')
  if (headers.origin !== undefined && !validateOriginHeader(headers.origin, [...allowed, host.hostname ?? '']).ok)
    throw new RpcError(403, CODES.server, 'Pages of this origin may not use this endpoint.')
}

function isAddress(hostname = ''): boolean {
  return isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0
}
