// The tools of `countersign mcp` that cost nothing: quotes and reports against their pages, with an account, and receipts offline.
import { UsageError } from '../../arguments.ts'
import { decodeBase64, sha256Hex } from '../../bytes.ts'
import type { Check } from '../../checks.ts'
import { findCitations } from '../../report/citations.ts'
import { toJson } from '../../report/format-data.ts'
import { formatText } from '../../report/format-text.ts'
import { judge, wantedOf } from '../../report/judgement.ts'
import { readMarkdown } from '../../report/markdown.ts'
import { allHold, type Outcome, place } from '../../report/outcome.ts'
import { askPages } from '../../report/pages.ts'
import { Lines, UnreadableReportError } from '../../report/report.ts'
import { verifyAttestation, verifyReceipt } from '../../verification.ts'
import { openClient } from '../patience.ts'
import { signatureCheck } from '../signature-check.ts'
import type { Trust } from '../trust.ts'
import { clip, failed, type McpTool, said, textOf } from './tool.ts'

interface Setting {
  service: string
  apiKey: string | null
  trust: Trust
}

export function buildChecks(setting: Setting): McpTool[] {
  return [quotesTool(setting), reportTool(setting), receiptTool(setting)]
}

const FREE = { readOnlyHint: true, destructiveHint: false, idempotentHint: true } as const

function noAccount(service: string) {
  const make = `countersign account register NAME --service ${service} --save account.key`
  return failed(
    'no_account',
    `This is free and needs an account: \`${make}\` makes one; start this server with --key account.key.`,
  )
}

function quotesTool({ service, apiKey }: Setting): McpTool {
  return {
    descriptor: {
      name: 'check_quotes',
      title: 'Check quotations',
      description:
        'Free: whether a page has these quotations, word for word, nearly, or not at all, with links that mark them.',
      inputSchema: {
        type: 'object',
        properties: {
          source_url: { type: 'string', description: 'One public page, https.' },
          quotes: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 20 },
        },
        required: ['source_url', 'quotes'],
        additionalProperties: false,
      },
      annotations: { ...FREE, openWorldHint: true },
    },
    async run(given, { signal }) {
      if (apiKey === null) return noAccount(service)
      const quotes = given.quotes
      if (!Array.isArray(quotes) || !quotes.every((one) => typeof one === 'string'))
        throw new UsageError('quotes is a list of 1 to 20 texts.')
      const client = openClient({ baseUrl: service, apiKey })
      const checked = await client.checkQuotes({ source_url: textOf(given, 'source_url'), quotes }, { signal })
      const lines = checked.quotes.map(({ quote, match, nearest, fragment_url }) => {
        const near = match === 'near' && nearest ? `; the page has “${clip(nearest.text, 200)}”` : ''
        return `${match}: “${clip(quote, 200)}”${near} ${fragment_url ?? ''}`.trimEnd()
      })
      return said([`Page: ${checked.source.final_url}`, ...lines], { ...checked })
    },
  }
}

function reportTool({ service, apiKey }: Setting): McpTool {
  return {
    descriptor: {
      name: 'check_report',
      title: 'Check the citations of a report',
      description: 'Free: whether the pages that a report in Markdown cites exist, and have what it quotes from them.',
      inputSchema: {
        type: 'object',
        properties: { markdown: { type: 'string', description: 'The whole report.' } },
        required: ['markdown'],
        additionalProperties: false,
      },
      annotations: { ...FREE, openWorldHint: true },
    },
    async run(given, context) {
      if (apiKey === null) return noAccount(service)
      const text = textOf(given, 'markdown')
      const report = await readMarkdown(text).catch((cause: unknown) => {
        throw cause instanceof UnreadableReportError ? new UsageError(cause.message, { cause }) : cause
      })
      const citations = findCitations(report)
      const wanted = wantedOf(citations)
      const client = openClient({ baseUrl: service, apiKey })
      const onProgress = (done: number, all: number) =>
        void context.progress(done, `${done} of ${all} pages`).catch(() => {})
      const answers = await askPages(client, wanted, { onProgress })
      const lines = new Lines(text)
      const outcome: Outcome = {
        ...{ file: 'report', service, checkedAt: new Date().toISOString() },
        citations: place(judge(citations, answers), lines),
        ...{ pages: wanted.size, verdicts: null },
      }
      const { citations: all, ...sums } = toJson(outcome)
      const listed = all.slice(0, MAX_LISTED).map(({ kind, status, level, message, line, source_url, sentence }) => ({
        ...{ kind, status, level, message, line, source_url },
        sentence: sentence && clip(sentence, 300),
      }))
      const verdict = allHold(outcome) ? 'All citations hold.' : 'Some citations do not hold.'
      return said([verdict, formatText(outcome, lines, (_, words) => words)], { ...sums, citations: listed })
    },
  }
}

function receiptTool({ trust }: Setting): McpTool {
  return {
    descriptor: {
      name: 'verify_receipt',
      title: 'Verify a receipt',
      description: 'Free and offline: whether the service signed this receipt, by the keys that this server trusts.',
      inputSchema: {
        type: 'object',
        properties: {
          attestation: { type: 'object', description: 'receipt.attestation of a result, or of any receipt.' },
          canonical_envelope_base64: { type: 'string', description: 'What the receipt of a purchase is for.' },
          proof: { type: 'object', description: 'inclusion and checkpoint, as GET /v1/receipt/{serial} returns them.' },
        },
        required: ['attestation'],
        additionalProperties: false,
      },
      annotations: { ...FREE, openWorldHint: false },
    },
    async run({ attestation, canonical_envelope_base64: envelope, proof }) {
      const keys = await trust.known()
      if (keys.length === 0)
        return failed('no_key', 'No key of the service is trusted here yet: start with --pin KEYID:HEX, or buy once.')
      const { inclusion, checkpoint } = (proof ?? {}) as { inclusion?: unknown; checkpoint?: unknown }
      const { checks } = proof
        ? verifyReceipt({ attestation, inclusion, checkpoint }, { keys, signatureCheck })
        : verifyAttestation(attestation, { keys, signatureCheck })
      const all: Check[] = envelope === undefined ? [...checks] : [...checks, envelopeCheck(envelope, attestation)]
      const ok = all.every((check) => check.ok)
      const lines = all.map(
        (check) => `${check.ok ? 'ok' : 'FAIL'} ${check.name}${check.detail ? `: ${check.detail}` : ''}`,
      )
      return said([ok ? 'The receipt is genuine.' : 'The receipt does not verify.', ...lines], { ok, checks: all })
    },
  }
}

function envelopeCheck(envelope: unknown, attestation: unknown): Check {
  const name = 'subject_sha256'
  const bytes = typeof envelope === 'string' ? decodeBase64(envelope) : null
  if (!bytes) return { name, ok: false, detail: 'canonical_envelope_base64 is not standard base64' }
  const { subject_sha256 } = (attestation ?? {}) as { subject_sha256?: unknown }
  return sha256Hex(bytes) === subject_sha256
    ? { name, ok: true }
    : { name, ok: false, detail: 'the attestation is for other bytes than canonical_envelope_base64' }
}

const MAX_LISTED = 50
