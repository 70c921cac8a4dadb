// A tool made from an operation of the catalogue: the same input, the same `execute`, the same body as in HTTP. What HTTP
// carries in headers is an argument.
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { type Call, type CallOptions, execute, type PlainOperation } from '../operation.ts'
import { inputSchemaOf, type Link, resultOf, type Tool } from './tool.ts'

/** The effect of a call on the account; the annotations are derived from it. */
export type Effect = 'reads' | 'adds' | 'sets' | 'destroys'

export interface OperationTool {
  name: string
  title: string
  /** Purpose, lifetime, and what a model must know before it calls, in few words: every host sends all of them to its model. */
  about: string
  operation: PlainOperation
  effect: Effect
  /** It calls other services. */
  open?: true
  /** Arguments that HTTP carries in headers. */
  headers?: readonly HeaderArgument[]
  /** Descriptions of arguments; empty where the name says enough. Without one, the description of the operation. */
  notes?: Readonly<Record<string, string>>
  /** Bytes are sent as base64: the argument `data_base64` replaces the operation's raw body. */
  bytes?: { member: string; limit: number }
  /** `_meta` of the descriptor, for hosts that support an extension. */
  meta?: Record<string, unknown>
}

const HEADER_ARGUMENTS = {
  idempotency_key: 'Use the SAME value again when you retry, a new one for a new request.',
  if_match: 'Only if it still has this SHA-256 (`*`: any).',
  if_none_match: '`*`: only if it does not exist.',
} as const
type HeaderArgument = keyof typeof HEADER_ARGUMENTS

export function operationTool(tool: OperationTool): Tool {
  const side = sideArguments(tool)
  return {
    descriptor: describe(tool, side),
    async call(args, { api, credentials, options, links }) {
      const keyed = tool.operation.access === 'account'
      const { service_key: _, ...keyless } = args
      const { given, rest } = split(keyed ? args : keyless, side)
      const bearer = keyed ? keyOf(given, credentials.bearer) : credentials.bearer
      const call: Call = { api, credentials: { ...credentials, bearer }, options: { ...options, ...optionsOf(given) } }
      const read = () => (tool.bytes ? decodeBytes(rest, tool.bytes) : rest)
      const { body } = await execute(tool.operation, read, call)
      return resultOf(
        toObject(body) ?? deletedBody(tool.operation, rest),
        undefined,
        links ? linkToHttp(tool.operation, rest, api.baseUrl) : undefined,
      )
    },
  }
}

/** The arguments beside the operation's own input. A tool takes `service_key` and those in `headers`. */
function sideArguments({ headers = [] }: OperationTool) {
  const optional = (about: string) => z.string().optional().describe(about)
  const schema = z.object({
    // Tools that need no key take one too: some clients send theirs with every call.
    service_key: z.string().optional(),
    idempotency_key: optional(HEADER_ARGUMENTS.idempotency_key),
    if_match: optional(HEADER_ARGUMENTS.if_match),
    if_none_match: optional(HEADER_ARGUMENTS.if_none_match),
  })
  return { schema, names: new Set<string>(['service_key', ...headers]) }
}
type Side = ReturnType<typeof sideArguments>
type SideArguments = z.output<Side['schema']>

function split(args: Record<string, unknown>, { schema, names }: Side) {
  const entries = Object.entries(args)
  const parsed = schema.safeParse(Object.fromEntries(entries.filter(([name]) => names.has(name))))
  if (!parsed.success) {
    const wrong = parsed.error.issues.map((issue) => `${issue.path.join('.')}: must be a string`)
    throw new AppError('invalid_request', wrong.join('; '))
  }
  return { given: parsed.data, rest: Object.fromEntries(entries.filter(([name]) => !names.has(name))) }
}

function keyOf({ service_key: key }: SideArguments, bearer: string | undefined): string | undefined {
  // With two keys in one call, the service cannot know which account the caller meant.
  if (key !== undefined && bearer !== undefined && key !== bearer)
    throw new AppError('invalid_request', 'service_key: Authorization names another key.')
  return key ?? bearer
}

function optionsOf(given: SideArguments): Partial<CallOptions> {
  return {
    idempotencyKey: given.idempotency_key,
    ifMatch: entityTag(given.if_match),
    ifNoneMatch: entityTag(given.if_none_match),
  }
}

/** From a digest as the results show it, or an entity tag as HTTP writes it. */
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

/** The address of the same answer over HTTP, with the same key; undefined for an operation that changes something. */
function linkToHttp(
  { name, method, path, access }: PlainOperation,
  input: Record<string, unknown>,
  baseUrl: string,
): Link | undefined {
  if (method !== 'GET') return undefined
  const url = new URL(baseUrl + path.replace(/\{(\w+)\}/g, (_, member) => encodeURIComponent(String(input[member]))))
  for (const [member, value] of Object.entries(input))
    if (!path.includes(`{${member}}`)) url.searchParams.set(member, String(value))
  const description = access === 'account' ? 'The whole answer; needs Authorization: Bearer.' : 'The whole answer.'
  return { uri: url.href, name, description }
}

/** A Buffer is JSON already. Null for a body without content. */
function toObject(body: unknown): object | null {
  const parsed: unknown = body instanceof Buffer ? JSON.parse(body.toString()) : body
  if (typeof parsed !== 'object') throw new Error('an operation answered without an object')
  return parsed
}

/** The answer to a deletion, for which HTTP has a status and no body. */
function deletedBody({ path }: PlainOperation, input: Record<string, unknown>) {
  const named = Object.entries(input).filter(([name]) => path.includes(`{${name}}`))
  return { ...Object.fromEntries(named), deleted: true }
}

function describe(tool: OperationTool, { schema, names }: Side): Tool['descriptor'] {
  const { name, title, about, effect, open, notes = {}, bytes, meta } = tool
  const own = inputSchemaOf(ownInput(tool))
  const side = Object.entries(inputSchemaOf(schema).properties ?? {}).filter(([member]) => names.has(member))
  const noted = Object.fromEntries(
    Object.entries(notes).map(([member, description]) => [member, { description: description || undefined }]),
  )
  const members = Object.entries({ ...own.properties, ...(bytes && { data_base64: base64Schema(bytes.limit) }) })
  const properties = {
    ...Object.fromEntries(members.map(([member, schema]) => [member, { ...schema, ...noted[member] }])),
    ...Object.fromEntries(side),
  }
  const required = [...(own.required ?? []), ...(bytes ? ['data_base64'] : [])]
  return {
    name,
    title,
    description: about,
    inputSchema: {
      type: 'object',
      properties,
      ...(required.length > 0 && { required }),
    },
    annotations: {
      readOnlyHint: effect === 'reads',
      destructiveHint: effect === 'destroys',
      idempotentHint: effect !== 'adds',
      openWorldHint: open ?? false,
    },
    ...(meta && { _meta: meta }),
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
    description: 'Encrypt what must stay private.',
  }
}
