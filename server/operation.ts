// An operation is one thing that a caller can ask for, as data and a function. HTTP routes, the OpenAPI document and MCP tools
// are made from operations, so every protocol applies the limits and checks the answers.
import { z } from 'zod'
import {
  type AccountAccess,
  authorize,
  type CountedCall,
  type Counting,
  countCall,
  type PublicAccess,
} from './access.ts'
import type { Caller } from './accounts/authentication.ts'
import type { Api } from './context.ts'
import { BatchOverflowError } from './db/batch.ts'
import { type Tx, transact } from './db/pool.ts'
import { AppError, type ErrorCode, retrySoon } from './errors.ts'
import type { Through } from './payments/discovery.ts'
import type { VerificationAnswer } from './verification/answer-body.ts'
import type { State } from './verification/request.ts'

/**
 * The credentials of the caller, as far as the protocol has them: from headers in HTTP, from arguments and `_meta` in
 * MCP.
 */
export interface Credentials {
  /** The address that the call came from, for rate limits. */
  address: string
  bearer?: string
  /** PAYMENT-SIGNATURE unchanged, or the object from MCP. */
  payment?: unknown
  /** Present if the protocol has counted the call already (see access.ts). */
  counted?: CountedCall
}

/** Longest time that a call waits for completion; Heroku's router gives up at 30 s. */
export const MAX_WAIT_SECONDS = 25

/** Options of a call other than its input. */
export interface CallOptions {
  idempotencyKey?: string
  /** Id of the request, if this call creates it; the idempotency key was derived from it. */
  requestId?: string
  /** Hash of the key of a request that was found by its payment; it then counts in place of `idempotencyKey`. */
  keyHash?: Buffer
  /** Entity tags of If-Match and If-None-Match as they came. */
  ifMatch?: string
  ifNoneMatch?: string
  /** How long to wait for completion: 0 to MAX_WAIT_SECONDS. */
  waitSeconds: number
  /** Aborts when the caller of a call that waits disconnects. */
  signal: AbortSignal
  /** Aborts when the caller cancels the call: no payment is bound by it after that. HTTP has no way to cancel. */
  withdrawn?: AbortSignal
  /** Called with each state of the request, in order, while the call waits for it. */
  watch?: (state: State) => void
}

/** Aborts when the longest wait of a call is over; null for a call that does not wait. @param draining of the process */
export function endOfWait({ waitSeconds, signal }: CallOptions, draining: AbortSignal): AbortSignal | null {
  return waitSeconds > 0 ? AbortSignal.any([AbortSignal.timeout(waitSeconds * 1000), signal, draining]) : null
}

export interface Call {
  api: Api
  credentials: Credentials
  options: CallOptions
}

/** A call of an operation that requires a scope. */
export interface AccountCall extends Call {
  caller: Caller
}

/** A plain answer. Operations return one for another status than 200 or for headers of their own; else the body alone. */
export class Reply<T> {
  /** A Buffer is sent unchanged: bytes, or JSON that is too large to parse it only for a check. Tests check such JSON. */
  readonly body: T | Buffer
  readonly status: number
  readonly headers: Record<string, string>
  constructor(body: T | Buffer, options: ReplyOptions = {}) {
    this.body = body
    this.status = options.status ?? 200
    this.headers = options.headers ?? {}
  }

  /** A body that is bytes already. */
  static bytes(body: Buffer, options: ReplyOptions = {}): Reply<never> {
    return new Reply<never>(body, options)
  }

  /** A body that is JSON text already. */
  static json(text: string, headers: Record<string, string> = {}): Reply<never> {
    const type = { 'content-type': 'application/json; charset=utf-8' }
    return Reply.bytes(Buffer.from(text), { headers: { ...type, ...headers } })
  }
}

type ReplyOptions = { status?: number; headers?: Record<string, string> }

