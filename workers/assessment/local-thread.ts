// The thread of the local assessor. It holds one loaded verifier, which serves one claim at a time.
import { assessLocally, type LocalAssessment } from './local/assessment.ts'
import { loadVerifier, type Verifier } from './local/verifier.ts'
import { readVerifierFiles } from './local/weights.ts'

let own: Promise<Verifier> | undefined
const verifier = () => (own ??= loadVerifier(readVerifierFiles()))

/** Loads the verifier, so that no claim waits for it, when the thread before this one has loaded its own. `turns` begins with a 1. */
export async function load({ turn, turns }: { turn: number; turns: Int32Array }): Promise<void> {
  Atomics.wait(turns, turn, 0)
  await verifier().finally(() => Atomics.notify(turns, turn + 1, Atomics.add(turns, turn + 1, 1) + 1))
}

export interface LocalTask {
  claim: string
  text: string
}

/** The verdict on a claim, and what it was derived from. */
export async function assess({ claim, text }: LocalTask): Promise<LocalAssessment> {
  return assessLocally(await verifier(), text, claim)
}
