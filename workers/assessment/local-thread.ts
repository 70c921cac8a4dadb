// The thread of the local assessor. It holds one loaded verifier, which serves one claim at a time.
import { assessLocally, type LocalAssessment } from './local/assessment.ts'
import { loadVerifier, type Verifier } from './local/verifier.ts'
import { readVerifierFiles } from './local/weights.ts'

let loaded: Promise<Verifier> | undefined
const verifier = () => (loaded ??= loadVerifier(readVerifierFiles()))

/** Loads the verifier, so that the first claim does not wait for it. */
export async function load(): Promise<void> {
  await verifier()
}

export interface LocalTask {
  claim: string
  text: string
}

/** The verdict on a claim, and what it was derived from. */
export async function assess({ claim, text }: LocalTask): Promise<LocalAssessment> {
  return assessLocally(await verifier(), text, claim)
}
