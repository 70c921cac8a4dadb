// A tool made from an operation of the catalogue: the same input, the same `execute`, the same body as in HTTP. What HTTP
// carries in headers stands among the arguments.
import { z } from 'zod'
import { AppError, type ErrorCode } from '../errors.ts'
import { type Credentials, execute, type Operation, Reply } from '../operation.ts'
import { resultOf, type Tool, type ToolDescriptor } from './tool.ts'

/** What a call does to the account, from which the annotations follow. */
export type Effect = 'reads' | 'adds' | 'sets' | 'destroys'

export interface OperationTool {
  name: string
  title: string
  /** Purpose, lifetime, and what a model has to know before it calls. The codes of failure are added. */
  about: string
  operation: Operation
  effect: Effect
  /** It reaches out of this service. */
  open?: true
  /** Arguments that HTTP carries in headers. */
  headers?: readonly HeaderArgument[]
  /** What is said of arguments of which the operation itself says nothing. */
  notes?: Readonly<Record<string, string>>
  /** Bytes travel as base64: the argument `data_base64` in the place of the operation's raw body. */
  bytes?: { member: string; limit: number }
}

const HEADER_ARGUMENTS = {
  idempotency_key:
    'Makes a retry safe. Use the SAME value again when you retry the same request, a new one for a new request.',
  if_match: 'Only if the slot still has this SHA-256 (`*`: only if there is such a slot).',
  if_none_match: '`*`: only if there is no such slot yet.',
} as const
type HeaderArgument = keyof typeof HEADER_ARGUMENTS

const SERVICE_KEY =
  'API key that service_register returned (ctk_...). A secret: never repeat it. Leave it out where the connection sends Authorization: Bearer.'
/** What clients that send their key with every call may read of the tools that need none. */
export const IGNORED_KEY = 'Not needed here, and not checked.'

export function operationTool(tool: OperationTool): Tool {
  const side = sideArguments(tool)
  return {
    descriptor: describe(tool, side),
    async call(args, { api, credentials }) {
      const keyed = tool.operation.access === 'account'
      const { service_key: _, ...keyless } = args
      const { given, rest } = split(keyed ? args : keyless, side)
      const bearer = keyed ? keyOf(given, credentials.bearer) : credentials.bearer
      const call = { api, credentials: { ...credentials, ...headersOf(given), bearer } }
      const answer = await execute(tool.operation, () => (tool.bytes ? decodeBytes(rest, tool.bytes) : rest), call)
      return resultOf(...bodyOf(answer, () => removed(tool.operation, rest)))
    },
  }
}

/** What an argument list holds beside the operation's own input. */
function sideArguments({ operation, headers = [] }: OperationTool) {
  const optional = (about: string) => z.string().optional().describe(about)
  return z.object({
    service_key: optional(operation.access === 'account' ? SERVICE_KEY : IGNORED_KEY),
    ...Object.fromEntries(headers.map((name) => [name, optional(HEADER_ARGUMENTS[name])])),
  })
}
type SideArguments = { service_key?: string } & Partial<Record<HeaderArgument, string>>

function split(args: Record<string, unknown>, side: ReturnType<typeof sideArguments>) {
  const names = Object.keys(side.shape)
  const entries = Object.entries(args)
  const parsed = side.safeParse(Object.fromEntries(entries.filter(([name]) => names.includes(name))))
  if (!parsed.success) {
    const wrong = parsed.error.issues.map((issue) => `${issue.path.join('.')}: must be a string`)
    throw new AppError('invalid_request', wrong.join('; '))
  }
  const rest = Object.fromEntries(entries.filter(([name]) => !names.includes(name)))
  return { given: parsed.data as SideArguments, rest }
}

function keyOf({ service_key: key }: SideArguments, bearer: string | undefined): string | undefined {
  // Two keys for one call: whoever sent them meant one account, and this is no place to guess which.
  if (key !== undefined && bearer !== undefined && key !== bearer)
    throw new AppError('invalid_request', 'service_key: Authorization names another key.')
  return key ?? bearer
}

function headersOf(given: SideArguments): Partial<Credentials> {
  return {
    idempotencyKey: given.idempotency_key,
    ifMatch: entityTag(given.if_match),
    ifNoneMatch: entityTag(given.if_none_match),
  }
}

/** A digest as the results show it, or an entity tag as HTTP has it. */
function entityTag(given: string | undefined): string | undefined {
  return given !== undefined && /^[0-9a-f]{64}$/.test(given) ? `"${given}"` : given
}

function decodeBytes(
  { data_base64: text, ...rest }: Record<string, unknown>,
  { member, limit }: { member: string; limit: number },
) {
  if (typeof text !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0)
    throw new AppError('invalid_request', 'data_base64: must be base64 (RFC 4648, with padding).')
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length > limit) throw new AppError('body_too_large', `data_base64: holds more than ${limit} bytes.`)
  return { ...rest, [member]: bytes }
}

/** Structured content, and nothing more: status and headers are HTTP's. A Buffer is JSON already. */
function bodyOf(answer: unknown, gone: () => object): [object] {
  const body = answer instanceof Reply ? answer.body : answer
  if (body === null) return [gone()]
  return [body instanceof Buffer ? JSON.parse(body.toString()) : (body as object)]
}

/** HTTP says it with a status and no body. */
function removed({ path }: Operation, input: Record<string, unknown>) {
  const named = Object.entries(input).filter(([name]) => path.includes(`{${name}}`))
  return { ...Object.fromEntries(named), deleted: true }
}

type Schema = { properties?: Record<string, object>; required?: string[] }

function describe(tool: OperationTool, side: z.ZodObject): Tool['descriptor'] {
  const { name, title, about, operation, effect, open, notes = {}, bytes } = tool
  const own = z.toJSONSchema(ownInput(tool), { io: 'input' }) as Schema
  const beside = z.toJSONSchema(side, { io: 'input' }) as Schema
  const noted = Object.fromEntries(Object.entries(notes).map(([member, description]) => [member, { description }]))
  const members = Object.entries({ ...own.properties, ...(bytes && { data_base64: base64Schema(bytes.limit) }) })
  const properties = {
    ...Object.fromEntries(members.map(([member, schema]) => [member, { ...noted[member], ...schema }])),
    ...beside.properties,
  }
  return {
    name,
    title,
    description: `${about} Fails with: ${codesOf(operation).join(', ')}.`,
    inputSchema: {
      type: 'object',
      properties,
      required: [...(own.required ?? []), ...(bytes ? ['data_base64'] : [])],
      additionalProperties: false,
    } as ToolDescriptor['inputSchema'],
    annotations: {
      title,
      readOnlyHint: effect === 'reads',
      destructiveHint: effect === 'destroys',
      idempotentHint: effect !== 'adds',
      openWorldHint: open ?? false,
    },
  }
}

/** Bytes have no JSON Schema. */
function ownInput({ operation, bytes }: OperationTool) {
  const shape = Object.entries(operation.input.shape).filter(([name]) => name !== bytes?.member)
  return z.strictObject(Object.fromEntries(shape))
}

function base64Schema(limit: number) {
  return {
    type: 'string',
    contentEncoding: 'base64',
    maxLength: Math.ceil(limit / 3) * 4,
    description: `The bytes in base64, at most ${limit} of them. Encrypt what must stay private.`,
  }
}

function codesOf({ access, errors = [] }: Operation): ErrorCode[] {
  return [
    'invalid_request',
    ...(access === 'account' ? (['unauthenticated', 'forbidden'] as const) : []),
    ...errors,
    'rate_limited',
  ]
}
