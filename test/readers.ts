// Everything that reads what strangers send, with its limit and the worst that it may be sent. One row for each reader: the rule
// of test/readers.test.ts and the measurements of bench/text.ts hold for all of them.

import { verifyDocument } from '../client/document.ts'
import { splitResponse, unframed } from '../client/evidence/http-message.ts'
import { readManifest } from '../client/evidence/manifest.ts'
import { Fault } from '../client/evidence/steps.ts'
import { readWarc } from '../client/evidence/warc.ts'
import { MOST_PACKAGE_BYTES, readZip } from '../client/evidence/zip.ts'
import { canonicalJson, MAX_JSON_BYTES, parseJson } from '../client/json.ts'
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
import { LIMITS, MAX_QUOTE_CHARS, MAX_SLOT_BYTES } from '../server/interface/limits.ts'
import { extract } from '../workers/text/page/text-thread.ts'
import { findQuotes } from '../workers/text/quote-thread.ts'
import { textDirective } from '../workers/text/text-fragment.ts'
import { claims, englishTexts, localReaders, sentences } from './assessment/local/reader.ts'
import { packages } from './client/hostile-packages.ts'
import { hostileFiles, hostileReports } from './client/hostile-reports.ts'
import { PARTS } from './client/package-parts.ts'
import type { Heap } from './reader-memory.ts'
import { fill, hostilePages } from './text/hostile-pages.ts'
import { generated, UNITS } from './text/units.ts'

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
  /** What all inputs may take at the limit, one after the other in one process. */
  most: Most
  /** Inputs that need most memory, which the usual run of the tests tries too. */
  heaviest?: readonly string[]
  /** A refusal counts as the end of the work. */
  read(input: string): unknown
}

/** `megabytes` resident in all, with the tests' own 100 to 140; `ms` of the processor for one input, several times what a slow core takes. */
export interface Most {
  heap: Heap
  megabytes: number
  ms: number
}
const inThread = (megabytes: number, ms: number): Most => ({ heap: 'thread', megabytes, ms })
const inClient = (megabytes: number, ms: number): Most => ({ heap: 'client', megabytes, ms })

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

