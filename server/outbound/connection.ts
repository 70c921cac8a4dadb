// Outbound connections. Every connection to an address that a caller or a third party chose is made here: the URL is
// checked, DNS is queried once, every address in its answer must be public, and only those addresses can be dialled. Each
// connection is one verified TLS socket for one request.
import type { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect, isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { SecureContext, TLSSocket } from 'node:tls'
import { type buildConnector, Client } from 'undici'
import { openDeadline } from '../deadline.ts'
import { AppError } from '../errors.ts'
import { canonicalAddress, specialBlockOf } from './addresses.ts'
import { outboundFailure } from './failures.ts'
import { buildNames, type Names } from './names.ts'
import { buildContexts, tlsOptions } from './tls-rules.ts'
import { connectOver } from './tls-wire.ts'
import { type Fixtures, hostOf, parsePublicUrl } from './url-policy.ts'

export interface OutboundOptions {
  fixtures: Fixtures
  /** Names the service and where its operator can be reached. */
  userAgent?: string
  /** Addresses of this machine, refused like private ones. Default: those of its interfaces, read for each hop. */
  ownAddresses?: () => Iterable<string>
  /** For tests only. */
  seams?: {
    /** "address:port" of the name servers to ask. */
    nameServers?: readonly string[]
    /** Vetted address → the address dialled instead. */
    dial?: ReadonlyMap<string, string>
    /** Dialled instead of 443. */
    port?: number
    /** PEM of a CA trusted for every host in place of the public ones. */
    ca?: string
  }
}

/** The target of one URL: checked, and pinned to the addresses from DNS. */
export interface Destination {
  readonly url: URL
  readonly hostname: string
  readonly addresses: readonly string[]
  readonly port: number
  readonly ca: string | undefined
  readonly fixture: boolean
}

/** What a server shows of its identity in a handshake. */
export interface Shown {
  port: number
  /** The name that was sent to it; null for a host that is an IP address. */
  serverName: string | null
  /** DER, leaf first, as far as the server sent issuers. */
  certificates: Buffer[]
  /** DER of the stapled OCSP response, unchecked; null where none was sent. */
  ocspResponse: Buffer | null
}

/** One verified TLS connection, for one request. Disposing destroys it. */
export interface Connection extends AsyncDisposable {
  socket: TLSSocket
  address: string
  /** Chain and name were checked; revocation was not (no OCSP, no CRL). */
  tls: { protocol: string; cipher: string; fingerprint256: string; validTo: Date }
  /** What the server showed in the handshake; null unless it was asked for. */
  shown: Shown | null
  /** An HTTP/1.1 client that sends one request over this socket and cannot open another. */
  buildClient(options?: Client.Options): Client
}

export interface ConnectOptions {
  signal: AbortSignal
  timeoutMs: number
  /** Asks for a stapled OCSP response, and fills `shown`. */
  keepShown?: boolean
}

export interface Outbound extends AsyncDisposable {
  readonly fixtures: Fixtures
  readonly userAgent: string
  /**
   * Checks a URL, queries DNS once and checks every address. Throws AppError `source_blocked`, `source_dns_failed`,
   * `invalid_request`.
   */
  resolve(url: URL, signal: AbortSignal): Promise<Destination>
  /**
   * Connects to a destination of `resolve` and checks the certificate, within `timeoutMs`. Throws AppError
   * `source_unreachable`, `source_timeout`, `source_tls_invalid`.
   */
  connect(destination: Destination, options: ConnectOptions): Promise<Connection>
}

/** Disposing ends every open connection and every running DNS query. */
export function openOutbound(options: OutboundOptions): Outbound {
  for (const [name, { address }] of options.fixtures.hosts)
    if (isIP(address) === 0) throw new Error(`fixture host ${name}: ${address} is not an IP address`)
  const closing = new AbortController()
  const vetted = new WeakSet<Destination>()
  const sockets = new Set<TLSSocket>()
  const names = buildNames(options.seams?.nameServers)
  const contexts = buildContexts()
  return {
    fixtures: options.fixtures,
    userAgent: options.userAgent ?? 'Countersign-Source-Verification/1.0',
    async resolve(url, signal) {
      const destination = await resolve(url, options, names, AbortSignal.any([signal, closing.signal]))
      vetted.add(Object.freeze(destination))
      return destination
    },
    async connect(destination, { signal, timeoutMs, keepShown = false }) {
      if (!vetted.has(destination)) throw new Error('the destination was not resolved here')
      const bounds = { signal: AbortSignal.any([signal, closing.signal]), timeoutMs, keepShown }
      const secured = await connectTls(destination, options, contexts(destination.ca), bounds)
      const { socket } = secured
      sockets.add(socket.once('close', () => sockets.delete(socket)))
      // `closing` may have been aborted after the handshake and before this line.
      if (closing.signal.aborted) socket.destroy()
      closing.signal.throwIfAborted()
      return buildConnection(destination, secured, keepShown)
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('Outbound connections were closed.'))
      for (const socket of sockets) socket.destroy()
    },
  }
}

