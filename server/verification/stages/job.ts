// The job of a verification in the queue: its key, its attempts and its priority.
import type { State } from '../request.ts'

/** Attempts of a verification's job; after them the sweep fails the request or gives it a new job. */
export const MAX_JOB_ATTEMPTS = 5

/** The key of a request's one job. */
export const jobKeyOf = (requestId: string) => `verify:${requestId}`

/**
 * The one job of a request; stored again, it replaces the waiting one. A request whose work has begun runs before the
 * others, so that this work is not lost.
 */
export function jobOf({ id, priority, state }: { id: string; priority: number; state: State }) {
  return {
    key: jobKeyOf(id),
    maxAttempts: MAX_JOB_ATTEMPTS,
    priority: state === 'accepted' ? priority : 0,
  }
}
