// Pages of the chain, as GET /v1/chain sends them. Receipts never change, so a full page is rendered once: its bytes serve
// every later call, whole or cut to a part of it, and callers who take gzip share one compressed form.
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import type { Database } from '../db/pool.ts'
import { renderRange } from './archive.ts'
import type { Head } from './head.ts'

export interface Range {
  from: number
  to: number
}

/** Most receipts of one answer. */
export const PAGE_SIZE = 1000

/** The receipts n·1000 + 1 to (n + 1)·1000: the pages of who reads the chain from its beginning. */
export function isFullPage({ from, to }: Range): boolean {
  return from % PAGE_SIZE === 1 && to === from + PAGE_SIZE - 1
}

export interface Page {
  /** JSON, as GET /v1/chain answers it. */
  body: Buffer
  /** Value of Content-Encoding. */
  encoding: 'gzip' | null
  /**
   * Names what the page holds, in quotes. A full page has the same bytes from every process and at any time. Others differ in
   * `head_serial`, so their tag is weak.
   */
  etag: string
}

export interface Pages {
  /**
   * A full page, whose `head_serial` is its own last serial: the head that completed it. Null while the chain is shorter.
   * @param findHead asked only where the page is not kept: one that is kept is below every head
   */
  full(range: Range, findHead: () => Promise<Head>, options: { takesGzip: boolean }): Promise<Page | null>
  /** Any range up to this head, with the head's serial. */
  part(range: Range, head: Head): Promise<Page>
}

interface Kept {
  body: Buffer
  /** Where the text of the first receipt begins. */
  start: number
  /** Where the text of each receipt ends; a comma lies between two. */
  ends: Uint32Array
}

interface Zipped {
  body: Buffer
  lastHash: string
}

/** 640 kB a page. */
const MAX_PAGE_BYTES = 64 * 1024 * 1024
/** A quarter of that a page. */
const MAX_GZIP_BYTES = 32 * 1024 * 1024
const MAX_PART_BYTES = 16 * 1024 * 1024
/** What an entry needs beside its bytes. */
const ENTRY_BYTES = 500
/** A shorter part of a page that is not kept is rendered alone: the whole page would cost its caller more. */
const PAGE_PAYS = PAGE_SIZE / 4

export function openPages(db: Database): Pages {
  const pages = new LRUCache<number, Kept>({
    maxSize: MAX_PAGE_BYTES,
    sizeCalculation: ({ body, ends }) => body.length + ends.byteLength + ENTRY_BYTES,
    fetchMethod: (from) => renderFull(db, from),
  })
  const zipped = new LRUCache<number, Zipped, Kept>({
    maxSize: MAX_GZIP_BYTES,
    sizeCalculation: ({ body }) => body.length + ENTRY_BYTES,
    fetchMethod: async (_from, _stale, { context: page }) => ({
      body: await promisify(gzip)(page.body),
      lastHash: lastHash(page),
    }),
  })
  const parts = new LRUCache<string, Kept, Range>({
    maxSize: MAX_PART_BYTES,
    sizeCalculation: ({ body, ends }) => body.length + ends.byteLength + ENTRY_BYTES,
    fetchMethod: (_name, _stale, { context }) => render(db, context),
  })

  /** Pieces of the pages that hold the range, in order. */
  function piecesOf(range: Range, head: Head): Promise<Piece[]> {
    return Promise.all(
      splitByPage(range).map(async ({ page, from, to }) => {
        const isWhole = page + PAGE_SIZE - 1 <= head.serial
        const kept =
          isWhole && (pages.has(page) || to - from >= PAGE_PAYS - 1) ? await pages.forceFetch(page) : undefined
        return kept
          ? cut(kept, from - page, to - page)
          : cut(await parts.forceFetch(`${from}-${to}`, { context: { from, to } }), 0, to - from)
      }),
    )
  }

  return {
    async full(range, findHead, { takesGzip }) {
      const { from, to } = range
      const known = takesGzip && zipped.get(from)
      if (!known && !pages.has(from) && (await findHead()).serial < to) return null
      if (!takesGzip) {
        const page = await pages.forceFetch(from)
        return { body: page.body, encoding: null, etag: `"${from}-${to}-${lastHash(page)}"` }
      }
      const { body, lastHash: hash } =
        known || (await zipped.forceFetch(from, { context: await pages.forceFetch(from) }))
      return { body, encoding: 'gzip', etag: `"${from}-${to}-${hash}-gzip"` }
    },
    async part(range, head) {
      const preface = Buffer.from(prefaceOf(range, head.serial))
      if (range.from > range.to) return { body: Buffer.concat([preface, END]), encoding: null, etag: '' }
      const pieces = await piecesOf(range, head)
      const texts = pieces.flatMap(({ text }, n) => (n === 0 ? [text] : [COMMA, text]))
      const etag = `W/"${range.from}-${range.to}-${pieces.at(-1)?.lastHash}"`
      return { body: Buffer.concat([preface, ...texts, END]), encoding: null, etag }
    },
  }
}

