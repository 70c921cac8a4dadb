// A thread of the verifier, without weights, in which two pages take all memory or all time. Every other claim is answered at once.
// Only the first thread gets through its loading.
import type { LocalAssessment } from '../../../workers/assessment/local/assessment.ts'
import type { LocalTask } from '../../../workers/assessment/local-thread.ts'
import { hoard, spin } from '../../threads/tasks.ts'

export const load = ({ turn }: { turn: number }) => (turn === 0 ? undefined : new Promise(() => {}))

export function assess({ text }: LocalTask): LocalAssessment {
  if (text.includes('all memory')) hoard()
  if (text.includes('all time')) spin(new Int32Array(new SharedArrayBuffer(4)))
  const reading = { windows: [], supports: 0, contradicts: 0, lean: null }
  return { claim_support: 'insufficient_evidence', explanation: 'None.', quotes: [], risk_flags: [], reading }
}
