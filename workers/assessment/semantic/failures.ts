// What goes wrong with a model's server: how it is told from what a stranger's text causes, and what is said of it, to operators
// and in the log.
import { readBody } from '../../../client/bytes.ts'
import { AppError, causeCode } from '../../../server/errors.ts'
import { UnusableAnswerError } from './answer.ts'
import { AssessorBusyError } from './circuit.ts'

/** The names of the settings that name the server, its key and the model. */
export interface ServerSettings {
  server: string
  key: string
  model: string
}

/** The server failed, and may answer later. */
export class ProviderError extends Error {
  override name = 'ProviderError'
  readonly outcome: Outcome
  readonly retryAfterMs: number | undefined
  constructor(outcome: Outcome, retryAfterMs: number | undefined, cause: unknown) {
    super(`the model's server: ${outcome.replaceAll('_', ' ')}`, { cause })
    this.outcome = outcome
    this.retryAfterMs = retryAfterMs
  }
}

export type Outcome =
  | 'ok'
  | 'unusable'
  | 'declined'
  | 'timeout'
  | 'unreachable'
  | 'rate_limited'
  | 'overloaded'
  | 'denied'
  | 'rejected'

export function outcomeOf(error: unknown): Outcome {
  if (error instanceof ProviderError) return error.outcome
  if (error instanceof UnusableAnswerError) return 'unusable'
  return error instanceof AppError && error.cause === undefined ? 'declined' : 'rejected'
}

/** The SDKs' errors, and what the platform throws when a reply breaks off or is no JSON. */
export function classify(error: unknown): unknown {
  if (error instanceof AppError || error instanceof UnusableAnswerError || error instanceof AssessorBusyError)
    return error
  const status = statusOf(error)
  if (status === undefined) return new ProviderError('unreachable', undefined, error)
  const retryAfterMs = retryAfter((error as { headers?: Headers }).headers)
  if (status === 429) return new ProviderError('rate_limited', retryAfterMs, error)
  if (status >= 500 || status === 408 || status === 409) return new ProviderError('overloaded', retryAfterMs, error)
  if (LASTING.has(status)) return new ProviderError('denied', undefined, error)
  return new AppError('assessment_failed', 'The model cannot be asked about this text. Nothing was charged.', {
    cause: error,
    retryable: false,
  })
}

function statusOf(error: unknown): number | undefined {
  const status = error instanceof Error && 'status' in error ? error.status : undefined
  return typeof status === 'number' ? status : undefined
}

/** The server takes no such request: 400 or 422, for example for a parameter that it does not know. */
export const isRejection = (error: unknown) =>
  error instanceof AppError && (statusOf(error.cause) === 400 || statusOf(error.cause) === 422)

export const messageOf = (error: unknown) =>
  error instanceof AppError && error.cause instanceof Error ? error.cause.message : ''

/** What went wrong with our own question, so that its text may be quoted. */
export function inWords(error: unknown, settings: ServerSettings): string {
  if (error instanceof UnusableAnswerError)
    return `it answered, but not in the form that was asked for (${error.message}): ${JSON.stringify(error.written)}`
  if (!(error instanceof ProviderError)) {
    const status = error instanceof AppError ? statusOf(error.cause) : undefined
    if (status === undefined)
      return error instanceof AppError ? 'the model declined the trial question' : 'it gives no answer in time'
    return `it refuses the request with HTTP ${status}: ${messageOf(error)}`
  }
  const status = statusOf(error.cause)
  if (status === 401 || status === 403) return `it refuses the key with HTTP ${status}; check ${settings.key}`
  if (status === 402) return 'there is no credit left at the provider (HTTP 402)'
  if (status === 404) return `it knows no such path or model (HTTP 404); check ${settings.server} and ${settings.model}`
  if (error.outcome === 'timeout') return 'it gives no answer in time'
  if (status !== undefined) return `it answers HTTP ${status}`
  const code = causeCode(error.cause)
  return `${code === 'SyntaxError' ? 'its answer is not JSON' : `it cannot be reached (${code})`}; check ${settings.server}`
}

/**
 * The parts of a refusal that may be logged: its message, and every field that is not a plain name, may quote the question.
 */
export function refusalIn(error: unknown) {
  const status = statusOf(error)
  if (status === undefined) return {}
  const { type, requestID } = error as { type?: unknown; requestID?: unknown }
  const name = (value: unknown) => (typeof value === 'string' && PLAIN_NAME.test(value) ? value : null)
  return { status, type: name(type), provider_request_id: name(requestID) }
}

/** Seconds, or a date; milliseconds in Anthropic's own header. Undefined when there is none that can be read. */
function retryAfter(headers: Headers | undefined): number | undefined {
  const ms = Number(headers?.get('retry-after-ms') ?? Number.NaN)
  if (ms >= 0) return ms
  const given = headers?.get('retry-after')?.trim()
  if (!given) return undefined
  if (/^\d+(?:\.\d+)?$/.test(given)) return Number(given) * 1000
  const at = Date.parse(given)
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}

/** A server may repeat the key that it was sent; what it says is shown to operators, and on /readyz. */
export function withoutKey(problem: string, key: string): string {
  const text = key.length < SHORTEST_KEY ? problem : problem.replaceAll(key, '(key hidden)')
  return text.slice(0, LONGEST_PROBLEM)
}

/** A fetch that reads the whole reply, and fails where it is too long, so that no server can fill the memory. */
export const boundedFetch: typeof fetch = async (input, init) => {
  const reply = await fetch(input, init)
  const bytes = await readBody(reply, LONGEST_REPLY_BYTES)
  return new Response(bytes.length > 0 ? bytes : null, reply)
}

/** A missing or wrong key, no money, no permission, an unknown model. */
const LASTING: ReadonlySet<number> = new Set([401, 402, 403, 404])
const PLAIN_NAME = /^[\w-]{1,64}$/
/** Shorter texts are stand-ins for servers that need no key. */
const SHORTEST_KEY = 8
const LONGEST_PROBLEM = 400
const LONGEST_REPLY_BYTES = 4 * 1024 * 1024