async function resolve(url: URL, options: OutboundOptions, names: Names, signal: AbortSignal): Promise<Destination> {
  const { fixtures, seams } = options
  // Checked here too, so that no caller can skip the check.
  const judged = parsePublicUrl(url.href, fixtures, url.href.length)
  const hostname = hostOf(judged)
  const fixture = fixtures.hosts.get(hostname)
  if (fixture)
    return { url: judged, hostname, addresses: [fixture.address], port: fixture.port, ca: fixtures.ca, fixture: true }
  // An IP address as host is never looked up, here or in Node, so it is checked like an address from DNS.
  const addresses = isIP(hostname) ? [hostname] : await names.findAddresses(hostname, signal)
  await vet(addresses, hostname, options, names, signal)
  const pinned = Object.freeze(addresses.slice(0, MAX_ADDRESSES))
  return { url: judged, hostname, addresses: pinned, port: seams?.port ?? 443, ca: seams?.ca, fixture: false }
}

/** One address that is not public refuses the name: its owner also controls which of its addresses is used. */
async function vet(
  addresses: readonly string[],
  hostname: string,
  options: OutboundOptions,
  names: Names,
  signal: AbortSignal,
): Promise<void> {
  const own = new Set([...(options.ownAddresses ?? interfaceAddresses)()].map(canonicalAddress))
  for (const address of addresses) {
    const why =
      specialBlockOf(address)?.name ??
      (own.has(canonicalAddress(address)) ? 'an address of this machine' : null) ??
      (isIP(address) === 6 && (await names.isNat64(address, signal)) ? "in this network's NAT64 prefix" : null)
    if (why === null) continue
    throw new AppError('source_blocked', `"${hostname}" has an address that is not public.`, {
      cause: new Error(`${address} is ${why}`),
    })
  }
}

function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? [])
}

/** A socket after its handshake, and who is at the other end. */
interface Secured {
  socket: TLSSocket
  peer: { address: string; port: number }
  ocspResponse: Buffer | null
}

async function connectTls(
  destination: Destination,
  options: OutboundOptions,
  secureContext: SecureContext,
  { signal, timeoutMs, keepShown }: Required<ConnectOptions>,
): Promise<Secured> {
  signal.throwIfAborted()
  const { hostname } = destination
  const targets = destination.addresses.map((address) => options.seams?.dial?.get(address) ?? address)
  using deadline = openDeadline(timeoutMs)
  const until = { signal: AbortSignal.any([signal, deadline.signal]) }
  const raw = connect(dialOptions(destination, targets))
  // These stay for the life of the sockets: an error without a listener would end the process.
  raw.on('error', () => {})
  let socket: TLSSocket | undefined
  try {
    await once(raw, 'connect', until)
    const peer = checkPeer(raw, hostname, targets)
    socket = connectOver(raw, hostname, { ...tlsOptions(hostname), secureContext, requestOCSP: keepShown })
    socket.on('error', () => {})
    let ocspResponse: Buffer | null = null
    // Emitted before `secureConnect`, with null where the server staples nothing.
    if (keepShown) socket.on('OCSPResponse', (response: Buffer | null) => (ocspResponse = response))
    await once(socket, 'secureConnect', until)
    if (!socket.authorized) throw new AppError('source_tls_invalid', `The certificate of "${hostname}" is not valid.`)
    return { socket, peer, ocspResponse }
  } catch (error) {
    socket?.destroy()
    raw.destroy()
    signal.throwIfAborted()
    if (deadline.signal.aborted) throw new AppError('source_timeout', `"${hostname}" does not answer.`)
    throw outboundFailure(error, hostname, socket)
  }
}

