// Verifies replies of time-stamp authorities (RFC 3161): that an authority whose certificate leads to a given root has signed, at a
// time, that certain bytes existed. The packages pkijs and asn1js read the replies; they are loaded at the first use.
// Revocation of certificates is not checked: a reply is verified for the time that it names, without a network.
import type * as Pkijs from 'pkijs'
import { joinBytes } from './bytes.ts'
import { certificatePathFault, nameOf } from './certificate-path.ts'

export interface Timestamp {
  /** The time that the authority has signed: ISO 8601, UTC. */
  time: string
  /** The name in the authority's certificate. */
  authority: string
  /** The number of the reply at its authority, in hex. */
  serial: string
}

/** `isUntrusted`: all is right, except that no given root leads to the certificate of the authority. */
export type TimestampVerdict =
  | { ok: true; stamp: Timestamp }
  | { ok: false; problem: string; isUntrusted: boolean; stamp: Timestamp | null }

export interface TimestampVerifier {
  /**
   * Verifies one reply, and throws for none.
   * @param reply the whole reply (TimeStampResp) in DER
   * @param data the bytes that it is about, not their digest
   * @param options `nonce`: the one of the request, without zeros in front
   */
  verify(reply: Uint8Array, data: Uint8Array, options?: { nonce?: Uint8Array }): Promise<TimestampVerdict>
}

/** As long as a reply may be; usual are 2 to 7 KB. */
export const MAX_REPLY_BYTES = 65_536
/** An authority and all above it are seldom more than four. */
const MAX_CERTIFICATES = 16

/** A verifier for many replies. @param roots certificates of trusted authorities, PEM; those that cannot be read are left out */
export async function openTimestampVerifier(roots: string): Promise<TimestampVerifier> {
  const pki = await loadPki()
  const trusted = readPem(roots).flatMap((der) => readCertificate(pki, der) ?? [])
  return {
    verify: async (reply, data, options = {}) => {
      try {
        return await judge(pki, trusted, reply, data, options.nonce)
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        return { ok: false, problem: `the reply cannot be read: ${reason}`, isUntrusted: false, stamp: null }
      }
    },
  }
}

/** Verifies one reply, as TimestampVerifier. */
export async function verifyTimestamp(
  reply: Uint8Array,
  data: Uint8Array,
  roots: string,
  options: { nonce?: Uint8Array } = {},
): Promise<TimestampVerdict> {
  return (await openTimestampVerifier(roots)).verify(reply, data, options)
}

async function loadPki(): Promise<typeof Pkijs> {
  try {
    return await import('pkijs')
  } catch (cause) {
    throw new Error('Timestamps are verified with the packages pkijs and asn1js: install both.', { cause })
  }
}

type Pki = typeof Pkijs

async function judge(
  pki: Pki,
  trusted: Pkijs.Certificate[],
  reply: Uint8Array,
  data: Uint8Array,
  nonce: Uint8Array | undefined,
): Promise<TimestampVerdict> {
  const bad = (problem: string): TimestampVerdict => ({ ok: false, problem, isUntrusted: false, stamp: null })
  if (reply.length > MAX_REPLY_BYTES) return bad(`the reply is longer than ${MAX_REPLY_BYTES} bytes`)
  if (lengthOf(reply) !== reply.length) return bad('the reply is not one value in DER')
  const response = pki.TimeStampResp.fromBER(copyOf(reply))
  const refusal = refusalOf(response)
  if (refusal) return bad(refusal)
  if (response.timeStampToken?.contentType !== SIGNED_DATA) return bad('the reply holds no signed token')
  const signed = new pki.SignedData({ schema: response.timeStampToken.content })
  const content = signed.encapContentInfo
  if (content.eContentType !== TST_INFO || !content.eContent)
    return bad('the token is not one of a time-stamp authority')
  const info = pki.TSTInfo.fromBER(content.eContent.getValue())
  const wrong = (await infoFault(info, data)) ?? nonceFault(info, nonce)
  if (wrong) return bad(wrong)
  if (signed.signerInfos.length !== 1) return bad('the token has not exactly one signature')
  if ((signed.certificates?.length ?? 0) > MAX_CERTIFICATES) return bad('the token holds too many certificates')
  const [by] = signed.signerInfos
  const attributes = by!.signedAttrs?.attributes ?? []
  const outside = formFault(by!, attributes)
  if (outside) return bad(outside)
  const { signerCertificate: certificate, problem } = await signatureOf(signed, data)
  if (problem !== undefined) return bad(problem)
  if (!(await namesCertificate(attributes, certificate)))
    return bad('the token names another certificate as its signer')
  const stamp: Timestamp = {
    time: info.genTime.toISOString(),
    authority: nameOf(certificate.subject),
    serial: hexOf(new Uint8Array(info.serialNumber.valueBlock.valueHexView)),
  }
  const others = (signed.certificates ?? []).filter((one) => one instanceof pki.Certificate)
  const path = await certificatePathFault(pki, certificate, others, trusted, info.genTime)
  return path === null ? { ok: true, stamp } : { ok: false, ...path, stamp: path.isUntrusted ? stamp : null }
}

const SIGNED_DATA = '1.2.840.113549.1.7.2'
const TST_INFO = '1.2.840.113549.1.9.16.1.4'
const CONTENT_TYPE = '1.2.840.113549.1.9.3'
const SIGNING_CERTIFICATE = '1.2.840.113549.1.9.16.2.12'
const SIGNING_CERTIFICATE_V2 = '1.2.840.113549.1.9.16.2.47'
/** Number of the tag. */
const SEQUENCE = 16
const SHA_256 = '2.16.840.1.101.3.4.2.1'
const SHA_2: Readonly<Record<string, string>> = {
  [SHA_256]: 'SHA-256',
  '2.16.840.1.101.3.4.2.2': 'SHA-384',
  '2.16.840.1.101.3.4.2.3': 'SHA-512',
}