interface Description<N extends string, I extends z.ZodObject, O extends z.ZodType> extends Counting {
  name: N
  summary: string
  description?: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** As in OpenAPI: `/v1/watchdog/{name}`. Path parameters are members of the input. */
  path: string
  /** Selects the rules for errors and statuses (see http/routes.ts). */
  family: 'verification' | 'control'
  /** Members of the input that HTTP takes from a raw body instead of JSON: `application/octet-stream`. */
  rawBody?: { member: string; limit: number }
  /** The body of success is bytes of this media type, not JSON. */
  rawAnswer?: string
  /** If-Match and If-None-Match apply. */
  conditional?: true
  /** Statuses of success; default 200. */
  statuses?: readonly number[]
  /** Codes it may fail with, beside those of any call (see http/openapi.ts). */
  errors?: readonly ErrorCode[]
  input: I
  /** A body that has this member is of this shape instead. */
  otherwise?: { member: string; input: z.ZodObject }
  /** The largest body in bytes; by default the service's. */
  bodyLimit?: number
  /** The body of success. */
  output: O
  /** The body of 202, which has Retry-After and Location. The call can wait for the end of the work. */
  pending?: z.ZodType
}

/**
 * Runs in one transaction, which is read-only for GET. The output is checked inside it, so a wrong answer changes
 * nothing.
 */
type Transaction<I extends z.ZodObject, O extends z.ZodType, C> = {
  kind: 'transaction'
  run(input: z.output<I>, call: C & { tx: Tx }): Promise<z.input<O> | Reply<z.input<O>>>
}

/** Opens its own transactions, because it shares them with other calls; see receipts/chain.ts. */
type Exchange<I extends z.ZodObject, A, C> = {
  kind: 'exchange'
  run(input: z.output<I>, call: C): Promise<A>
}

type PlainExchange<I extends z.ZodObject, O extends z.ZodType, C> = Exchange<I, z.input<O> | Reply<z.input<O>>, C>

// biome-ignore lint/suspicious/noExplicitAny: the catalogue holds operations of every input, output and answer
type Anything = any
type AnyDescription = Description<string, z.ZodObject, z.ZodType>

/** Answers with a body, as it is. */
export type PlainOperation = AnyDescription &
  (PublicAccess | AccountAccess) & { answers: 'plain' } & (
    | Transaction<Anything, Anything, Anything>
    | Exchange<Anything, Anything, Anything>
  )

/** Answers with a VerificationAnswer, which each protocol renders. */
export type VerificationOperation = AnyDescription &
  PublicAccess & { answers: 'verification' } & Exchange<Anything, VerificationAnswer, Call> &
  Partial<Sale<Anything>>

/** How an operation is sold to clients that know nothing of this service but x402. */
interface Sale<I> {
  /** The offer that its 402 makes; by default that of the interface. */
  through: Through
  /**
   * Answers a call without a payment, which may have any body, or none, over HTTP.
   * @param read returns the checked input. Throws AppError for input that is not valid
   */
  unpaid(read: () => I, call: Call): Promise<VerificationAnswer>
  /** A call waits for its outcome by itself, as long as it may. */
  waits: true
}

export type Operation = PlainOperation | VerificationOperation

/** Each function below connects the types of one operation: its input, its output, and the arguments of `run`. */
export function defineOperation<const N extends string, I extends z.ZodObject, O extends z.ZodType>(
  operation: Description<N, I, O> & PublicAccess & Transaction<I, O, Call>,
) {
  return { ...operation, answers: 'plain' as const }
}

export function defineExchange<const N extends string, I extends z.ZodObject, O extends z.ZodType>(
  operation: Description<N, I, O> & PublicAccess & PlainExchange<I, O, Call>,
) {
  return { ...operation, answers: 'plain' as const }
}

export function defineAccountOperation<const N extends string, I extends z.ZodObject, O extends z.ZodType>(
  operation: Description<N, I, O> & AccountAccess & Transaction<I, O, AccountCall>,
) {
  return { ...operation, answers: 'plain' as const }
}

export function defineAccountExchange<const N extends string, I extends z.ZodObject, O extends z.ZodType>(
  operation: Description<N, I, O> & AccountAccess & PlainExchange<I, O, AccountCall>,
) {
  return { ...operation, answers: 'plain' as const }
}