function dialOptions({ hostname, port }: Destination, targets: readonly string[]): TcpNetConnectOpts {
  return {
    // Node dials an IP address without calling `lookup`; this address was checked.
    host: isIP(hostname) ? (targets[0] ?? '') : hostname,
    port,
    lookup: pinnedLookup(targets),
    autoSelectFamily: true,
    // Node's default of 250 ms would give up on every distant address but the last.
    autoSelectFamilyAttemptTimeout: 2500,
  }
}

/** A lookup that always returns the checked addresses and never queries DNS. */
function pinnedLookup(targets: readonly string[]): LookupFunction {
  const answers = targets.map((address) => ({ address, family: isIP(address) }))
  const [first] = answers
  return (_hostname, { all }, callback) =>
    all || !first ? callback(null, answers) : callback(null, first.address, first.family)
}

/** The address that was really reached, checked before anything is sent to it. */
function checkPeer({ remoteAddress, remotePort }: Socket, hostname: string, targets: readonly string[]) {
  const address = canonicalAddress(remoteAddress ?? '')
  if (!targets.some((target) => canonicalAddress(target) === address))
    throw new AppError('source_blocked', `"${hostname}" was reached at another address than DNS gave.`, {
      cause: new Error(`reached ${address || 'nothing'}, pinned ${targets.join(', ')}`),
    })
  return { address, port: remotePort ?? 0 }
}

function buildConnection(
  { url, hostname }: Destination,
  { socket, peer, ocspResponse }: Secured,
  keepShown: boolean,
): Connection {
  // Read here, because a closed socket does not have them any more.
  const certificate = socket.getPeerX509Certificate()
  const protocol = socket.getProtocol()
  if (!certificate || !protocol)
    throw new AppError('source_unreachable', `The connection to "${hostname}" failed or broke off.`)
  const clients: Client[] = []
  return {
    socket,
    address: peer.address,
    tls: {
      protocol,
      cipher: socket.getCipher().name,
      fingerprint256: certificate.fingerprint256,
      validTo: certificate.validToDate,
    },
    shown: keepShown
      ? {
          port: peer.port,
          serverName: isIP(hostname) ? null : hostname,
          certificates: chainOf(certificate),
          ocspResponse,
        }
      : null,
    buildClient(options) {
      const client = new Client(url.origin, { ...options, ...ONE_REQUEST, connect: handOver(socket) })
      clients.push(client)
      return client
    },
    async [Symbol.asyncDispose]() {
      socket.destroy()
      await Promise.all(clients.map((client) => client.destroy(OVER)))
    },
  }
}

/** The certificate and the issuers that came with it, each once. */
function chainOf(leaf: X509Certificate): Buffer[] {
  const chain: Buffer[] = []
  for (let one: X509Certificate | undefined = leaf; one && chain.length < MAX_CHAIN; one = one.issuerCertificate) {
    if (chain.some((der) => der.equals(one.raw))) break
    chain.push(one.raw)
  }
  return chain
}

/** Certificates of one chain that are kept; real ones have three or four. */
const MAX_CHAIN = 16

/** Made once: an error for each connection would need a stack, which is useless here. */
const OVER = new Error('The connection has served its request.')

// HTTP/1.1 by undici's own parser; the request has "connection: close".
const ONE_REQUEST: Client.Options = { allowH2: false, useMilo: false, pipelining: 0 }

/** Gives undici this socket, once, instead of letting it dial. A connector must not call back before it returns. */
function handOver(socket: TLSSocket): buildConnector.connector {
  let handed = false
  return (_options, callback) => {
    const again = handed
    handed = true
    queueMicrotask(() =>
      again ? callback(new Error('A connection serves one request only.'), null) : callback(null, socket),
    )
  }
}

const MAX_ADDRESSES = 16
