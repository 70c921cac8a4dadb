// Waits for a condition that no event announces, by polling.
import { setTimeout as pause } from 'node:timers/promises'

/**
 * Milliseconds between two polls: a tenth of the time waited so far, within these bounds. Each poll takes time from the work that it
 * waits for, so a long wait polls seldom.
 */
const PAUSE_MS = { least: 5, most: 100, share: 0.1 }

/** Polls until the value is not false, 0, empty or undefined, and returns it. */
export async function until<T>(ask: () => T | Promise<T>): Promise<NonNullable<T>> {
  const begun = performance.now()
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    const waited = performance.now() - begun
    await pause(Math.min(PAUSE_MS.most, Math.max(PAUSE_MS.least, waited * PAUSE_MS.share)))
  }
}