export function defineVerification<const N extends string, I extends z.ZodObject, O extends z.ZodType>(
  operation: Description<N, I, O> & PublicAccess & Exchange<I, VerificationAnswer, Call> & Partial<Sale<z.output<I>>>,
) {
  return { ...operation, answers: 'verification' as const }
}

/**
 * Runs every call of every protocol: counts, authenticates and authorizes it, and only then reads its input. So a caller
 * without the right gets that error before any error about the input. Throws AppError for what the caller can act on.
 * @param read returns the raw input
 */
export async function execute(
  operation: VerificationOperation,
  read: () => unknown,
  call: Call,
): Promise<VerificationAnswer>
export async function execute(operation: PlainOperation, read: () => unknown, call: Call): Promise<Reply<unknown>>
export async function execute(operation: Operation, read: () => unknown, call: Call) {
  const { api, credentials } = call
  const counted = credentials.counted ?? (await countCall(operation, credentials, api))
  const caller = await authorize(operation, counted, api)
  const known = caller ? { ...call, caller } : call
  if (operation.answers === 'verification' && operation.unpaid && credentials.payment === undefined)
    return operation.unpaid(() => readInput(operation, read()), call)
  const input = readInput(operation, read())
  if (operation.answers === 'verification') return operation.run(input, call)
  if (operation.kind === 'exchange') return asReply(await operation.run(input, known))
  return transact(api.db, async (tx) => checkOutput(operation.output, await operation.run(input, { ...known, tx })), {
    readOnly: operation.method === 'GET',
  })
}

/** The error codes of an operation in every protocol. */
export function errorCodes({ access, errors = [] }: Operation): ErrorCode[] {
  const account = access === 'account' ? (['unauthenticated', 'forbidden'] as const) : []
  return [...new Set<ErrorCode>(['invalid_request', ...account, ...errors, 'rate_limited'])]
}

function checkOutput(schema: z.ZodType, answer: unknown): Reply<unknown> {
  const reply = asReply(answer)
  if (reply.body instanceof Buffer) return reply
  return new Reply(schema.parse(reply.body), { status: reply.status, headers: reply.headers })
}

function asReply(answer: unknown): Reply<unknown> {
  return answer instanceof Reply ? answer : new Reply(answer)
}

/** For `catch`: turns the error of a full queue into AppError `capacity_exceeded` and throws any other error again. */
export function refuseOverflow(error: unknown): never {
  if (!(error instanceof BatchOverflowError)) throw error
  throw new AppError('capacity_exceeded', 'Too many requests are waiting.', {
    cause: error,
    headers: retrySoon(),
  })
}

/**
 * A whole number in a path or a query, written in decimal digits only: no sign, space, leading zero or exponent. Protocols
 * whose arguments are JSON send it as a number. Give it a default by `prefault`, which the published schema shows; `default` it does
 * not show.
 * @param least at least 0
 */
export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER) {
  const read = (given: unknown) => (typeof given === 'string' && DIGITS.test(given) ? Number(given) : given)
  return z.preprocess(read, z.int().min(least).max(most))
}

const DIGITS = /^(0|[1-9]\d{0,15})$/

function readInput({ input, otherwise }: Operation, raw: unknown) {
  const isOther = otherwise && typeof raw === 'object' && raw !== null && Object.hasOwn(raw, otherwise.member)
  return parseInput(isOther ? otherwise.input : input, raw)
}

const MAX_ISSUES = 5

/** Throws AppError `invalid_request`. */
export function parseInput(schema: z.ZodObject, raw: unknown) {
  const parsed = schema.safeParse(raw)
  if (parsed.success) return parsed.data
  const issues = parsed.error.issues
    .slice(0, MAX_ISSUES)
    .map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`)
  // zod repeats an unrecognised key in its message; the key may be long and may not be well-formed Unicode. The cut may part a pair.
  throw new AppError('invalid_request', issues.join('; ').slice(0, 500).toWellFormed(), { cause: parsed.error })
}
