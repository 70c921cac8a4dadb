// Everything that reads what strangers send, with its limit and the worst that it may be sent. One row for each reader: the rule
// of test/readers.test.ts and the measurements of bench/text.ts hold for all of them.

import { gzipSync } from 'node:zlib'
import { verifyDocument } from '../client/document.ts'
import { splitResponse, unframed } from '../client/evidence/http-message.ts'
import { readManifest } from '../client/evidence/manifest.ts'
import { Fault } from '../client/evidence/steps.ts'
import { readWarc } from '../client/evidence/warc.ts'
import { MOST_PACKAGE_BYTES, readZip } from '../client/evidence/zip.ts'
import { canonicalJson, parseJson } from '../client/json.ts'
import { examine } from '../client/page/verify/examine.ts'
import { LEASES } from '../client/page/verify/lease-kinds.ts'
import { findCitations } from '../client/report/citations.ts'
import { MAX_REPORT } from '../client/report/complexity.ts'
import { readHtml } from '../client/report/html.ts'
import { readMarkdown } from '../client/report/markdown.ts'
import { type Report, UnreadableReportError } from '../client/report/report.ts'
import { findTextDirective } from '../client/text-fragment.ts'
import { MAX_REPLY_BYTES, openTimestampVerifier } from '../client/timestamp.ts'
import { linksIn, withoutLinks } from '../client/wrappers/grading.ts'
import { LIMITS } from '../server/interface/limits.ts'
import { putJournalSlot } from '../server/journal/operations.ts'
import { MAX_SLOT_BYTES } from '../server/journal/slots.ts'
import { MAX_QUOTE_CHARS } from '../server/quotes/quote-check.ts'
import { extract } from '../workers/text/page/text-thread.ts'
import { findQuotes } from '../workers/text/quote-thread.ts'
import { textDirective } from '../workers/text/text-fragment.ts'
import { englishTexts, localReaders, sentences } from './assessment/local/reader.ts'
import { hostileFiles, hostileReports } from './client/hostile-reports.ts'
import { PARTS } from './client/package-parts.ts'
import { zipOf } from './client/zip.ts'
import { fill, hostilePages } from './text/hostile-pages.ts'

/** Makes an input of about so many characters. */
export type Build = (size: number) => string

export interface Reader {
  /** The largest input, in characters. */
  limit: number
  /** The largest that is looked at where the limit would take minutes. */
  usualLimit?: number
  /** The work that is the same for each input is counted apart. */
  isApart?: boolean
  inputs: Readonly<Record<string, Build>>
  /** A refusal counts as the end of the work. */
  read(input: string): unknown
}

/** Small parts of which every text may consist: what opens and never closes, marks, and characters that take others in. */
const UNITS = [
  ...[
    '/*',
    '<!--',
    '<',
    '&',
    '"',
    "'",
    '“a ',
    '`',
    '[',
    '[a',
    '(',
    '{',
    '\\',
    '- ',
    '> ',
    '# ',
    '1. ',
    ' a=b',
    '*a _b ',
  ],
  ...[
    'a ',
    'a',
    ' ',
    '\t',
    '\n',
    '\r',
    'a\r',
    'a\n',
    '. ',
    'e\u0301',
    '\u0301',
    '\u200b',
    '\u3099',
    '😀',
    '中',
    '1 ',
    'https://s.test/a ',
  ],
]
const generated = Object.fromEntries(
  UNITS.map((unit) => [`${JSON.stringify(unit)} again and again`, (size: number) => fill(size, unit)]),
)

const encoder = new TextEncoder()

const page = (contentType: string) => (text: string) =>
  extract({ body: encoder.encode(text).slice(0, LIMITS.decodedBytes), contentEncoding: 'identity', contentType })

const report = (parse: (text: string) => Report | Promise<Report>) => async (text: string) => {
  try {
    findCitations(await parse(text))
  } catch (error) {
    if (!(error instanceof UnreadableReportError)) throw error
  }
}

const chunksOf = (text: string) =>
  async function* () {
    yield encoder.encode(text)
  }

/** Fewer than there may be, to save time: each costs the same. */
const QUOTES = 3