const COMMA = Buffer.from(',')
const END = Buffer.from(']}')

function prefaceOf({ from, to }: Range, headSerial: number): string {
  return `{"from":${from},"to":${to},"head_serial":${headSerial},"attestations":[`
}

/** The parts of a range by the pages that hold them. @returns `page`: the first serial of the page */
function splitByPage({ from, to }: Range) {
  const found: { page: number; from: number; to: number }[] = []
  for (let at = from; at <= to; ) {
    const page = at - ((at - 1) % PAGE_SIZE)
    const end = Math.min(to, page + PAGE_SIZE - 1)
    found.push({ page, from: at, to: end })
    at = end + 1
  }
  return found
}

async function renderFull(db: Database, from: number): Promise<Kept> {
  const range = { from, to: from + PAGE_SIZE - 1 }
  const { body, ends } = await render(db, range)
  const preface = Buffer.from(prefaceOf(range, range.to))
  return {
    body: Buffer.concat([preface, body, END]),
    start: preface.length,
    ends: ends.map((end) => end + preface.length),
  }
}

/** The receipts of a range that exists. Throws if one is missing: a page with a hole must not be kept. */
async function render(db: Database, { from, to }: Range): Promise<Kept> {
  const { text, lengths } = await renderRange(db, from, to)
  if (lengths.length !== to - from + 1) throw new Error(`the chain has a hole between ${from} and ${to}`)
  const ends = new Uint32Array(lengths.length)
  let at = 0
  for (const [n, length] of lengths.entries()) {
    ends[n] = at + length
    at += length + COMMA.length
  }
  return { body: Buffer.from(text), start: 0, ends }
}

interface Piece {
  text: Buffer
  lastHash: string
}

/** The receipts from the nth to the mth of what is kept, both included, counted from 0. */
function cut(kept: Kept, n: number, m: number): Piece {
  const { body, start, ends } = kept
  const end = endOf(ends, m)
  return {
    text: body.subarray(n === 0 ? start : endOf(ends, n - 1) + COMMA.length, end),
    lastHash: hashBefore(body, end),
  }
}

function lastHash({ body, ends }: Kept): string {
  return hashBefore(body, endOf(ends, ends.length - 1))
}

function endOf(ends: Uint32Array, n: number): number {
  const end = ends[n]
  if (end === undefined) throw new RangeError(`there is no receipt ${n} among ${ends.length}`)
  return end
}

/** What follows `receipt_hash` in the text of a receipt: a signature of 64 bytes in hex, and the marks around it. */
const AFTER_HASH = '","sig_ed25519_hex":""}'.length + 128
const HASH_LENGTH = 64

/** `receipt_hash` of the receipt whose text ends here; it covers all receipts before. */
function hashBefore(body: Buffer, end: number): string {
  return body.toString('latin1', end - AFTER_HASH - HASH_LENGTH, end - AFTER_HASH)
}
