// One call of an operation over HTTP: where each member of the input goes, which credential is sent, and what the answer
// means.
import { parseObject, readFailure, readRetryAfter, readWithin, tooLong } from '../answer.ts'
import type { Clock } from '../clock.ts'
import { CountersignError } from '../error.ts'
import { clientFailure, createIdempotencyKey, type Fetch } from '../exchange.ts'
import { networkFailure } from '../network-failure.ts'
import type { ConditionalCallOptions, KeyedCallOptions, ProofCallOptions, RecoveryCallOptions } from './call-options.ts'
import type { Operation } from './operations.ts'

type AnyCallOptions = KeyedCallOptions & Partial<RecoveryCallOptions & ProofCallOptions> & ConditionalCallOptions

export interface Caller {
  /** With a slash at its end. */
  base: string
  apiKey: string | null
  fetch: Fetch
  clock: Clock
}

/**
 * Sends once, or, for an operation that waits, until the answer is there. Throws CountersignError for every other answer than
 * success.
 */
export async function call(
  { base, apiKey, fetch, clock }: Caller,
  operation: Operation,
  input: object,
  options: AnyCallOptions,
): Promise<unknown> {
  const idempotencyKey = operation.keyed ? (options.idempotencyKey ?? createIdempotencyKey()) : null
  const reference = { idempotencyKey, requestId: null, recoveryToken: null }
  if (operation.access === 'account' && apiKey === null)
    throw new CountersignError(clientFailure('api_key_missing', 'This needs an account: give the option apiKey.'))
  const deadline = clock.deadline(options.timeoutMs ?? READ_MS)
  const signal = options.signal ? AbortSignal.any([options.signal, deadline]) : deadline
  const { path, body, contentType } = place(operation, input)
  const credential = credentialOf(operation, apiKey, options)
  const waiting = operation.waits && { prefer: `wait=${MAX_WAIT_S}` }
  const headers = { ...contentType, ...credential, ...keyOf(idempotencyKey), ...conditionsOf(options), ...waiting }
  // A redirect would carry the credential or the input to an address that the caller has not chosen.
  const redirect = operation.access === 'public' && operation.method === 'GET' ? 'follow' : 'manual'
  const init: RequestInit = { method: operation.method, headers, body, redirect, signal }
  const { response, bytes } = await sendUntilDone(fetch, base + path, init, {
    waits: operation.waits,
    clock,
    signal,
  }).catch((cause: unknown) => {
    const failure = options.signal?.aborted
      ? clientFailure('aborted', 'The caller stopped waiting.', cause)
      : operation.waits && deadline.aborted
        ? clientFailure('deadline_exceeded', 'Not completed in time. Repeat the call to go on.', cause)
        : clientFailure('network_error', networkFailure(base, cause), cause)
    throw new CountersignError(failure, reference)
  })
  const answer = read(operation, response, bytes, clock.now())
  if (answer.failure) throw new CountersignError(answer.failure, reference)
  return answer.body
}

/** Repeats at each 202, after the time that the service asks for. */
async function sendUntilDone(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  { waits, clock, signal }: { waits: true | undefined; clock: Clock; signal: AbortSignal },
) {
  for (;;) {
    const answer = await send(fetch, url, init)
    if (!waits || answer.response.status !== 202) return answer
    await clock.sleep(readRetryAfter(answer.response, clock.now()) ?? PAUSE_MS, signal)
  }
}

async function send(fetch: Fetch, url: string, init: RequestInit) {
  const response = await fetch(url, init)
  return { response, bytes: await readWithin(response) }
}

/** The members that the path names go into the path; the others into the query of a GET, or into a JSON body. */
function place({ method, path: template, rawBody }: Operation, input: object) {
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined))
  const path = template.slice(1).replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest.get(name)
    rest.delete(name)
    return segment(String(value))
  })
  if (rawBody) return { path, body: rest.get('data') as RequestInit['body'], contentType: BYTES }
  if (method === 'GET') {
    const query = new URLSearchParams(Object.fromEntries([...rest].map(([name, value]) => [name, String(value)])))
    return { path: rest.size > 0 ? `${path}?${query}` : path }
  }
  return rest.size > 0 ? { path, body: JSON.stringify(Object.fromEntries(rest)), contentType: JSON_BODY } : { path }
}

/** `.` and `..` cannot be escaped in a URL: as a name they would lead to another operation. */
function segment(value: string): string {
  if (value === '' || value === '.' || value === '..')
    throw new CountersignError(clientFailure('invalid_input', `"${value}" cannot be part of an address.`))
  return encodeURIComponent(value)
}

function credentialOf({ access }: Operation, apiKey: string | null, options: AnyCallOptions): Record<string, string> {
  if (access === 'account') return { authorization: `Bearer ${apiKey}` }
  if (access === 'recovery') return { authorization: `Bearer ${options.recoveryToken}` }
  return access === 'proof' ? { 'payment-signature': String(options.paymentSignature) } : {}
}

function keyOf(key: string | null): Record<string, string> {
  return key === null ? {} : { 'idempotency-key': key }
}

function conditionsOf({ ifMatch, ifNoneMatch }: ConditionalCallOptions): Record<string, string> {
  return { ...(ifMatch && { 'if-match': ifMatch }), ...(ifNoneMatch && { 'if-none-match': ifNoneMatch }) }
}

function read(operation: Operation, response: Response, bytes: Uint8Array | null, now: number) {
  const { status } = response
  if (bytes === null) return { failure: tooLong(response) }
  if (status === 304 && operation.rawAnswer) return { body: null }
  if (status === 204) return { body: undefined }
  const isSuccess = status === 200 || status === 201 || status === 202
  if (isSuccess && operation.rawAnswer) return { body: { data: bytes, etag: response.headers.get('etag') ?? '' } }
  const body = parseObject(bytes)
  return isSuccess && body ? { body } : { failure: readFailure(response, body, now) }
}

const BYTES = { 'content-type': 'application/octet-stream' }
const JSON_BODY = { 'content-type': 'application/json' }
/** The limit for one answer that needs no waiting, body included. A service that takes longer counts as unreachable. */
const READ_MS = 60_000
/** Seconds for which the service may hold one answer of an operation that waits; it holds none longer. */
const MAX_WAIT_S = 25
/** Milliseconds before the next try where a 202 has no Retry-After. */
const PAUSE_MS = 1000
