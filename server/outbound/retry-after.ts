// The Retry-After header of a response (RFC 9110 §10.2.3), read as seconds.

/**
 * Seconds from now, at least 1. Null for a header that is absent, repeated, or neither seconds nor a date.
 * @param value as undici gives headers: an array where the header came more than once
 * @param nowMs milliseconds since the epoch
 */
export function retryAfterOf(value: string | string[] | undefined, nowMs: number): number | null {
  if (typeof value !== 'string') return null
  if (/^\d{1,9}$/.test(value.trim())) return Math.max(1, Number(value))
  const date = Date.parse(value)
  return Number.isNaN(date) ? null : Math.max(1, Math.ceil((date - nowMs) / 1000))
}
