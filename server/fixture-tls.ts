// Makes certificate authorities and certificates in memory, for tests and for the demo's page.
import { isIP } from 'node:net'
import { generate } from 'selfsigned'

/** PEM texts. For a leaf under an intermediate, `cert` holds the chain that the server sends, leaf first. */
export interface Certificate {
  cert: string
  key: string
}

export interface CertificateOptions {
  notBefore?: Date
  notAfter?: Date
  /** Signature hash. Default sha256. */
  hash?: 'sha256' | 'sha1'
  /** Size of an RSA key, used in place of a P-256 key; the CA must be RSA too. */
  rsaBits?: number
  usage?: 'server' | 'client'
  /** Leaves out the SAN, so that only the common name holds the host. */
  commonNameOnly?: boolean
}

const DAY_MS = 86_400_000

/** A CA that can sign servers, or (given a parent) an intermediate of it. Valid from yesterday for a month. */
export async function makeCa(
  options: { name?: string; parent?: Certificate; rsaBits?: number } = {},
): Promise<Certificate> {
  const name = options.name ?? (options.parent ? 'Test intermediate' : 'Test root')
  return make(name, options, options.parent, [
    { name: 'basicConstraints', cA: true, critical: true },
    { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
  ])
}

/** A certificate for host names or IP addresses, signed by the CA, or self-signed without one. */
export async function makeCertificate(
  ca: Certificate | undefined,
  names: readonly [string, ...string[]],
  options: CertificateOptions = {},
): Promise<Certificate> {
  const altNames = names.map((name) =>
    isIP(name) ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
  )
  return make(names[0], options, ca, [
    { name: 'basicConstraints', cA: false, critical: true },
    { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
    { name: 'extKeyUsage', ...(options.usage === 'client' ? { clientAuth: true } : { serverAuth: true }) },
    ...(options.commonNameOnly ? [] : [{ name: 'subjectAltName' as const, altNames }]),
  ])
}

type Extensions = NonNullable<NonNullable<Parameters<typeof generate>[1]>['extensions']>

async function make(
  commonName: string,
  options: CertificateOptions,
  issuer: Certificate | undefined,
  extensions: Extensions,
): Promise<Certificate> {
  const made = await generate([{ name: 'commonName', value: commonName }], {
    ...(options.rsaBits ? { keyType: 'rsa', keySize: options.rsaBits } : { keyType: 'ec' }),
    algorithm: options.hash ?? 'sha256',
    notBeforeDate: options.notBefore ?? new Date(Date.now() - DAY_MS),
    notAfterDate: options.notAfter ?? new Date(Date.now() + 30 * DAY_MS),
    ...(issuer ? { ca: issuer } : {}),
    extensions,
  })
  return { cert: `${made.cert.trim()}\n`, key: made.private }
}
