// What the tools of `countersign mcp` have in common: their form, and answers that are short enough for a model.
import type { CallToolResult, InputRequiredResult, Tool } from '@modelcontextprotocol/server'
import { visible } from '../../arguments.ts'
import { note } from '../output.ts'

export type ToolOutcome = CallToolResult | InputRequiredResult

export interface ToolContext {
  /** The host can put a question to a person. */
  canAsk: boolean
  /** The answers to what was asked for this call. */
  responses: Record<string, unknown> | undefined
  signal: AbortSignal
  progress(seconds: number, message: string): Promise<void>
}

export interface McpTool {
  descriptor: Tool
  run(given: Record<string, unknown>, context: ToolContext): Promise<ToolOutcome>
}

/** What the text of an answer may have, in code points. */
const MAX_TEXT = 2000

export function said(
  lines: readonly string[],
  structuredContent: Record<string, unknown>,
  isError = false,
): CallToolResult {
  const text = clip(lines.join('\n'), MAX_TEXT)
  return { content: [{ type: 'text', text }], structuredContent, ...(isError && { isError }) }
}

export function failed(code: string, message: string, retryable = false, cause?: unknown): CallToolResult {
  if (cause instanceof Error) note(`countersign mcp: ${visible(cause.name)}: ${visible(cause.message)}\n`)
  return said([`${code}: ${message}`], { error: { code, message, retryable } }, true)
}

/** The beginning of a text, in code points. */
export function clip(text: string, most: number): string {
  const points = Array.from(text)
  return points.length <= most ? text : `${points.slice(0, most - 1).join('')}…`
}

/** A member that must be a text; a UsageError is thrown by what it is used for. */
export function textOf(given: Record<string, unknown>, name: string): string {
  const value = given[name]
  return typeof value === 'string' ? value : ''
}
