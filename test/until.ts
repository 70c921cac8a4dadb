// Waits for a condition that no event announces, by asking again.
import { setTimeout as pause } from 'node:timers/promises'

/** Milliseconds between two questions. A loop without a pause takes a whole processor from what it waits for. */
const PAUSE_MS = 10

/** Asks until the answer is neither false, 0, empty nor undefined, and returns it. */
export async function until<T>(ask: () => T | Promise<T>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    await pause(PAUSE_MS)
  }
}
