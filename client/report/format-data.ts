// The outcome of a check for programs: JSON, SARIF 2.1.0 and JUnit.
import type { Correction } from './correction.ts'
import { LEVELS, type Status } from './judgement.ts'
import { allHold, countByStatus, type Outcome, type Placed, saidBy } from './outcome.ts'
import type { Lines } from './report.ts'

export function toJson(outcome: Outcome) {
  const { file, service, checkedAt, citations, pages, verdicts } = outcome
  return {
    file,
    service,
    checked_at: checkedAt,
    ok: allHold(outcome),
    pages,
    counts: countByStatus(citations),
    verdicts: verdicts && {
      wanted: verdicts.wanted,
      bought: verdicts.bought,
      kept: verdicts.kept,
      missing: verdicts.missing,
      spent_usd: verdicts.spentUsd,
      folder: verdicts.folder,
    },
    citations: citations.map((one) => ({
      kind: one.kind,
      status: one.status,
      level: one.level,
      message: one.message,
      code: one.code,
      line: one.line,
      column: one.column,
      end_line: one.endLine,
      end_column: one.endColumn,
      source_url: one.url,
      final_url: one.finalUrl,
      sentence: one.sentence,
      parts: one.parts.map(({ text, found }) => ({
        text,
        match: found?.match ?? null,
        fragment_url: found?.fragment_url ?? null,
        nearest: found?.nearest ?? null,
      })),
      verdict: one.verdict && {
        claim_support: one.verdict.claimSupport,
        explanation: one.verdict.explanation,
        quote: one.verdict.quote,
        fragment_url: one.verdict.fragmentUrl,
        request_id: one.verdict.requestId,
        receipt_serial: one.verdict.receiptSerial,
        checked_at: one.verdict.checkedAt,
        bought_now: one.verdict.isNew,
      },
    })),
  }
}

const RULES: Readonly<Record<Exclude<Status, 'ok' | 'typographic' | 'supported'>, string>> = {
  wrong: 'A quotation, or the text of a text fragment, is not on the page that is cited for it.',
  dead: 'The cited page cannot be retrieved.',
  contradicted: 'The cited page contradicts the sentence, by a verdict of the service.',
  unsupported: 'The cited page has not enough evidence for the sentence, by a verdict of the service.',
  unchecked: 'The citation was not checked: a limit was reached, or the service did not answer in time.',
  mixed: 'The cited page has evidence for the sentence and against it, by a verdict of the service.',
  moved: 'The cited page is at another address now.',
  unreadable: 'The service cannot read the cited page.',
  unverified: 'The cited page is there. Whether it says what the report says was not verified.',
}

const RULE_IDS = Object.keys(RULES) as (keyof typeof RULES)[]

/** SARIF 2.1.0, for programs that show findings beside the lines of a file. */
export function toSarif(outcome: Outcome, lines: Lines, corrections: readonly Correction[]) {
  const { file, citations } = outcome
  const uri = uriOf(file)
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'countersign check',
            rules: RULE_IDS.map((id) => ({
              id,
              shortDescription: { text: RULES[id] },
              defaultConfiguration: {
                level: LEVELS[id],
              },
            })),
          },
        },
        columnKind: 'utf16CodeUnits',
        results: citations
          .filter(({ level }) => level !== 'none')
          .map((one) => sarifResult(one, { uri, lines, corrections })),
      },
    ],
  }
}

interface SarifContext {
  uri: string
  lines: Lines
  corrections: readonly Correction[]
}

function sarifResult(one: Placed, { uri, lines, corrections }: SarifContext) {
  const own = corrections.filter(({ start, end }) => start >= one.location.start && end <= one.location.end)
  const region = { startLine: one.line, startColumn: one.column, endLine: one.endLine, endColumn: one.endColumn }
  const replacements = own.map(({ start, end, spelled }) => ({
    deletedRegion: regionOf(lines, start, end),
    insertedContent: { text: spelled },
  }))
  return {
    ruleId: one.status,
    ruleIndex: (RULE_IDS as Status[]).indexOf(one.status),
    level: one.level,
    message: { text: `${plainText(saidBy(one))}: ${plainText(one.message)} (${one.url})` },
    locations: [{ physicalLocation: { artifactLocation: { uri }, region } }],
    ...(one.verdict && { properties: { receipt_serial: one.verdict.receiptSerial, quote: one.verdict.quote } }),
    partialFingerprints: { 'citation/v1': `${one.status} ${one.url} ${saidBy(one)}`.slice(0, 500) },
    ...(replacements.length > 0 && {
      fixes: [
        {
          description: { text: 'The words of the page' },
          artifactChanges: [{ artifactLocation: { uri }, replacements }],
        },
      ],
    }),
  }
}

function regionOf(lines: Lines, start: number, end: number) {
  const from = lines.at(start)
  const to = lines.at(end)
  return { startLine: from.line, startColumn: from.column, endLine: to.line, endColumn: to.column }
}

/** In a message of SARIF braces and brackets have a meaning. */
const plainText = (text: string) =>
  text.replace(/[[\]{}\\]/g, (char) => (char === '{' || char === '}' ? char + char : `\\${char}`))

/** A relative path as a relative reference; an absolute one as a URL. */
function uriOf(file: string): string {
  const path = file.replaceAll('\\', '/').replace(/^\.\//, '')
  const escaped = path.split('/').map(encodeURIComponent).join('/')
  return path.startsWith('/') ? `file://${escaped}` : escaped
}

/** JUnit's XML as Jenkins, GitLab and others read it: one case for each citation. */
export function toJunit({ file, checkedAt, citations, service }: Outcome): string {
  const failing = citations.filter(({ level }) => level === 'error')
  const skipped = citations.filter(({ status }) => status === 'unverified' || status === 'unreadable')
  const suite = {
    name: file,
    tests: citations.length,
    failures: failing.length,
    errors: 0,
    skipped: skipped.length,
    time: 0,
    timestamp: checkedAt.slice(0, 19),
    hostname: new URL(service).hostname,
    id: 0,
    package: 'countersign.check',
  }
  const cases = citations.map((one) => {
    const name = `${one.line}:${one.column} ${one.kind}: ${saidBy(one)}`
    const open = `  <testcase${attributes({ name, classname: file, time: 0 })}`
    const receipt = one.verdict ? `\nreceipt ${one.verdict.receiptSerial}` : ''
    const detail = `${one.message}\n${one.url}${receipt}`
    if (one.level === 'error')
      return `${open}>\n   <failure${attributes({ type: one.status, message: one.message })}>${escapeXml(detail)}</failure>\n  </testcase>\n`
    if (skipped.includes(one)) return `${open}>\n   <skipped/>\n  </testcase>\n`
    return `${open}/>\n`
  })
  const notes = citations
    .filter(({ level }) => level === 'warning')
    .map((one) => `${one.line}:${one.column} ${one.status}: ${one.message}\n`)
  return (
    `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n <testsuite${attributes(suite)}>\n  <properties>\n   <property${attributes({ name: 'service', value: service })}/>\n  </properties>\n${cases.join('')}` +
    `  <system-out>${escapeXml(notes.join(''))}</system-out>\n  <system-err/>\n </testsuite>\n</testsuites>\n`
  )
}

function attributes(values: Record<string, string | number>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escapeXml(String(value)).replace(/[\t\n\r]/g, ' ')}"`)
    .join('')
}

/** Characters that XML does not have become U+FFFD. */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
