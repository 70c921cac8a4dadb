// The loop for all periodic work on the database, such as beats, scans and rounds.
import { setTimeout as pause } from 'node:timers/promises'

/**
 * Runs `work` over and over until disposed, with a pause of `ms` milliseconds before the first run and between the end of
 * one run and the start of the next. Runs never overlap, and a slow run is not followed by a burst of runs.
 *
 * Only disposal ends the loop: an error of `work` goes to `onError`, and the next run follows. Disposing waits for the
 * current run.
 * @param options `immediate`: the first run starts at once.
 */
export function every(
  ms: number,
  work: () => unknown,
  onError: (error: unknown) => void,
  { immediate = false }: { immediate?: boolean } = {},
): AsyncDisposable {
  const closing = new AbortController()
  const { signal } = closing

  async function loop() {
    if (!immediate) await untilNext()
    while (!signal.aborted) {
      try {
        await work()
      } catch (error) {
        onError(error)
      }
      await untilNext()
    }
  }

  /** Resolves after `ms`, or at once when the loop is being disposed. */
  function untilNext() {
    return pause(ms, undefined, { signal }).catch(() => {})
  }

  const running = loop()
  return {
    async [Symbol.asyncDispose]() {
      closing.abort()
      await running
    },
  }
}
