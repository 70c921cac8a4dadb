// A completed result and its receipt: what is hashed into what, and what a change in between is named by.
import type { VerificationResult } from '../../client/verification.ts'
import { type Forgery, issueResult, jcs, keys, SEED } from '../client/issuer.ts'
import { change } from '../client/tampering.ts'

interface Case {
  name: string
  result: unknown
  /** What `result_sha256` and `subject_sha256` are the SHA-256 of; of good results. */
  canonical_result?: string
  canonical_envelope?: string
  /** Every check that fails, at least; none for a good one. */
  fails: string[]
}

function good(name: string, result: VerificationResult): Case {
  const { receipt, ...rest } = result
  return { name, result, canonical_result: jcs(rest), canonical_envelope: jcs(receipt.envelope), fails: [] }
}

/** Changed after it was signed. */
function changed(path: string, value: unknown, fails: string[]): Case {
  const result = issueResult()
  change(result, path.split('.'), () => value)
  return { name: `another ${path}`, result, fails }
}

/** Signed as it is, and wrong. */
function forged(name: string, forgery: Forgery, fails: string[]): Case {
  return { name, result: issueResult(forgery), fails }
}

const zeros = '0'.repeat(64)
const reordered = () => {
  const { receipt, ...rest } = issueResult()
  return Object.fromEntries([['receipt', receipt], ...Object.entries(rest).reverse()]) as unknown as VerificationResult
}

export const resultVectors = {
  seed_hex: SEED.toString('hex'),
  pins: keys,
  cases: [
    good('as it is', issueResult()),
    good('with its members in another order', reordered()),
    changed('receipt.verification', 'a note for people, which nothing signs', []),
    changed('claim', 'Another claim', ['result_sha256']),
    changed('claim_support', 'supports', ['result_sha256']),
    changed('source.normalized_text', 'x', ['result_sha256', 'text_sha256', 'evidence_quotes']),
    changed('evidence.0.start', 13, ['result_sha256', 'evidence_quotes']),
    changed('payment.transaction', '0x1', ['result_sha256', 'envelope_agrees']),
    changed('receipt.envelope.issued_at', '2026-11-20T09:00:04Z', ['canonical_envelope']),
    changed('receipt.envelope.result_sha256', zeros, ['canonical_envelope', 'result_sha256']),
    changed('receipt.attestation.serial', 43, ['signature', 'receipt_hash']),
    changed('receipt.attestation.subject_sha256', zeros, ['signature', 'receipt_hash', 'subject_sha256']),
    forged('an envelope of another result', { envelope: (e) => Object.assign(e, { result_sha256: zeros }) }, [
      'result_sha256',
    ]),
    forged('an attestation of something else', { attestation: { subject_sha256: zeros } }, ['subject_sha256']),
    forged('an envelope that an account invented and had attested', { attestation: { requested_by: 'mallory' } }, [
      'purchase_attestation',
    ]),
    forged(
      'offsets in UTF-16 units, after a character of two',
      {
        result: (r) => {
          for (const item of r.evidence) Object.assign(item, { start: item.start + 1, end: item.end + 1 })
        },
      },
      ['evidence_quotes'],
    ),
  ] satisfies Case[],
}
