// Single flight: calls that overlap share one call, and its result serves for a while. However many callers there are, the
// database gets one query at a time, and about one per `keepMs`.

/**
 * Wraps `read` so that calls share its result. A failure reaches the callers that wait for it and is not kept: the next call
 * tries again.
 * @param keepMs milliseconds for which a result is reused after it arrived
 * @param now milliseconds of a monotonic clock
 */
export function singleFlight<T>(
  read: () => Promise<T>,
  keepMs: number,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let known: Promise<T> | null = null
  let goodUntil = Number.POSITIVE_INFINITY
  return () => {
    if (known && now() < goodUntil) return known
    goodUntil = Number.POSITIVE_INFINITY
    const reading = read()
    known = reading
    reading.then(
      () => {
        goodUntil = now() + keepMs
      },
      () => {
        known = null
      },
    )
    return reading
  }
}
