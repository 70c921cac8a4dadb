// Reads the reports and results that callers of /mcp/check send. It runs in threads: a text made for it takes seconds.
import { jsonFaults } from '../../client/json.ts'
import { type Citation, findCitations } from '../../client/report/citations.ts'
import { readMarkdown } from '../../client/report/markdown.ts'
import { UnreadableReportError } from '../../client/report/report.ts'
import { type PinnedKey, type Verification, verifyResult } from '../../client/verification.ts'

// Loads the parser with this module: the time of a reading begins after that.
await readMarkdown('')

/** What was read, or why it cannot be. */
export type Read<T> = { value: T } | { fault: string }

/** Of one report: more than a person writes. Each takes memory and room in the answer. */
const MAX_CITATIONS = 2000

export async function readReport(markdown: string): Promise<Read<Citation[]>> {
  try {
    const citations = findCitations(await readMarkdown(markdown))
    return citations.length > MAX_CITATIONS
      ? { fault: `has more than ${MAX_CITATIONS} citations.` }
      : { value: citations }
  } catch (error) {
    if (error instanceof UnreadableReportError) return { fault: error.message }
    throw error
  }
}

export function checkResult({ text, keys }: { text: string; keys: PinnedKey[] }): Read<Verification> {
  let result: unknown
  try {
    result = JSON.parse(text)
  } catch {
    return { fault: 'is not JSON.' }
  }
  const [fault] = jsonFaults(result)
  return fault ? { fault: fault.reason } : { value: verifyResult(result, { keys }) }
}
