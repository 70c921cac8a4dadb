// Whether others take this worker for alive. When they do not, its jobs run elsewhere, so what it is doing is to end.

export interface Standing {
  /** A signal for work that begins now: aborted when this worker was taken for dead, or by `signal`. */
  limit(signal: AbortSignal | undefined): AbortSignal
  /** Ends what is under way. What begins later has a new standing. */
  lose(): void
}

export function openStanding(): Standing {
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