/** Quotes as long as they may be: of the text, and of none. */
const quotesOf = (text: string) =>
  Array.from({ length: QUOTES }, (_, i) => ({
    quote:
      `${i % 2 ? 'absent ' : ''}${text.slice(i * 7, i * 7 + MAX_QUOTE_CHARS / 2)}`.slice(0, MAX_QUOTE_CHARS) || 'x',
    near: i,
  }))

/** A result as far as it says what it is, with the text in its place. */
const resultOf: Record<string, Build> = {
  'a result with a long text': (size) => JSON.stringify(result('x'.repeat(size), 6)),
  'a result of many quotes': (size) => JSON.stringify(result('x', size / 100)),
  'a result of many flags': (size) =>
    JSON.stringify({ ...result('x', 1), risk_flags: Array(Math.floor(size / 4)).fill('a') }),
}
const result = (text: string, quotes: number) => ({
  status: 'completed',
  receipt: { attestation: {} },
  result: {
    source: { final_url: 'https://s.test/a', normalized_text: text },
    evidence: Array.from({ length: quotes }, (_, i) => ({
      evidence_id: `e${i}`,
      stance: 'supports',
      quote: 'x',
      start: 0,
      end: 1,
    })),
  },
})

/** Values in DER that hold many others, or one in the other, in bytes of latin1. */
const UNITS_OF_DER = [
  '\x30\x80',
  '\x30\x82\xff\xff',
  '\x05\x00',
  '\x02\x01\x01',
  '\x24\x80',
  '\xa0\x80',
  '\x06\x01\xff',
  '0\x03\x02\x01\x00',
]
const replies = Object.fromEntries(
  UNITS_OF_DER.map((unit) => [
    `${JSON.stringify(unit)} again and again`,
    (size: number) => {
      const content = fill(size, unit)
      return `\x30\x83${String.fromCharCode(content.length >> 16, (content.length >> 8) & 255, content.length & 255)}${content}`
    },
  ]),
)
const timestamps = await openTimestampVerifier('')

const files = { ...hostileFiles, ...resultOf }

const json = (text: string) => {
  try {
    canonicalJson(parseJson(text))
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error
  }
}

/** The archives of an evidence package, and a response in them: each is read whatever the others are. */
const packaged = (text: string) => {
  const bytes = new Uint8Array(Buffer.from(text, 'latin1'))
  for (const read of [
    () => readZip(bytes),
    () => readWarc(bytes),
    () => unframed(splitResponse(bytes)),
    () => readManifest(new Map([['evidence/manifest.json', bytes]])),
  ])
    try {
      read()
    } catch (error) {
      if (!(error instanceof Fault)) throw error
    }
}

const OK = 'HTTP/1.1 200 OK\r\n'
const gzipped = (text: string) => gzipSync(text).toString('latin1')
const record = (block: string) => gzipped(`WARC/1.1\r\nContent-Length: ${block.length}\r\n\r\n${block}\r\n\r\n`)
const stored = (files: Map<string, Buffer>) => zipOf(files).toString('latin1')
const packages: Record<string, Build> = {
  'a ZIP of a large file': (size) => stored(new Map([['a', Buffer.alloc(size)]])),
  'a ZIP of many files': (size) =>
    stored(
      new Map(
        Array.from({ length: Math.min(size / 100, 200) }, (_, i) => [`f${i}`, Buffer.alloc(Math.floor(size / 200))]),
      ),
    ),
  'many ends of a ZIP': (size) => fill(size, 'PK\x05\x06'),
  'records that inflate to little': (size) => fill(size, record('')),
  'a record that inflates to much': (size) => record('x'.repeat(size * 8)),
  'a record of many lines': (size) => gzipped(`WARC/1.1\r\n${fill(size, 'a: b\r\n')}`),
  'small chunks': (size) => `${OK}Transfer-Encoding: chunked\r\n\r\n${fill(size, '1\r\nx\r\n')}0\r\n\r\n`,
  'a chunk without an end of its size': (size) => `${OK}Transfer-Encoding: chunked\r\n\r\n1${fill(size, ';')}`,
  'early responses': (size) => `${fill(size, 'HTTP/1.1 103 Early\r\n\r\n')}${OK}\r\n`,
  'many fields': (size) => `${OK}${fill(size, 'a: b\r\n')}\r\n`,
  'blanks in a field': (size) => `${OK}a: b${' '.repeat(size)}c\r\n\r\n`,
  'blanks in a WARC field': (size) => gzipped(`WARC/1.1\r\na: b${' '.repeat(Math.min(size, 260_000))}c\r\n\r\n`),
}

