// Waits for a condition that no event announces, by polling.
import { setTimeout as pause } from 'node:timers/promises'

/** Milliseconds between two polls. A loop without a pause would take a whole processor from the work that it waits for. */
const PAUSE_MS = 10

/** Polls until the value is not false, 0, empty or undefined, and returns it. */
export async function until<T>(ask: () => T | Promise<T>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    await pause(PAUSE_MS)
  }
}
