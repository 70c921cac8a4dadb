// The type of a tool: its description for models, and the function that a call runs.
import type { CallToolResult, ClientCapabilities, Tool as ToolDescriptor } from '@modelcontextprotocol/server'
import type { z } from 'zod'
import { publicError } from '../errors.ts'
import type { Call } from '../operation.ts'

export type { CallToolResult, ToolDescriptor }

/** Member of `_meta` in results: seconds to wait before the next call. */
export const RETRY_AFTER = 'service/retry-after-seconds'

export interface Tool {
  /**
   * As tools/list shows it; made once. An outputSchema must also fit errors, because clients check errors against it
   * too.
   */
  descriptor: ToolDescriptor & { annotations: Required<NonNullable<ToolDescriptor['annotations']>> }
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
  /** Present if the caller asked for progress and accepts a stream; the first report turns the answer into one. */
  progress?: (progress: number, total: number, message: string) => void
}

/** The JSON Schema of what an object accepts. */
export function inputSchemaOf(schema: z.ZodObject): ToolDescriptor['inputSchema'] {
  // zod and the SDK type the same JSON differently.
  return schema.toJSONSchema({ io: 'input' }) as ToolDescriptor['inputSchema']
}

/** A result whose text is the same JSON as its structured content, for clients that read only one of them. */
export function resultOf(body: object, meta?: Record<string, unknown>): CallToolResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(body) }],
    structuredContent: { ...body },
    ...(meta && { _meta: meta }),
  }
}

/** The error body of HTTP as a result, with the seconds of Retry-After in `_meta`. */
export function errorResult(error: unknown): CallToolResult {
  const { error: body, retryAfterSeconds } = publicError(error)
  const meta = retryAfterSeconds === undefined ? undefined : { [RETRY_AFTER]: retryAfterSeconds }
  return { ...resultOf({ error: body }, meta), isError: true }
}
