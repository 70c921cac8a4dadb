// Judges the certificates that a server showed, with Node's own cryptography: name, time of validity, and who signed whom.
import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { rootCertificates } from 'node:tls'
import { Note } from '../checks.ts'
import type { CertificateCheck } from '../evidence/replay.ts'
import { Fault } from '../evidence/steps.ts'

export const certificateCheck: CertificateCheck = (chain, hostname, at) => {
  const certificates = chain.map((der, i) => readCertificate(der, i + 1))
  const [leaf] = certificates
  const last = certificates.at(-1)
  if (!leaf || !last) throw new Fault('there is none')
  const named = isIP(hostname) ? leaf.checkIP(hostname) : leaf.checkHost(hostname, { subject: 'never' })
  if (named === undefined)
    throw new Fault(`certificate 1 is for ${leaf.subjectAltName ?? 'no host'}, not for ${hostname}`)
  for (const [i, { validFrom, validTo }] of certificates.entries())
    if (!(Date.parse(validFrom) <= at.getTime() && at.getTime() <= Date.parse(validTo)))
      throw new Fault(
        `certificate ${i + 1} is valid from ${validFrom} to ${validTo}, and the connection was made at ${at.toISOString()}`,
      )
  for (const [i, one] of certificates.slice(0, -1).entries())
    if (!isSignedBy(one, certificates[i + 1]!))
      throw new Fault(`certificate ${i + 1} is not signed by certificate ${i + 2}`)
  return new Note(endOf(last))
}

function readCertificate(der: Uint8Array, n: number): X509Certificate {
  try {
    return new X509Certificate(der)
  } catch (cause) {
    throw new Fault(`certificate ${n} cannot be read`, { cause })
  }
}

function isSignedBy(one: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return one.checkIssued(issuer) && one.verify(issuer.publicKey)
  } catch {
    // A key of a kind that OpenSSL does not know.
    return false
  }
}

/** Read at the first use. */
let roots: X509Certificate[] | undefined

/** Where the chain ends: the authorities of this Node are those of today, so it is no fault if they have none for it. */
function endOf(last: X509Certificate): string {
  roots ??= rootCertificates.map((pem) => new X509Certificate(pem))
  const root =
    roots.find((one) => one.fingerprint256 === last.fingerprint256) ?? roots.find((one) => isSignedBy(last, one))
  const name = (one: X509Certificate) => /^(?:CN|O)=(.*)/m.exec(one.subject)?.[1] ?? 'an authority without a name'
  if (root) return `the chain ends at ${name(root)}, an authority that this Node knows`
  return isSignedBy(last, last)
    ? `the chain ends at ${name(last)}, which signed itself and is no authority that this Node knows`
    : `the chain ends at ${name(last)}, whose issuer this Node does not know`
}
