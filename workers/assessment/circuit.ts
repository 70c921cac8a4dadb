// A circuit breaker for a provider that does not answer. Closed, it passes every call. After several failures in a row
// it opens for a while; then one call probes the provider, and its outcome closes or opens the circuit.

/** The provider cannot do the work now. The caller postpones it and retries after `retryAfterSeconds`. */
export class AssessorBusyError extends Error {
  override name = 'AssessorBusyError'
  readonly retryAfterSeconds: number
  constructor(reason: string, retryAfterSeconds: number, options?: ErrorOptions) {
    super(reason, options)
    this.retryAfterSeconds = Math.max(1, Math.ceil(retryAfterSeconds))
  }
}

/** What a provider's failure says about later calls. */
export interface Failure {
  /** The provider's own Retry-After, in milliseconds from now. */
  retryAfterMs?: number
  /** Waiting does not help soon: a wrong key, an unknown model. */
  lasting?: boolean
}

/** Permission for one call. The caller reports its outcome by one of these. */
export interface Leave {
  succeeded(): void
  failed(failure: Failure): void
  /** The outcome says nothing about the provider. */
  abandoned(): void
}

export interface Circuit {
  /** Throws AssessorBusyError while the circuit is open. */
  enter(): Leave
  /** Until when it is open, in milliseconds since the epoch; null when calls go through. */
  readonly opensAt: number | null
}

/** @param now milliseconds since the epoch */
export function buildCircuit(now: () => number = Date.now): Circuit {
  let failures = 0
  let openings = 0
  let openUntil: number | null = null
  let probing = false

  const open = (retryAfterMs: number) => {
    const ms = Math.max(retryAfterMs, FIRST_MS * 2 ** Math.min(openings, 10))
    openUntil = now() + Math.min(ms, LONGEST_MS)
    openings++
  }
  const leave = (isProbe: boolean): Leave => ({
    succeeded() {
      failures = openings = 0
      openUntil = null
      if (isProbe) probing = false
    },
    failed({ retryAfterMs = 0, lasting = false }) {
      failures++
      if (isProbe) probing = false
      // Calls that began before the circuit opened are ignored.
      else if (openUntil !== null) return
      if (isProbe || lasting || failures >= FAILURES || retryAfterMs > MAX_PAUSE_MS) open(retryAfterMs)
    },
    abandoned() {
      if (isProbe) probing = false
    },
  })
  return {
    enter() {
      if (openUntil === null) return leave(false)
      const left = openUntil - now()
      if (left > 0) throw new AssessorBusyError('the circuit is open', left / 1000)
      if (probing) throw new AssessorBusyError('another call tries whether the provider is back', PROBE_SECONDS)
      probing = true
      return leave(true)
    },
    get opensAt() {
      return openUntil !== null && openUntil > now() ? openUntil : null
    },
  }
}

/** In a row. */
const FAILURES = 5
const FIRST_MS = 15_000
const LONGEST_MS = 300_000
/** A provider that asks for a longer pause than this gets no calls until the pause is over. Milliseconds. */
export const MAX_PAUSE_MS = 5000
const PROBE_SECONDS = 2
