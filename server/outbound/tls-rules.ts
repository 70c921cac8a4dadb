// What is demanded of a TLS handshake with a server that a caller chose.
import { constants } from 'node:crypto'
import { isIP } from 'node:net'
import {
  type ConnectionOptions,
  checkServerIdentity,
  createSecureContext,
  DEFAULT_CIPHERS,
  type PeerCertificate,
  type SecureContext,
} from 'node:tls'

/** One context for each CA: to make one for every connection would cost as much as a third of a handshake. */
export function buildContexts(): (ca: string | undefined) => SecureContext {
  const contexts = new Map<string | undefined, SecureContext>()
  return (ca) => {
    const context = contexts.get(ca) ?? createSecureContext({ ca, ...TLS_RULES })
    contexts.set(ca, context)
    return context
  }
}

const TLS_RULES = {
  minVersion: 'TLSv1.2',
  // In TLS 1.2 the peer could ask for a second handshake with another certificate, which would not be checked.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  // With DHE the peer chooses the prime: one of 10,000 bits would stop this process for more than a second, before its certificate is
  // judged. Browsers do not offer it either.
  ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
} as const

/** No session is kept or offered: a resumed one would skip the checks of the certificate. */
export function tlsOptions(hostname: string): ConnectionOptions {
  return {
    servername: isIP(hostname) ? undefined : hostname,
    ALPNProtocols: ['http/1.1'],
    // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment changes the default.
    rejectUnauthorized: true,
    checkServerIdentity: (_host: string, certificate: PeerCertificate) => identityError(hostname, certificate),
  }
}

/** Node falls back to the common name when there is no SAN. Browsers do not, and CAs do not verify it. */
function identityError(hostname: string, certificate: PeerCertificate): Error | undefined {
  if (certificate.subjectaltname) return checkServerIdentity(hostname, certificate)
  return Object.assign(new Error('The certificate names no host.'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
}
