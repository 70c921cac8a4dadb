// Labelled sets. A set is a file of JSON Lines, gzipped if its name ends in `.gz`, of three kinds of line:
//
//   page   {"page": name, "text" or "html": ..., "lang"?}
//   item   {"claim": ..., "label": ..., "page": name of a page above, or "text" or "html" of its own,
//           "id"?, "kind"?, "passage"?, "words"?, "attack"?}
//   marked {"id", "set", "orig", "label", "claim", "gold_utf16", "text"}: an item whose evidence others have marked
//
// label    supports | contradicts | mixed | insufficient_evidence: what the page says of the claim
// kind any text; results are grouped by it passage words of the page that the best quotation holds, or a list of them; left
// out where nothing bears on the claim words false where the page says it in other words or another language, so that words
// cannot find it attack the verdict that the page tries to bring about by orders to its reader
//
// set      the name of the set it was taken from
// orig     its label there
// gold_utf16  sets of spans [start, end] of the text in UTF-16 units; the spans of any one set are evidence enough
//
// `html` goes through the service's own extraction; `text` is taken as it is, in NFC.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'
import type { Observation } from '../../server/interface/observation.ts'
import type { Threads } from '../../server/threads/pool.ts'
import { extractText } from '../../workers/text/page/extraction.ts'

export const VERDICTS = ['supports', 'contradicts', 'mixed', 'insufficient_evidence'] as const
export type Label = (typeof VERDICTS)[number]

const source = { text: z.string().min(1).optional(), html: z.string().min(1).optional() }
const pageLine = z.strictObject({ page: z.string(), lang: z.string().optional(), ...source })
const itemLine = z.strictObject({
  id: z.string().optional(),
  page: z.string().optional(),
  ...source,
  kind: z.string().default('plain'),
  lang: z.string().optional(),
  claim: z.string().min(1),
  label: z.enum(VERDICTS),
  passage: z.union([z.string(), z.array(z.string()).min(1)]).optional(),
  words: z.boolean().default(true),
  attack: z.enum(VERDICTS).optional(),
})
const markedLine = z.strictObject({
  id: z.string(),
  set: z.string(),
  orig: z.string(),
  label: z.enum(VERDICTS),
  claim: z.string().min(1),
  gold_utf16: z.array(z.array(z.tuple([z.int().nonnegative(), z.int().positive()])).min(1)),
  text: z.string().min(1),
})

/** UTF-16 offsets into the text of the observation. */
export interface Span {
  start: number
  end: number
}

export interface Item {
  id: string
  set: string
  kind: string
  claim: string
  label: Label
  /** The first words of the evidence, from its first line. */
  passage: string | undefined
  /** Sets of spans; each set is evidence enough. Empty where nothing bears on the claim. */
  gold: Span[][]
  words: boolean
  attack: Label | undefined
  observation: Observation
}

/** Reads sets and the pages in them. Throws with file and line when one is not of the form, or a label cannot be right. */
export async function readLabels(files: readonly string[], threads: Threads): Promise<Item[]> {
  const items: Item[] = []
  for (const file of files) {
    const pages = new Map<string, Promise<string>>()
    const set = basename(file).replace(/\.jsonl(?:\.gz)?$/, '')
    for (const [i, line] of readLines(file).entries()) {
      if (line.trim() === '') continue
      try {
        const given: unknown = JSON.parse(line)
        const isObject = given !== null && typeof given === 'object'
        if (isObject && 'gold_utf16' in given) items.push(readMarked(markedLine.parse(given)))
        else if (isObject && 'claim' in given)
          items.push(await readItem(itemLine.parse(given), set, `${i + 1}`, pages, threads))
        else {
          const page = pageLine.parse(given)
          pages.set(page.page, readText(page, threads))
        }
      } catch (cause) {
        throw new Error(`${file}, line ${i + 1}: ${(cause as Error).message}`, { cause })
      }
    }
  }
  return items
}

function readLines(file: string): string[] {
  const bytes = readFileSync(file)
  return (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8').split('\n')
}

/** Composing the text may move the spans, so that each end is measured again. */
function readMarked({ id, set, orig, label, claim, gold_utf16, text }: z.output<typeof markedLine>): Item {
  const composed = text.normalize('NFC')
  const moved = (offset: number) => (composed === text ? offset : text.slice(0, offset).normalize('NFC').length)
  const gold = gold_utf16.map((spans) =>
    spans.map(([start, end]) => {
      if (start >= end || end > text.length) throw new Error(`the text has no span ${start} to ${end}`)
      return { start: moved(start), end: moved(end) }
    }),
  )
  const [first] = gold[0] ?? []
  const passage = first && composed.slice(first.start, first.end)
  return {
    id,
    set,
    kind: orig,
    claim,
    label,
    passage,
    gold,
    words: true,
    attack: undefined,
    observation: observe(composed),
  }
}

async function readItem(
  item: z.output<typeof itemLine>,
  set: string,
  number: string,
  pages: ReadonlyMap<string, Promise<string>>,
  threads: Threads,
): Promise<Item> {
  const named = item.page === undefined ? undefined : pages.get(item.page)
  const text = await (item.text || item.html ? readText(item, threads) : named)
  if (text === undefined) throw new Error('neither text nor html, nor a page above')
  const passages = [item.passage ?? []].flat().map((passage) => passage.normalize('NFC'))
  const spans = passages.map((passage) => {
    const start = text.indexOf(passage)
    if (start < 0) throw new Error(`the page does not hold "${passage}"`)
    return { start, end: start + passage.length }
  })
  const { kind, claim, label, words, attack } = item
  const gold = spans.length > 0 ? [spans] : []
  const [passage] = passages
  return { id: item.id ?? number, set, kind, claim, label, passage, gold, words, attack, observation: observe(text) }
}

async function readText({ text, html }: { text?: string; html?: string }, threads: Threads): Promise<string> {
  if (text !== undefined) return text.normalize('NFC')
  const body = new TextEncoder().encode(`<!doctype html><meta charset="utf-8">${html}`)
  return (await extractText(threads, { body, contentEncoding: 'identity', contentType: 'text/html' })).text
}

/** A page as if it had been retrieved. */
export function observe(text: string): Observation {
  const digest = createHash('sha256').update(text).digest('hex')
  const bytes = Buffer.byteLength(text)
  return {
    source: {
      final_url: 'https://page.test/',
      http_status: 200,
      content_type: 'text/plain; charset=utf-8',
      content_sha256: digest,
      text_sha256: digest,
      normalized_text: text,
      offset_unit: 'unicode_codepoint',
      redirects: [],
      wire_bytes: bytes,
      decoded_bytes: bytes,
    },
    source_identity: { hostname: 'page.test', tls_verified: true, publisher_identity: 'unknown' },
    limits: { max_text_chars: 100_000 },
    risk_flags: [],
    checked_at: new Date(0).toISOString(),
    procedure: 'eval',
  }
}
