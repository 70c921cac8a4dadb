// An operation is one thing a caller can ask, as data and a function. HTTP routes, the OpenAPI document and every other
// protocol are made from these, so none of them is written by hand, and none can forget a limit or the output check.
import { randomInt } from 'node:crypto'
import { z } from 'zod'
import type { Caller } from './accounts/callers.ts'
import type { Budget } from './accounts/rate-limit.ts'
import type { Scope } from './accounts/scopes.ts'
import type { Api } from './context.ts'
import { BatchOverflowError } from './db/batch.ts'
import { type Tx, transact } from './db/pool.ts'
import { type Entry, enter, permit } from './entrance.ts'
import { AppError, type ErrorCode } from './errors.ts'
import type { State } from './verification/request.ts'

/** What a protocol adapter found beside the input: headers in HTTP, arguments and `_meta` in MCP. */
export interface Credentials {
  /** The address the call came from, for rate limits. */
  address: string
  /** There when the protocol has counted the call already (see entrance.ts). */
  entry?: Entry
  bearer?: string
  idempotencyKey?: string
  /** PAYMENT-SIGNATURE as it came, or the object MCP carries. */
  payment?: unknown
  /** How long the caller is willing to wait for completion, 0 to 25. */
  waitSeconds: number
  /** Aborts when the caller is gone. */
  signal: AbortSignal
  /** Aborts when the caller takes the call back: no payment is bound by it from then on. Over HTTP nobody can. */
  withdrawn?: AbortSignal
  /** Id of the request, if this call makes it; a key was made from it. */
  requestId?: string
  /** Told, in order, how far the request has come, for as long as the call waits for it. */
  watch?: (state: State) => void
  /** Entity tags of If-Match and If-None-Match as they came. */
  ifMatch?: string
  ifNoneMatch?: string
}

export interface Call {
  api: Api
  credentials: Credentials
}

/** A call of an operation that asks for a scope. */
export interface AccountCall extends Call {
  caller: Caller
}

/** An answer with another status than 200, or with headers of its own. */
export class Reply<T> {
  readonly body: T
  readonly status: number
  readonly headers: Record<string, string>
  constructor(body: T, options: { status?: number; headers?: Record<string, string> } = {}) {
    this.body = body
    this.status = options.status ?? 200
    this.headers = options.headers ?? {}
  }

  /** A body that is JSON already, too large to be parsed only to be checked: a test holds it to the output schema. */
  static json<T>(text: string, headers: Record<string, string> = {}): Reply<T> {
    const type = { 'content-type': 'application/json; charset=utf-8' }
    return new Reply(Buffer.from(text) as T, { headers: { ...type, ...headers } })
  }
}

interface Description<N extends string, I extends z.ZodObject, O extends z.ZodType> {
  name: N
  summary: string
  description?: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** As in OpenAPI: `/v1/things/{name}`. Path parameters are members of the input. */
  path: string
  /** Whose rules for errors and statuses apply (see http/routes.ts). */
  family: 'verification' | 'control'
  /** Members of the input that HTTP takes from a raw body instead of JSON: `application/octet-stream`. */
  rawBody?: { member: string; limit: number }
  /** Not counted: discovery has no other answer than 200. */
  unlimited?: true
  /** What a call of an account is counted as; `calls` where nothing is said. */
  budget?: Budget
  /** The body of success is bytes (`application/octet-stream`), not JSON. */
  rawAnswer?: true
  /** If-Match and If-None-Match count. */
  conditional?: true
  /** Statuses of success; 200 where nothing is said. */
  statuses?: readonly number[]
  /** Codes it may fail with, beside those that any call may (see http/openapi.ts). */
  errors?: readonly ErrorCode[]
  input: I
  /** The body of success. */
  output: O
}

/** What the caller must show: nothing, a payment, a recovery token, a payment made before, or an API key with this scope. */
type PublicAccess = { access: 'public' | 'payment' | 'recovery' | 'proof' }
type AccountAccess = { access: 'account'; scope: Scope }

/** Answers from one transaction: read-only for GET. The output is checked inside it, so a wrong answer changes nothing. */
type Transaction<I extends z.ZodObject, O extends z.ZodType, C> = {
  kind: 'transaction'
  run(input: z.output<I>, call: C & { tx: Tx }): Promise<z.input<O> | Reply<z.input<O>>>
}

