// Answers of the tools of /mcp/check, which their calls and their tasks share.
import { publicError } from '../errors.ts'
import { withPageTexts } from './page-texts.ts'
import { describeOutcome, type ReportCheck, summarizeOutcome } from './report-check.ts'
import { isShort } from './summary.ts'
import { type CallToolResult, RETRY_AFTER, resultOf, type ToolCall } from './tool.ts'

/** Limits say when the same call may come again: models read the body, not the metadata. */
export function refusal(thrown: unknown): CallToolResult {
  const { error, retryAfterSeconds } = publicError(thrown)
  const again = retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }
  const meta = retryAfterSeconds === undefined ? undefined : { [RETRY_AFTER]: retryAfterSeconds }
  return { ...resultOf({ error: { ...error, ...again } }, meta), isError: true }
}

/** The body, with these words as its text where its JSON is too long for one. */
export function inWords(body: object, words: string): CallToolResult {
  const result = resultOf(body)
  return isShort(JSON.stringify(body)) ? result : { ...result, content: [{ type: 'text', text: words }] }
}

export async function renderReport(
  { done, pages, outcome, checks }: ReportCheck,
  call: Pick<ToolCall, 'api'>,
): Promise<CallToolResult> {
  if (outcome) return withPageTexts(inWords(describeOutcome(outcome, checks), summarizeOutcome(outcome)), checks, call)
  return resultOf({ status: 'pending', done, pages, message: `${describeProgress(done, pages)} ${REPEAT}` })
}

const REPEAT = 'Repeat the same call: it goes on from here.'

export function describeProgress(done: number, pages: number): string {
  return `${done} of ${pages} pages are checked.`
}
