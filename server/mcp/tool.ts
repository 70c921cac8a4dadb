// The type of a tool: its description for models, and the function that a call runs.
import type { CallToolResult, ClientCapabilities, Tool as ToolDescriptor } from '@modelcontextprotocol/server'
import type { z } from 'zod'
import { publicError } from '../errors.ts'
import type { Call } from '../operation.ts'
import { isShort, summarizeBody } from './summary.ts'

export type { CallToolResult, ToolDescriptor }

/** Member of `_meta` in results: seconds to wait before the next call. */
export const RETRY_AFTER = 'service/retry-after-seconds'

export interface Tool {
  /**
   * As tools/list shows it; made once. An outputSchema must also fit errors, because clients check errors against it
   * too.
   */
  descriptor: ToolDescriptor & { annotations: Required<Omit<NonNullable<ToolDescriptor['annotations']>, 'title'>> }
  /**
   * Throws AppError for errors that the caller can act on; every error becomes a result with `isError` and the error body
   * of HTTP. @param args unchecked: an object with any members
   */
  call(args: Record<string, unknown>, call: ToolCall): Promise<CallToolResult>
}

/** An unchecked call: `bearer` is from the Authorization header; `signal` aborts when the caller disconnects or cancels. */
export interface ToolCall extends Call {
  /** `params._meta` without the protocol's own members. */
  meta: Record<string, unknown>
  /** What the client declares it can do; empty before 2026-07-28. */
  capabilities: ClientCapabilities
  /** The client's revision has links to resources, and lets a host drop structured content. */
  links: boolean
  /** Present if the caller asked for progress and accepts a stream; the first report turns the answer into one. */
  progress?: (progress: number, total: number, message: string) => void
}

/**
 * The JSON Schema of what an object accepts, without what says nothing to a model: hosts send the schemas of all tools with every
 * question, and the service checks arguments itself.
 */
export function inputSchemaOf(schema: z.ZodObject): ToolDescriptor['inputSchema'] {
  const { $schema: _, ...whole } = schema.toJSONSchema({
    io: 'input',
    override: ({ jsonSchema }) => shorten(jsonSchema),
  })
  // zod and the SDK type the same JSON differently.
  return whole as ToolDescriptor['inputSchema']
}

/** Changes the schema in place, as zod asks for it. */
function shorten(schema: z.core.JSONSchema.BaseSchema) {
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  if (schema.minLength === 0) delete schema.minLength
  if (schema.default === null) delete schema.default
  if (schema.required?.length === 0) delete schema.required
  delete schema.pattern
  delete schema.additionalProperties
  if (schema.type === 'object' && Object.keys(schema.properties ?? {}).length === 0) delete schema.properties
}

/**
 * A result whose text is the same JSON as its structured content, or says in words what that holds if it is long.
 * @param whole where all of a long answer can be read, for clients that know such links
 */
export function resultOf(body: object, meta?: Record<string, unknown>, whole?: Link): CallToolResult {
  const json = JSON.stringify(body)
  const short = isShort(json)
  return {
    content: [{ type: 'text', text: short ? json : summarizeBody(body) }, ...(short || !whole ? [] : [linkOf(whole)])],
    structuredContent: { ...body },
    ...(meta && { _meta: meta }),
  }
}

/** Where a whole answer can be read. */
export interface Link {
  uri: string
  name: string
  description: string
}

export function linkOf(link: Link) {
  return { type: 'resource_link' as const, mimeType: 'application/json', ...link }
}

/** The error body of HTTP as a result, with the seconds of Retry-After in `_meta`. */
export function errorResult(error: unknown): CallToolResult {
  const { error: body, retryAfterSeconds } = publicError(error)
  const meta = retryAfterSeconds === undefined ? undefined : { [RETRY_AFTER]: retryAfterSeconds }
  return { ...resultOf({ error: body }, meta), isError: true }
}
