// An operation is one thing a caller can ask, as data and a function. HTTP routes, the OpenAPI document and every other
// protocol are made from these, so none of them is written by hand, and none can forget a limit or the output check.
import type { z } from 'zod'
import type { Api } from './context.ts'
import { type Tx, transact } from './db/pool.ts'
import { AppError } from './errors.ts'

/** What a protocol adapter found beside the input: headers in HTTP, arguments and `_meta` in MCP. */
export interface Credentials {
  /** The address the call came from, for rate limits. */
  address: string
  bearer?: string
  idempotencyKey?: string
  /** PAYMENT-SIGNATURE as it came, or the object MCP carries. */
  payment?: unknown
  /** How long the caller is willing to wait for completion, 0 to 25. */
  waitSeconds: number
  /** Aborts when the caller is gone. */
  signal: AbortSignal
}

export interface Call {
  api: Api
  credentials: Credentials
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
  /** What the caller must show: nothing, a payment, or a recovery token. */
  access: 'public' | 'payment' | 'recovery'
  input: I
  /** The body of success. */
  output: O
}

/** Answers from one transaction: read-only for GET. The output is checked inside it, so a wrong answer changes nothing. */
export interface TransactionOperation<N extends string, I extends z.ZodObject, O extends z.ZodType>
  extends Description<N, I, O> {
  kind: 'transaction'
  run(input: z.output<I>, call: Call & { tx: Tx }): Promise<z.input<O>>
}

/** Answers with more than one status, by transactions of its own; see verification/operations.ts. */
export interface ExchangeOperation<N extends string, I extends z.ZodObject, O extends z.ZodType, A>
  extends Description<N, I, O> {
  kind: 'exchange'
  run(input: z.output<I>, call: Call): Promise<A>
}

// biome-ignore lint/suspicious/noExplicitAny: the catalogue holds operations of every input and answer
export type Operation = TransactionOperation<string, any, any> | ExchangeOperation<string, any, any, any>

/** Keeps the types of one operation apart from those of the next. */
export function defineOperation<const N extends string, I extends z.ZodObject, O extends z.ZodType>(
  operation: TransactionOperation<N, I, O>,
) {
  return operation
}

export function defineExchange<const N extends string, I extends z.ZodObject, O extends z.ZodType, A>(
  operation: ExchangeOperation<N, I, O, A>,
) {
  return operation
}

/** The one path every call takes, whichever protocol brought it. Throws AppError for what the caller can act on. */
export async function execute(operation: Operation, raw: unknown, call: Call): Promise<unknown> {
  await call.api.limits.spend(call.credentials.address)
  const input = parseInput(operation.input, raw)
  if (operation.kind === 'exchange') return operation.run(input, call)
  return transact(call.api.db, async (tx) => operation.output.parse(await operation.run(input, { ...call, tx })), {
    readOnly: operation.method === 'GET',
  })
}

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
