// What a tool is: how it is described to models, and what happens when one calls it.
import type { CallToolResult, ClientCapabilities, Tool as ToolDescriptor } from '@modelcontextprotocol/server'
import type { Api } from '../context.ts'
import { publicError } from '../errors.ts'
import type { Credentials } from '../operation.ts'

export type { CallToolResult, ToolDescriptor }

export interface Tool {
  /** As tools/list shows it; made once. No outputSchema that an error would not meet: clients hold errors to it too. */
  descriptor: ToolDescriptor & { annotations: Required<NonNullable<ToolDescriptor['annotations']>> }
  /**
   * Throws AppError for what the caller can act on; like anything else thrown, it becomes a result with `isError` and
   * HTTP's error body. @param args as they came: an object, and nothing more is known of it
   */
  call(args: Record<string, unknown>, call: ToolCall): Promise<CallToolResult>
}

/** What came with a call beside its arguments. */
export interface ToolCall {
  api: Api
  /** `params._meta` without the protocol's own members. */
  meta: Record<string, unknown>
  /** `bearer` is what the Authorization header held; `signal` aborts when the caller is gone. */
  credentials: Credentials
  /** What the client says it can do; empty before 2026-07-28. */
  capabilities: ClientCapabilities
  /** There when the caller asked for progress and takes a stream; the first report turns the answer into one. */
  progress?: (progress: number, total: number, message: string) => void
}

/** A result whose text is the same JSON as its structured content, for clients that read only one of them. */
export function resultOf(body: object, meta?: Record<string, unknown>): CallToolResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(body) }],
    structuredContent: body as Record<string, unknown>,
    ...(meta && { _meta: meta }),
  }
}

/** The failure of a tool: HTTP's error body, and the seconds to wait where HTTP would send Retry-After. */
export function failureOf(error: unknown): CallToolResult {
  const { error: body, headers } = publicError(error)
  const retryAfter = headers['retry-after']
  return {
    ...resultOf({ error: body }, retryAfter ? { 'service/retry-after-seconds': Number(retryAfter) } : undefined),
    isError: true,
  }
}
