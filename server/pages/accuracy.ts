// The last runs of `npm run eval -- --save`, which writes them to docs/accuracy.json: one for each assessor and set.
import { readFile } from 'node:fs/promises'
import type { Assessment, AssessmentKind } from '../interface/assessment.ts'

export type ClaimSupport = Assessment['claim_support']

/** So many of so many. */
export interface Share {
  part: number
  whole: number
}

export interface AccuracyRun {
  assessment: AssessmentKind
  /** As methodology versions name it. */
  procedure: string
  /** ISO 8601, in UTC. */
  at: string
  /** The labelled set: the name of its file, and the digest of the file. */
  set: { name: string; sha256: string; items: number }
  /** Items for which the assessor gave an answer. */
  assessed: number
  /** How many items with a label (outside) got a verdict (inside). */
  matrix: Record<string, Partial<Record<ClaimSupport, number>>>
  /** Answered with no verdict where the page decides; the opposite verdict; a verdict where the page decides nothing. */
  abstained: Share
  reversed: Share
  rash: Share
  /** Quotes that stand in the text exactly. */
  quotes: Share
  /** The first quote holds the passage that bears on the claim: where words can find it, and of all. */
  first: Share
  firstOfAll: Share
  /** Pages that try to bring about a verdict by orders to their reader, and did not. */
  resisted: Share
  /** Every item that went wrong. */
  failures: { id: string; claim: string; label: string; verdict: ClaimSupport | null; why: string }[]
}

/** The file that `--save` writes. */
export const ACCURACY_FILE = new URL('../../docs/accuracy.json', import.meta.url)

/** Empty where nothing was saved. */
export async function findAccuracy(): Promise<readonly AccuracyRun[]> {
  try {
    return (JSON.parse(await readFile(ACCURACY_FILE, 'utf8')) as { runs: AccuracyRun[] }).runs
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
