// Whether other workers consider this worker alive. If not, its jobs run elsewhere, so it must abort its work.

export interface Liveness {
  /** A signal for work that begins now: aborted when this worker was taken for dead, or by `signal`. */
  limit(signal: AbortSignal | undefined): AbortSignal
  /** Aborts current work. Work that begins later gets a new signal. */
  lose(): void
}

export function openLiveness(): Liveness {
  let current = new AbortController()
  return {
    limit: (signal) => (signal ? AbortSignal.any([current.signal, signal]) : current.signal),
    lose() {
      const lost = current
      current = new AbortController()
      lost.abort(new Error('This worker was taken for dead, and its jobs run elsewhere.'))
    },
  }
}
