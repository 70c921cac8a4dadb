// The tools of /mcp/check: free, without an account, and without prices. They read pages and check; they change nothing.
import { z } from 'zod'
import type { Verification } from '../../client/verification.ts'
import { AppError } from '../errors.ts'
import { type Call, execute, MAX_WAIT_SECONDS, parseInput } from '../operation.ts'
import { checkQuotesOf, storeReport } from '../quotes/address-checks.ts'
import { type QuoteCheckResult, quoteCheckInput, quoteCheckResult } from '../quotes/quote-check.ts'
import { getKeys } from '../receipts/chain-operations.ts'
import { verifyReceipt } from '../receipts/check-operations.ts'
import { describeProgress, inWords, refusal, renderReport } from './check-answers.ts'
import { withPageTexts } from './page-texts.ts'
import { readInThread } from './reading.ts'
import { checkReport, MAX_REPORT } from './report-check.ts'
import { createReportTask } from './report-tasks.ts'
import { REPORT_VIEW } from './report-view.ts'
import { cut, MAX_TEXT } from './summary.ts'
import { declaresTasks } from './tasks.ts'
import { type CallToolResult, inputSchemaOf, resultOf, type Tool, type ToolCall } from './tool.ts'

const anyObject = z.looseObject({})

const quotesInput = quoteCheckInput.extend({
  source_url: quoteCheckInput.shape.source_url.describe('One public HTTPS page.'),
  quotes: quoteCheckInput.shape.quotes.describe('1 to 20 quotes of up to 1,000 characters.'),
})
const reportInput = z.strictObject({
  markdown: z.string().min(1).max(MAX_REPORT).describe('The report, with its citations as links or footnotes.'),
})
const receiptInput = z.strictObject({
  attestation: anyObject.describe('The receipt, all 12 members.'),
  canonical_envelope_base64: z.string().optional().describe('Of the receipt of a verification.'),
  proof: z
    .looseObject({ inclusion: anyObject.optional(), checkpoint: z.string().optional() })
    .optional()
    .describe('inclusion and checkpoint, that the receipt is in the log.'),
})
const resultInput = z.strictObject({
  result_json: z.string().min(2).max(1_000_000).describe('A whole result of a verification, as JSON text.'),
})

export const checkTools: readonly Tool[] = [
  tool('check_quotes', {
    title: 'Look for quotes in a page',
    about:
      'Says of each quote whether the page has it: exact, typographic (but for white space, quotation marks, dashes and case), near ' +
      'or absent, with a link that marks it. Pending answers: repeat the same call.',
    input: quotesInput,
    open: true,
    async run(input, call) {
      const { id, reply } = await checkQuotesOf(input, waiting(call))
      const body = JSON.parse(String(reply.body))
      if (reply.status !== 200) return resultOf(body)
      const answer = quoteCheckResult.parse(body)
      return withPageTexts(inWords(answer, describeQuotes(answer)), [{ id, answer }], call)
    },
  }),
  tool('check_report', {
    title: 'Check the citations of a report',
    about:
      'Looks for every quotation of a Markdown report on the page that is cited for it, and says which hold, which are not there, and ' +
      'which pages are dead. Pending answers: repeat the same call, it goes on where it was.',
    input: reportInput,
    open: true,
    run: runReport,
  }),
  tool('verify_receipt', {
    title: 'Verify a receipt',
    about:
      'Checks signature, key, hash and place in the log of a receipt of this service. To trust nobody, check offline.',
    input: receiptInput,
    async run({ attestation, canonical_envelope_base64, proof }, call) {
      const envelope = canonical_envelope_base64 === undefined ? undefined : readEnvelope(canonical_envelope_base64)
      const given = { attestation, envelope, canonical_envelope_base64, ...pickProof(proof) }
      const { body } = await execute(verifyReceipt, () => JSON.parse(JSON.stringify(given)), call)
      return resultOf(body as object)
    },
  }),
  tool('verify_result', {
    title: 'Verify a result',
    about:
      'Checks a whole result: its receipt, that nothing in it was changed, and that each quote stands in its text. It does not say ' +
      'whether the claim is true.',
    input: resultInput,
    run: runResult,
  }),
]

interface CheckTool<I extends z.ZodObject> {
  title: string
  about: string
  input: I
  open?: true
  run(input: z.output<I>, call: ToolCall): Promise<CallToolResult>
}

function tool<I extends z.ZodObject>(name: string, { title, about, input, open, run }: CheckTool<I>): Tool {
  return {
    descriptor: {
      name,
      title,
      description: about,
      inputSchema: inputSchemaOf(input),
      _meta: REPORT_VIEW,
      annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: open ?? false },
    },
    async call(args, toolCall) {
      try {
        return await run(parseInput(input, args) as z.output<I>, toolCall)
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        return refusal(error)
      }
    },
  }
}

const waiting = (call: ToolCall): Call => ({ ...call, options: { ...call.options, waitSeconds: MAX_WAIT_SECONDS } })

function describeQuotes({ source, quotes }: QuoteCheckResult): string {
  const head = `Page: ${cut(source.final_url, 200)}, read ${source.checked_at}`
  const room = Math.floor((MAX_TEXT - [...head].length) / quotes.length) - 1
  const lines = quotes.map(({ quote, match, fragment_url }, index) => {
    const start = `${index + 1}. ${match}: `
    const link = fragment_url !== null && fragment_url.length < room - start.length - 24 ? ` ${fragment_url}` : ''
    return `${start}“${cut(quote, room - start.length - link.length - 2)}”${link}`
  })
  return [head, ...lines].join('\n')
}

async function runReport({ markdown }: z.output<typeof reportInput>, call: ToolCall): Promise<CallToolResult> {
  if (declaresTasks(call.capabilities)) return createReportTask(await storeReport(markdown, call))
  const onPage = (done: number, pages: number) => call.progress?.(done, pages, describeProgress(done, pages))
  return renderReport(await checkReport(markdown, call, { wait: MAX_WAIT_SECONDS * 1000, onPage }), call)
}

function pickProof(proof: z.output<typeof receiptInput>['proof']) {
  const { inclusion, checkpoint } = proof ?? {}
  return { inclusion, checkpoint }
}

/** The envelope that the canonical bytes hold; a text that is none fails its checks. */
function readEnvelope(base64: string): object {
  try {
    const read: unknown = JSON.parse(Buffer.from(base64, 'base64').toString())
    return typeof read === 'object' && read !== null ? read : {}
  } catch {
    return {}
  }
}

async function runResult({ result_json: text }: z.output<typeof resultInput>, call: ToolCall): Promise<CallToolResult> {
  const { body } = await execute(getKeys, () => ({}), call)
  const { keys: all } = body as { keys: { key_id: number; use: string; pubkey_hex: string }[] }
  const keys = all.filter(({ use }) => use === 'receipt').map(({ key_id, pubkey_hex }) => ({ key_id, pubkey_hex }))
  const { ok, checks } = await readInThread<Verification>('checkResult', { text, keys }, 'result_json', call)
  return resultOf({ valid: ok, checks })
}
