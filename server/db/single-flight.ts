// One reading for many callers: what is asked again while it is under way, or soon after, is not read again. However many
// ask, a database gets one question at a time and about one in `keepMs`.

/**
 * A reading that failed is not kept: those who wait for it get its error, the next caller a new attempt.
 * @param keepMs milliseconds for which a reading is good, from its end
 * @param now milliseconds of a clock that does not go back
 */
export function shareReading<T>(
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