/** What a part of a package is made of; see test/client/whole-packages.ts. */
const wholePackages = Object.fromEntries(PARTS.map((part) => [part, (size: number) => `${part}\n${'x'.repeat(size)}`]))

export const readers: Readonly<Record<string, Reader>> = {
  'pages of HTML': {
    limit: LIMITS.decodedBytes,
    inputs: { ...hostilePages, ...generated },
    read: page('text/html; charset=utf-8'),
  },
  'pages of plain text': { limit: LIMITS.decodedBytes, inputs: generated, read: page('text/plain; charset=utf-8') },
  'style and its selectors': {
    limit: LIMITS.decodedBytes,
    inputs: Object.fromEntries(
      Object.entries(generated).flatMap(([name, build]) => [
        [`rules of ${name}`, (size: number) => `<style>${build(size / 2)}</style>${'<p class=a>x'.repeat(size / 24)}`],
        [`selectors of ${name}`, (size: number) => `<style>p${build(size)}{display:none}</style><p>x`],
      ]),
    ),
    read: page('text/html; charset=utf-8'),
  },
  'quotes in a text': {
    limit: LIMITS.textChars,
    inputs: generated,
    read: (text) => findQuotes({ text, quotes: quotesOf(text) }),
  },
  'links to a passage': {
    limit: LIMITS.textChars,
    inputs: generated,
    read: (text) => {
      const from = Math.max(0, text.length - 400)
      textDirective(text, from, text.length)
      findTextDirective(text, Math.max(0, Array.from(text).length - 400), Array.from(text).length)
    },
  },
  'passages that the local verifier chooses': {
    limit: LIMITS.textChars,
    inputs: { ...sentences, ...generated },
    read: localReaders.choice,
  },
  'passages that the local verifier chooses for a long claim': {
    limit: LIMITS.textChars,
    inputs: { ...sentences, ...generated },
    read: localReaders.longChoice,
  },
  'texts that the local verifier assesses': {
    limit: LIMITS.textChars,
    inputs: englishTexts(UNITS),
    read: localReaders.assessment,
  },
  'reports in Markdown': { limit: MAX_REPORT, inputs: { ...hostileReports, ...generated }, read: report(readMarkdown) },
  'reports in HTML': { limit: MAX_REPORT, inputs: { ...hostileReports, ...generated }, read: report(readHtml) },
  'files dropped on /verify': {
    limit: 4_194_304,
    inputs: { ...files, ...generated },
    read: (text) => examine(chunksOf(text), { pinned: [], published: null }, LEASES),
  },
  'files of `countersign verify`': {
    limit: 4_194_304,
    inputs: { ...files, ...generated },
    read: (text) => verifyDocument(chunksOf(text)(), { keys: [] }),
  },
  'packages of `countersign replay`': {
    limit: 4_194_304,
    inputs: { ...packages, ...generated },
    read: packaged,
  },
  'whole packages of `countersign replay`': {
    // The files of each package take some kB more.
    limit: MOST_PACKAGE_BYTES - 1_048_576,
    usualLimit: 4_194_304,
    isApart: true,
    inputs: wholePackages,
    // Loaded only for this row, because each count looks at all code that is loaded.
    read: async (text) => (await import('./client/whole-packages.ts')).replayWhole(text),
  },
  'texts that a wrapper grades': {
    limit: 1_048_576,
    inputs: {
      ...generated,
      'links without an end': (size) => fill(size, '[a](https://'),
      'marks in an address': (size) => `https://a${fill(size, '*')}a`,
    },
    read: (text) => [linksIn(text), withoutLinks(text)],
  },
  'JSON that is signed': { limit: 4_194_304, inputs: { ...files, ...generated }, read: json },
  'replies of time-stamp authorities': {
    limit: MAX_REPLY_BYTES - 64,
    inputs: replies,
    read: (text) => timestamps.verify(Buffer.from(text, 'latin1'), encoder.encode('x')),
  },
  'values of the journal': {
    limit: MAX_SLOT_BYTES,
    inputs: generated,
    read: (text) => putJournalSlot.input.parse({ slot: 'a', data: Buffer.from(text) }),
  },
}