/** Answers by transactions of its own, because they are shared with other calls; see receipts/chain.ts. */
type Exchange<I extends z.ZodObject, A, C> = {
  kind: 'exchange'
  run(input: z.output<I>, call: C): Promise<A>
}

// biome-ignore lint/suspicious/noExplicitAny: the catalogue holds operations of every input, output and answer
type Anything = any
export type Operation = Description<string, z.ZodObject, z.ZodType> &
  (PublicAccess | AccountAccess) &
  (Transaction<Anything, Anything, Anything> | Exchange<Anything, Anything, Anything>)

/** Each keeps the types of one operation apart from those of the next. */
export function defineOperation<const N extends string, I extends z.ZodObject, O extends z.ZodType>(
  operation: Description<N, I, O> & PublicAccess & Transaction<I, O, Call>,
) {
  return operation
}

export function defineExchange<const N extends string, I extends z.ZodObject, O extends z.ZodType, A>(
  operation: Description<N, I, O> & PublicAccess & Exchange<I, A, Call>,
) {
  return operation
}

export function defineAccountOperation<const N extends string, I extends z.ZodObject, O extends z.ZodType>(
  operation: Description<N, I, O> & AccountAccess & Transaction<I, O, AccountCall>,
) {
  return operation
}

export function defineAccountExchange<const N extends string, I extends z.ZodObject, O extends z.ZodType>(
  operation: Description<N, I, O> & AccountAccess & Exchange<I, z.input<O> | Reply<z.input<O>>, AccountCall>,
) {
  return operation
}

/**
 * The one path every call takes, whichever protocol brought it: counted, authenticated, permitted, and only then read.
 * Throws AppError for what the caller can act on. A caller without the right learns that before anything about the input,
 * which `read` brings.
 */
export async function execute(operation: Operation, read: () => unknown, call: Call): Promise<unknown> {
  const { api, credentials } = call
  const entry = credentials.entry ?? (await enter(operation, credentials, api))
  const caller = await permit(operation, entry, api)
  const known = caller ? { ...call, caller } : call
  const input = parseInput(operation.input, read())
  if (operation.kind === 'exchange') return operation.run(input, known)
  return transact(api.db, async (tx) => checkOutput(operation.output, await operation.run(input, { ...known, tx })), {
    readOnly: operation.method === 'GET',
  })
}

function checkOutput(schema: z.ZodType, answer: unknown): unknown {
  if (!(answer instanceof Reply)) return schema.parse(answer)
  if (answer.body instanceof Buffer) return answer
  return new Reply(schema.parse(answer.body), { status: answer.status, headers: answer.headers })
}

/** Longest wait that is advised when too much is waiting, in seconds; callers are spread over it. */
const MAX_RETRY_AFTER = 4

/** For `catch`: what a full queue throws becomes AppError `capacity_exceeded`, anything else goes on as it is. */
export function refuseOverflow(error: unknown): never {
  if (!(error instanceof BatchOverflowError)) throw error
  throw new AppError('capacity_exceeded', 'More is waiting than can be taken on.', {
    cause: error,
    headers: { 'retry-after': String(randomInt(1, MAX_RETRY_AFTER + 1)) },
  })
}

/**
 * A whole number of a path or a query, in decimal digits and in no other spelling: no sign, no blank, no leading zero, no
 * exponent. Protocols whose arguments are JSON send it as a number.
 * @param least at least 0
 */
export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER) {
  const read = (given: unknown) => (typeof given === 'string' && DIGITS.test(given) ? Number(given) : given)
  return z.preprocess(read, z.int().min(least).max(most))
}

const DIGITS = /^(0|[1-9]\d{0,15})$/

const MAX_ISSUES = 5

function parseInput(schema: z.ZodObject, raw: unknown) {
  const parsed = schema.safeParse(raw)
  if (parsed.success) return parsed.data
  const issues = parsed.error.issues
    .slice(0, MAX_ISSUES)
    .map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`)
  // An unrecognised key is repeated in zod's message; a caller's text may not be well-formed, and may be long.
  throw new AppError('invalid_request', issues.join('; ').toWellFormed().slice(0, 500))
}
