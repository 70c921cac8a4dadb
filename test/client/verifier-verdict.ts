// The verdict of the local verifier, with its weights, on the page of the packages that tests make.
import { assessLocally } from '../../workers/assessment/local/assessment.ts'
import { loadVerifier } from '../../workers/assessment/local/verifier.ts'
import { readVerifierFiles } from '../../workers/assessment/local/weights.ts'
import { PAGE_TEXT, type Verdict } from './package-issuer.ts'
import { verdict } from './replayed.ts'

export async function verdictOfVerifier(): Promise<Verdict> {
  await using verifier = await loadVerifier(readVerifierFiles())
  const { claim, methodology_version } = verdict
  const { quotes, claim_support, explanation, risk_flags } = await assessLocally(verifier, PAGE_TEXT, claim)
  return { claim, methodology_version, quotes, claim_support, explanation, risk_flags: [...risk_flags] }
}
