// Makes certificate authorities and certificates in memory, for tests and for the demo's page. They are written here, because a package for
// it loads two hundred files.
import { createPrivateKey, createPublicKey, generateKeyPair, randomBytes, sign, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { promisify } from 'node:util'
import { ipv6Groups } from './outbound/addresses.ts'

/** PEM texts. */
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
    critical('basicConstraints', sequence(TRUE)),
    critical('keyUsage', bits(1, KEY_USAGE.keyCertSign | KEY_USAGE.cRLSign)),
  ])
}

/** A certificate for host names or IP addresses, signed by the CA, or self-signed without one. */
export async function makeCertificate(
  ca: Certificate | undefined,
  names: readonly [string, ...string[]],
  options: CertificateOptions = {},
): Promise<Certificate> {
  const altNames = names.map((name) => (isIP(name) ? der(0x87, addressBytes(name)) : der(0x82, Buffer.from(name))))
  return make(names[0], options, ca, [
    critical('basicConstraints', sequence()),
    critical('keyUsage', bits(5, KEY_USAGE.digitalSignature | KEY_USAGE.keyEncipherment)),
    extension('extKeyUsage', sequence(oid(options.usage === 'client' ? 'clientAuth' : 'serverAuth'))),
    ...(options.commonNameOnly ? [] : [extension('subjectAltName', sequence(...altNames))]),
  ])
}

async function make(
  commonName: string,
  { rsaBits, hash = 'sha256', notBefore, notAfter }: CertificateOptions,
  issuer: Certificate | undefined,
  extensions: Uint8Array[],
): Promise<Certificate> {
  const { privateKey } = rsaBits
    ? await promisify(generateKeyPair)('rsa', { modulusLength: rsaBits })
    : await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' })
  const signer = issuer ? createPrivateKey(issuer.key) : privateKey
  const algorithm =
    signer.asymmetricKeyType === 'rsa' ? sequence(oid(`rsa ${hash}`), NULL) : sequence(oid(`ec ${hash}`))
  const signed = sequence(
    der(0xa0, integer(2)),
    // Positive, and as short as it can be.
    der(0x02, Buffer.from([0x40]), randomBytes(8)),
    algorithm,
    nameOf(issuer ? new X509Certificate(issuer.cert).subject.replace(/^CN=/, '') : commonName),
    sequence(time(notBefore ?? new Date(Date.now() - DAY_MS)), time(notAfter ?? new Date(Date.now() + 30 * DAY_MS))),
    nameOf(commonName),
    createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  )
  const certificate = sequence(signed, algorithm, bits(0, sign(hash, signed, signer)))
  return {
    cert: new X509Certificate(certificate).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** A value of DER (ITU-T X.690): its tag, the length of its content, and the content. */
function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const size: number[] = []
  for (let rest = content.length; rest > 0; rest >>= 8) size.unshift(rest & 0xff)
  const length = content.length < 0x80 ? [content.length] : [0x80 | size.length, ...size]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

const sequence = (...parts: Uint8Array[]) => der(0x30, ...parts)
const integer = (value: number) => der(0x02, Buffer.from([value]))
/** @param unused bits at the end that do not count */
const bits = (unused: number, bytes: Uint8Array | number) =>
  der(0x03, Buffer.from([unused]), typeof bytes === 'number' ? Buffer.from([bytes]) : bytes)
const oid = (name: keyof typeof OIDS) => der(0x06, Buffer.from(OIDS[name], 'hex'))
const nameOf = (common: string) => sequence(der(0x31, sequence(oid('commonName'), der(0x0c, Buffer.from(common)))))
/** With two digits of the year, which RFC 5280 demands until 2049. */
const time = (date: Date) => der(0x17, Buffer.from(`${date.toISOString().slice(2, 19).replace(/\D/g, '')}Z`))
const extension = (name: keyof typeof OIDS, value: Uint8Array) => sequence(oid(name), der(0x04, value))
const critical = (name: keyof typeof OIDS, value: Uint8Array) => sequence(oid(name), TRUE, der(0x04, value))

const TRUE = der(0x01, Buffer.from([0xff]))
const NULL = der(0x05)
const KEY_USAGE = { digitalSignature: 0x80, keyEncipherment: 0x20, keyCertSign: 0x04, cRLSign: 0x02 }
const OIDS = {
  commonName: '550403',
  basicConstraints: '551d13',
  keyUsage: '551d0f',
  extKeyUsage: '551d25',
  subjectAltName: '551d11',
  serverAuth: '2b06010505070301',
  clientAuth: '2b06010505070302',
  'ec sha256': '2a8648ce3d040302',
  'ec sha1': '2a8648ce3d0401',
  'rsa sha256': '2a864886f70d01010b',
  'rsa sha1': '2a864886f70d010105',
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number))
  return Buffer.from(ipv6Groups(address).flatMap((group) => [group >> 8, group & 0xff]))
}
