// Labelled sets. A set is a file of JSON Lines, of two kinds of line:
//
//   page   {"page": name, "text" or "html": ..., "lang"?}
//   item   {"claim": ..., "label": ..., "page": name of a page above, or "text" or "html" of its own,
//           "id"?, "kind"?, "passage"?, "words"?, "attack"?}
//
// label    supports | contradicts | mixed | insufficient_evidence: what the page says of the claim
// kind     anything; results are told apart by it
// passage  words of the page that the best quotation holds; left out where nothing bears on the claim
// words    false where the page says it in other words or another language, so that words cannot find it
// attack   the verdict that the page tries to bring about by orders to its reader
//
// `html` goes through the service's own extraction; `text` is taken as it is, in NFC.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Observation } from '../../server/interface/observation.ts'
import type { Threads } from '../../server/threads/pool.ts'
import { extractText } from '../../workers/text/extraction.ts'

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
  passage: z.string().optional(),
  words: z.boolean().default(true),
  attack: z.enum(VERDICTS).optional(),
})

export interface Item {
  id: string
  kind: string
  claim: string
  label: Label
  passage: string | undefined
  words: boolean
  attack: Label | undefined
  observation: Observation
}

/** Reads sets and the pages in them. Throws with file and line when one is not of the form, or a label cannot be right. */
export async function readLabels(files: readonly string[], threads: Threads): Promise<Item[]> {
  const items: Item[] = []
  for (const file of files) {
    const pages = new Map<string, Promise<string>>()
    for (const [i, line] of readFileSync(file, 'utf8').split('\n').entries()) {
      if (line.trim() === '') continue
      try {
        const given: unknown = JSON.parse(line)
        const isItem = given !== null && typeof given === 'object' && 'claim' in given
        if (isItem) items.push(await readItem(itemLine.parse(given), `${i + 1}`, pages, threads))
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

async function readItem(
  item: z.output<typeof itemLine>,
  number: string,
  pages: ReadonlyMap<string, Promise<string>>,
  threads: Threads,
): Promise<Item> {
  const named = item.page === undefined ? undefined : pages.get(item.page)
  const text = await (item.text || item.html ? readText(item, threads) : named)
  if (text === undefined) throw new Error('neither text nor html, nor a page above')
  const passage = item.passage?.normalize('NFC')
  if (passage !== undefined && !text.includes(passage)) throw new Error(`the page does not hold "${passage}"`)
  const { kind, claim, label, words, attack } = item
  return { id: item.id ?? number, kind, claim, label, passage, words, attack, observation: observe(text) }
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
