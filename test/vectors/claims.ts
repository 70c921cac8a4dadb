// A completed result of several claims: what is checked beside what `result.ts` has, claim by claim.
import type { ClaimsResult } from '../../client/verification.ts'
import { type Forgery, issueClaimsResult, jcs, keys, SEED } from '../client/issuer.ts'
import { change } from '../client/tampering.ts'

interface Case {
  name: string
  result: unknown
  /** What `result_sha256` is the SHA-256 of; of good results. */
  canonical_result?: string
  /** Every check that fails; none for a good one. */
  fails: string[]
}

type Draft = Omit<ClaimsResult, 'receipt'>

function good(name: string, change?: (draft: Draft) => void): Case {
  const result = issueClaimsResult(change ? { result: change } : {})
  const { receipt: _, ...rest } = result
  return { name, result, canonical_result: jcs(rest), fails: [] }
}

/** Changed after it was signed. */
function changed(path: string, value: unknown, fails: string[]): Case {
  const result = issueClaimsResult()
  change(result, path.split('.'), () => value)
  return { name: `another ${path}`, result, fails }
}

/** Signed as it is, and wrong. */
function forged(name: string, result: Forgery<Draft>['result'], fails: string[]): Case {
  return { name, result: issueClaimsResult({ result }), fails }
}

const as = (draft: Draft, n: number, members: object) => Object.assign(draft.claims[n]!, members)

export const claimsVectors = {
  seed_hex: SEED.toString('hex'),
  pins: keys,
  cases: [
    good('as it is'),
    good('one claim, without a context', (draft) => {
      delete draft.context
      draft.claims = draft.claims.slice(0, 1)
    }),
    good('words of the context in another case, with other accents and function words beside them', (draft) => {
      draft.context = 'BRIDGE OF A\u015fHBY'
      as(draft, 1, { claim_as_read: 'The bridge of the ashby was closed in 1931.' })
    }),
    changed('claims.1.claim', 'It was closed in 1930.', ['result_sha256', 'claims_as_read']),
    changed('claims.2.claim_support', 'insufficient_evidence', ['result_sha256']),
    changed('context', 'The bridge of Kelby was built by the county.', ['result_sha256', 'claims_as_read']),
    changed('claims.1.claim_as_read', 'The bridge of Kelby was closed in 1931.', ['result_sha256', 'claims_as_read']),
    changed('claims.1.evidence.0.start', 13, ['result_sha256', 'evidence_quotes']),
    forged(
      'a word that is added, and stands nowhere',
      (draft) => as(draft, 1, { claim_as_read: 'The bridge of Ashby was never closed in 1931.' }),
      ['claims_as_read'],
    ),
    forged('a claim that is read otherwise without a context', (draft) => delete draft.context, ['claims_as_read']),
    forged(
      'a claim that is read as it is, and says so',
      (draft) => as(draft, 0, { claim_as_read: draft.claims[0]?.claim }),
      ['claims_as_read'],
    ),
    forged('an evidence id twice', (draft) => Object.assign(draft.claims[1]!.evidence[0]!, { evidence_id: 'e1' }), [
      'evidence_quotes',
    ]),
    forged(
      'a verdict of the second claim without its quote',
      (draft) => as(draft, 1, { claim_support: 'supports', evidence: [] }),
      ['supports_has_support'],
    ),
    forged('a verdict where only words were compared', (draft) => as(draft, 2, { claim_support: 'contradicts' }), [
      'literal_scope_only_mentions',
      'contradicts_has_contradiction',
    ]),
  ] satisfies Case[],
}
