// Whether the certificate of a time-stamp authority leads to a trusted root. pkijs reads certificates and checks each signature; the
// path is searched here with bounds, because the certificates in a reply are a stranger's: pkijs follows them without limit, and does
// not hold an authority to the length of path that its certificate allows.
import type * as Pkijs from 'pkijs'

export interface PathFault {
  problem: string
  /** Nothing is wrong, but no given root leads to the certificate. */
  isUntrusted: boolean
}

const BASIC_CONSTRAINTS = '2.5.29.19'
const KEY_USAGE = '2.5.29.15'
const EXTENDED_KEY_USAGE = '2.5.29.37'
const TIME_STAMPING = '1.3.6.1.5.5.7.3.8'
/** Critical extensions that are checked here, or that limit nothing that is asked here: policies are not asked for. */
const KNOWN: ReadonlySet<string> = new Set([BASIC_CONSTRAINTS, KEY_USAGE, EXTENDED_KEY_USAGE, '2.5.29.32'])
const SHA_1: ReadonlySet<string> = new Set(['1.2.840.113549.1.1.5', '1.2.840.10045.4.1'])
/** Certificates above the authority's own, the root included. */
const MAX_ABOVE = 6
/** Signatures of certificates that are checked for one reply. */
const MAX_CHECKS = 32

/** Bits of the first byte of a key usage. */
const DIGITAL_SIGNATURE = 0x80
const NON_REPUDIATION = 0x40
const KEY_CERT_SIGN = 0x04

type Certificate = Pkijs.Certificate

/**
 * Why a certificate is not that of a trusted authority at a time, or null.
 * @param others certificates that came with it
 */
export async function certificatePathFault(
  pki: typeof Pkijs,
  signer: Certificate,
  others: readonly Certificate[],
  trusted: readonly Certificate[],
  at: Date,
): Promise<PathFault | null> {
  const own = signerFault(signer, at)
  if (own) return { problem: own, isUntrusted: false }
  const found: { fault?: string } = {}
  let checks = 0

  async function leads(certificate: Certificate, above: number): Promise<boolean> {
    if (trusted.some((root) => isSameCertificate(root, certificate))) return true
    if (above > MAX_ABOVE) return false
    for (const issuer of [...trusted, ...others]) {
      if (!certificate.issuer.isEqual(issuer.subject) || isSameCertificate(issuer, certificate)) continue
      if (checks++ >= MAX_CHECKS || !(await isSignedBy(certificate, issuer))) continue
      const fault = issuerFault(pki, issuer, above - 1, at)
      if (fault === null && (await leads(issuer, above + 1))) return true
      found.fault ??= fault ?? undefined
    }
    return false
  }

  if (await leads(signer, 1)) return null
  if (found.fault) return { problem: found.fault, isUntrusted: false }
  const issuer = nameOf(signer.issuer)
  return {
    problem: `no trusted root leads to the certificate of the authority, which ${issuer} issued`,
    isUntrusted: true,
  }
}

function signerFault(signer: Certificate, at: Date): string | null {
  const subject = 'the certificate of the authority'
  const time = validityFault(signer, at)
  if (time) return `${subject} ${time}`
  const usage = extensionOf(signer, EXTENDED_KEY_USAGE)
  const purposes = (usage?.parsedValue as Pkijs.ExtKeyUsage | undefined)?.keyPurposes ?? []
  if (!usage?.critical || purposes.length !== 1 || purposes[0] !== TIME_STAMPING)
    return `${subject} is not for time stamping alone (critical extended key usage timeStamping)`
  const bits = keyUsage(signer)
  if (bits !== null && !(bits & (DIGITAL_SIGNATURE | NON_REPUDIATION))) return `${subject} is not for signatures`
  return criticalFault(signer, subject)
}

/** @param below how many authorities are between the issuer and the signer */
function issuerFault(pki: typeof Pkijs, issuer: Certificate, below: number, at: Date): string | null {
  const subject = `the certificate of ${nameOf(issuer.subject)}`
  const time = validityFault(issuer, at)
  if (time) return `${subject} ${time}`
  const constraints = extensionOf(issuer, BASIC_CONSTRAINTS)?.parsedValue
  if (!(constraints instanceof pki.BasicConstraints) || !constraints.cA) return `${subject} is not that of an issuer`
  const bits = keyUsage(issuer)
  if (bits !== null && !(bits & KEY_CERT_SIGN)) return `${subject} is not for signing certificates`
  const { pathLenConstraint: most } = constraints
  const length = typeof most === 'number' ? most : most?.valueBlock.valueDec
  if (length !== undefined && below > length) return `${subject} allows ${length} authorities below it, not ${below}`
  return criticalFault(issuer, subject)
}

function validityFault({ notBefore, notAfter }: Certificate, at: Date): string | null {
  if (at < notBefore.value)
    return `was not valid yet at ${at.toISOString()}: it is from ${notBefore.value.toISOString()}`
  if (at > notAfter.value) return `had expired at ${at.toISOString()}: it ended ${notAfter.value.toISOString()}`
  return null
}

function criticalFault({ extensions = [] }: Certificate, subject: string): string | null {
  const unknown = extensions.find(({ critical, extnID }) => critical && !KNOWN.has(extnID))
  return unknown ? `${subject} has the critical extension ${unknown.extnID}, which is not known` : null
}

/** Names may be the same by chance, so the signature decides. One over SHA-1 can be forged. */
async function isSignedBy(certificate: Certificate, issuer: Certificate): Promise<boolean> {
  if (SHA_1.has(certificate.signatureAlgorithm.algorithmId)) return false
  try {
    return await certificate.verify(issuer)
  } catch {
    return false
  }
}

function extensionOf({ extensions = [] }: Certificate, id: string) {
  return extensions.find(({ extnID }) => extnID === id)
}

/** The first byte of the key usage; null where the certificate does not limit it. */
function keyUsage(certificate: Certificate): number | null {
  const usage = extensionOf(certificate, KEY_USAGE)?.parsedValue
  if (!usage) return null
  return (usage as { valueBlock: { valueHexView: Uint8Array } }).valueBlock.valueHexView[0] ?? 0
}

function isSameCertificate(one: Certificate, other: Certificate): boolean {
  return one.tbsView.length === other.tbsView.length && one.tbsView.every((byte, i) => byte === other.tbsView[i])
}

const COMMON_NAME = '2.5.4.3'
const ORGANISATION = '2.5.4.10'

/** The common name, or else the organisation, without characters that move the cursor. */
export function nameOf({ typesAndValues }: Pkijs.RelativeDistinguishedNames): string {
  const valueOfType = (type: string) => typesAndValues.find((one) => one.type === type)?.value.valueBlock.value
  const name = String(valueOfType(COMMON_NAME) ?? valueOfType(ORGANISATION) ?? '')
  return name.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ').slice(0, 200) || 'an authority without a name'
}