/** Status 0 is granted, 1 granted with changes; both come with a token. */
const GRANTED = 1

function refusalOf({ status }: Pkijs.TimeStampResp): string | null {
  if (status.status <= GRANTED) return null
  const words = status.statusStrings?.map((one) => String(one.valueBlock.value)).join(' ')
  return `the authority refused (status ${status.status}${words ? `: ${words.slice(0, 200)}` : ''})`
}

/** Why what was signed is not about these bytes, or null. */
async function infoFault(info: Pkijs.TSTInfo, data: Uint8Array): Promise<string | null> {
  if (info.version !== 1) return `the token has version ${info.version}, which is not known`
  if (info.extensions?.some(({ critical }) => critical)) return 'the token has a critical extension that is not known'
  const { hashAlgorithm, hashedMessage } = info.messageImprint
  if (hashAlgorithm.algorithmId !== SHA_256) return 'the token is about a digest that is not SHA-256'
  const digest = await digestOf('SHA-256', data)
  return isSame(hashedMessage.valueBlock.valueHexView, digest) ? null : 'the token is about another digest'
}

function nonceFault({ nonce }: Pkijs.TSTInfo, asked: Uint8Array | undefined): string | null {
  if (!asked) return null
  if (!nonce) return 'the token has no nonce, so it may be an old one'
  return isSame(withoutZeros(nonce.valueBlock.valueHexView), withoutZeros(asked))
    ? null
    : 'the token has another nonce than the request'
}

/** Without signed attributes, bytes that were signed for another purpose could pass as a token. */
function formFault({ digestAlgorithm }: Pkijs.SignerInfo, attributes: readonly Pkijs.Attribute[]): string | null {
  if (attributes.length === 0) return 'the token has no signed attributes'
  if (!SHA_2[digestAlgorithm.algorithmId]) return 'the token is signed over a digest that is not SHA-2'
  const types = attributes.map(({ type }) => type)
  if (new Set(types).size !== types.length) return 'the token has a signed attribute twice'
  const [type] = attributes.find((one) => one.type === CONTENT_TYPE)?.values ?? []
  return type?.valueBlock?.toString() === TST_INFO ? null : 'the signature is about another type of content'
}

async function signatureOf(signed: Pkijs.SignedData, data: Uint8Array) {
  const failed = (problem: string) => ({ problem, signerCertificate: null as never })
  try {
    const options = { signer: 0, data: copyOf(data), extendedMode: true } as const
    const { signatureVerified, signerCertificate } = await signed.verify(options)
    if (!signatureVerified || !signerCertificate) return failed('the signature of the token is wrong')
    return { problem: undefined, signerCertificate }
  } catch (error) {
    return failed(`the signature of the token is wrong: ${(error as Error).message}`)
  }
}

/** RFC 3161 demands that the signature covers a digest of the signer's certificate, so that none can be put in its place. */
async function namesCertificate(attributes: readonly Pkijs.Attribute[], certificate: Pkijs.Certificate) {
  const der = new Uint8Array(certificate.toSchema(false).toBER())
  for (const { type, values } of attributes) {
    if (type !== SIGNING_CERTIFICATE && type !== SIGNING_CERTIFICATE_V2) continue
    const first = values[0]?.valueBlock.value[0]?.valueBlock.value[0]?.valueBlock.value ?? []
    const hasAlgorithm = type === SIGNING_CERTIFICATE_V2 && first[0]?.idBlock.tagNumber === SEQUENCE
    const named = hasAlgorithm ? SHA_2[String(first[0].valueBlock.value[0]?.valueBlock)] : undefined
    const algorithm = type === SIGNING_CERTIFICATE ? 'SHA-1' : hasAlgorithm ? named : 'SHA-256'
    const stated = first[hasAlgorithm ? 1 : 0]?.valueBlock.valueHexView
    if (!algorithm || !stated || !isSame(stated, await digestOf(algorithm, der))) return false
    return true
  }
  return false
}

function readCertificate(pki: Pki, der: Uint8Array<ArrayBuffer>): Pkijs.Certificate | null {
  try {
    return pki.Certificate.fromBER(der)
  } catch {
    return null
  }
}

/** The bytes of each certificate in a PEM text. */
function readPem(text: string): Uint8Array<ArrayBuffer>[] {
  const blocks = text.matchAll(/-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+?)-----END CERTIFICATE-----/g)
  return [...blocks].flatMap(([, body = '']) => {
    try {
      return Uint8Array.from(atob(body.replace(/\s/g, '')), (char) => char.charCodeAt(0))
    } catch {
      return []
    }
  })
}

/** Length of the one definite-length value that begins the bytes, with its header; NaN for another form. */
function lengthOf(bytes: Uint8Array): number {
  const first = bytes[1] ?? Number.NaN
  if (first < 0x80) return 2 + first
  const count = first - 0x80
  if (!(count >= 1 && count <= 3)) return Number.NaN
  return bytes.subarray(2, 2 + count).reduce((length, byte) => length * 256 + byte, 0) + 2 + count
}

const copyOf = (bytes: Uint8Array): ArrayBuffer => joinBytes([bytes]).buffer as ArrayBuffer
const hexOf = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
const isSame = (one: Uint8Array, other: Uint8Array) => hexOf(one) === hexOf(other)

async function digestOf(algorithm: string, data: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest(algorithm, copyOf(data)))
}

function withoutZeros(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte !== 0)
  return first < 0 ? new Uint8Array() : bytes.subarray(first)
}