/** As browsers and files give them. */
const CHUNK = 65_536
const chunksOf = (text: string) => {
  const bytes = encoder.encode(text).subarray(0, MAX_JSON_BYTES)
  return async function* () {
    for (let at = 0; at < bytes.length || at === 0; at += CHUNK) yield bytes.subarray(at, at + CHUNK)
  }
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
  'a result with a long text': (size) => JSON.stringify(result('x'.repeat(size - 800), 6)),
  'a result of many quotes': (size) => JSON.stringify(result('x', size / 100)),
  'a result of many flags': (size) =>
    JSON.stringify({ ...result('x', 1), risk_flags: Array(Math.min(Math.floor(size / 4) - 100, 399_000)).fill('a') }),
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
let timestamps: ReturnType<typeof openTimestampVerifier> | undefined

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

/** What a part of a package is made of; see test/client/whole-packages.ts. */
const wholePackages = Object.fromEntries(PARTS.map((part) => [part, (size: number) => `${part}\n${'x'.repeat(size)}`]))

export const readers: Readonly<Record<string, Reader>> = {
  'pages of HTML': {
    most: inThread(640, 10_000),
    limit: LIMITS.decodedBytes,
    inputs: { ...hostilePages, ...generated },
    heaviest: ['null characters in table'],
    read: page('text/html; charset=utf-8'),
  },
  'pages of plain text': {
    most: inThread(420, 5_000),
    limit: LIMITS.decodedBytes,
    inputs: { ...generated, 'form feeds': (size) => fill(size, '\f') },
    heaviest: ['form feeds'],
    read: page('text/plain; charset=utf-8'),
  },
  'style and its selectors': {
    most: inThread(520, 5_000),
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
    most: inThread(300, 5_000),
    limit: LIMITS.textChars,
    inputs: generated,
    read: (text) => findQuotes({ text, quotes: quotesOf(text) }),
  },
  'links to a passage': {
    most: inThread(300, 5_000),
    limit: LIMITS.textChars,
    inputs: generated,
    read: (text) => {
      const from = Math.max(0, text.length - 400)
      textDirective(text, from, text.length)
      findTextDirective(text, Math.max(0, Array.from(text).length - 400), Array.from(text).length)
    },
  },
  'passages that the local verifier chooses': {
    most: inThread(300, 5_000),
    limit: LIMITS.textChars,
    inputs: { ...sentences, ...generated },
    read: localReaders.choice,
  },
  'passages that the local verifier chooses for a long claim': {
    most: inThread(300, 8_000),
    limit: LIMITS.textChars,
    inputs: { ...sentences, ...generated },
    read: localReaders.longChoice,
  },
  'texts that the local verifier assesses': {
    most: inThread(300, 5_000),
    limit: LIMITS.textChars,
    inputs: englishTexts(UNITS),
    read: localReaders.assessment,
  },
  'claims that the local verifier assesses': {
    most: inThread(260, 5_000),
    limit: LIMITS.claimChars,
    isApart: true,
    inputs: { ...claims, ...sentences, ...generated },
    read: localReaders.claim,
  },
  'reports in Markdown': {
    most: inClient(450, 15_000),
    limit: MAX_REPORT,
    inputs: { ...hostileReports, ...generated },
    read: report(readMarkdown),
  },
  'reports in HTML': {
    most: inClient(620, 15_000),
    limit: MAX_REPORT,
    heaviest: ['quoted elements in each other', '"a\\n" again and again'],
    inputs: { ...hostileReports, ...generated },
    read: report(readHtml),
  },
  'files dropped on /verify': {
    most: inClient(640, 20_000),
    limit: MAX_JSON_BYTES,
    usualLimit: 4_194_304,
    heaviest: ['brackets in brackets', 'header lines without a body'],
    inputs: { ...files, ...generated },
    read: (text) => examine(chunksOf(text), { pinned: [], published: null }, LEASES),
  },
  'files of `countersign verify`': {
    most: inClient(620, 10_000),
    limit: MAX_JSON_BYTES,
    usualLimit: 4_194_304,
    inputs: { ...files, ...generated },
    read: (text) => verifyDocument(chunksOf(text)(), { keys: [] }),
  },
  'packages of `countersign replay`': {
    most: inClient(900, 15_000),
    // Of one response: an archive inflates to twice as much. The next row has packages as large as they may be.
    limit: 16_777_216,
    usualLimit: 4_194_304,
    inputs: { ...packages, ...generated },
    read: packaged,
  },
  'whole packages of `countersign replay`': {
    // To make the package takes a part of it.
    most: inClient(1600, 20_000),
    // The files of each package take some kB more.
    limit: MOST_PACKAGE_BYTES - 1_048_576,
    usualLimit: 4_194_304,
    isApart: true,
    inputs: wholePackages,
    // Loaded only for this row, because each count looks at all code that is loaded. So are those of timestamps and of the journal.
    read: async (text) => (await import('./client/whole-packages.ts')).replayWhole(text),
  },
  'texts that a wrapper grades': {
    most: inClient(320, 5_000),
    limit: 1_048_576,
    inputs: {
      ...generated,
      'links without an end': (size) => fill(size, '[a](https://'),
      'marks in an address': (size) => `https://a${fill(size, '*')}a`,
    },
    read: (text) => [linksIn(text), withoutLinks(text)],
  },
  'JSON that is signed': {
    most: inClient(600, 10_000),
    limit: MAX_JSON_BYTES,
    usualLimit: 4_194_304,
    inputs: { ...files, ...generated },
    read: json,
  },
  'replies of time-stamp authorities': {
    most: inThread(300, 5_000),
    limit: MAX_REPLY_BYTES - 64,
    inputs: replies,
    read: async (text) => {
      timestamps ??= openTimestampVerifier('')
      return (await timestamps).verify(Buffer.from(text, 'latin1'), encoder.encode('x'))
    },
  },
  'values of the journal': {
    most: inThread(250, 5_000),
    limit: MAX_SLOT_BYTES,
    inputs: generated,
    read: async (text) => {
      const { putJournalSlot } = await import('../server/journal/operations.ts')
      return putJournalSlot.input.parse({ slot: 'a', data: Buffer.from(text) })
    },
  },
}
