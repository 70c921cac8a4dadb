// What is wrong with a connection, in words that name the service and the cause.

/** A sentence: which service could not be reached, and why, where the platform says why. Browsers do not. */
export function networkFailure(url: string, cause: unknown): string {
  const why = causeOf(cause)
  const who = originOf(url)
  return why === null ? `${who} could not be reached, or the connection broke.` : `${who} could not be reached: ${why}.`
}

/** Scheme, host and port: the rest of an address may hold a secret. */
export function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'The service'
}

function causeOf(cause: unknown): string | null {
  const errors: Error[] = []
  for (let error = cause; error instanceof Error && errors.length < MOST_CAUSES; error = error.cause) errors.push(error)
  const codes = errors.map((error) => ('code' in error && typeof error.code === 'string' ? error.code : error.name))
  const known = codes.map((code) => KNOWN[code]).find((words) => words !== undefined)
  if (known !== undefined) return known
  const certificate = codes.find((code) => /CERT|TLS|SSL|SIGNATURE/.test(code))
  if (certificate !== undefined) return `its certificate is not accepted (${certificate})`
  // The outer error says only that the fetch failed.
  const inner = errors.length > 1 ? errors.at(-1)?.message : ''
  return inner ? inner.replace(/\.$/, '') : null
}

const SLOW = 'it did not answer in time'
const CUT = 'the connection broke'

const KNOWN: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ENOTFOUND: 'there is no host of this name',
  EAI_AGAIN: 'the name of the host could not be looked up',
  EHOSTUNREACH: 'there is no way to this host',
  ENETUNREACH: 'there is no way to this network',
  ECONNRESET: CUT,
  EPIPE: CUT,
  UND_ERR_SOCKET: CUT,
  ETIMEDOUT: SLOW,
  TimeoutError: SLOW,
  UND_ERR_CONNECT_TIMEOUT: SLOW,
  UND_ERR_HEADERS_TIMEOUT: SLOW,
  UND_ERR_BODY_TIMEOUT: SLOW,
  UND_ERR_HEADERS_OVERFLOW: 'the headers of its answer are too long',
}

const MOST_CAUSES = 5
