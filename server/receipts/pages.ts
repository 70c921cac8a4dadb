// Pages of the chain, as GET /v1/chain sends them. Receipts never change, so a full page is rendered once: its text serves every
// later call, whole or cut to a part of it.
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

/** The receipts n·1000 + 1 to (n + 1)·1000: the pages that a caller requests who reads the chain from its beginning. */
export function isFullPage({ from, to }: Range): boolean {
  return from % PAGE_SIZE === 1 && to === from + PAGE_SIZE - 1
}

export interface Page {
  /** JSON, as GET /v1/chain answers it. */
  body: Buffer
  /** Names the receipts of the page, in quotes; weak, because `head_serial` may differ. Empty for a page without receipts. */
  etag: string
}

export interface Pages {
  /** Any range up to this head, with the head's serial. */
  read(range: Range, head: Head): Promise<Page>
}

interface Kept {
  /** The receipts, with a comma between two. */
  text: Buffer
  /** Where the text of each receipt ends. */
  ends: Uint32Array
}

/** A full page as it was sent last. */
interface Sent {
  headSerial: number
  page: Page
}

/** 640 kB a page. */
const MAX_PAGE_BYTES = 64 * 1024 * 1024
const MAX_SENT_BYTES = 32 * 1024 * 1024
const MAX_PART_BYTES = 16 * 1024 * 1024
/** Bytes of memory that an entry needs in addition to its text. */
const ENTRY_BYTES = 500
/** A shorter part of a page that is not kept is rendered alone: the whole page would cost its caller more. */
const PAGE_PAYS = PAGE_SIZE / 4

export function openPages(db: Database): Pages {
  const sizeCalculation = ({ text, ends }: Kept) => text.length + ends.byteLength + ENTRY_BYTES
  const pages = new LRUCache<number, Kept>({
    maxSize: MAX_PAGE_BYTES,
    sizeCalculation,
    fetchMethod: (from) => render(db, { from, to: from + PAGE_SIZE - 1 }),
  })
  const parts = new LRUCache<string, Kept, Range>({
    maxSize: MAX_PART_BYTES,
    sizeCalculation,
    fetchMethod: (_name, _stale, { context }) => render(db, context),
  })
  // A copy of a full page costs more than sending it, so it is made again only when the head has moved.
  const sent = new LRUCache<number, Sent>({
    maxSize: MAX_SENT_BYTES,
    sizeCalculation: ({ page }) => page.body.length + ENTRY_BYTES,
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

  async function make({ from, to }: Range, head: Head): Promise<Page> {
    const preface = Buffer.from(`{"from":${from},"to":${to},"head_serial":${head.serial},"attestations":[`)
    if (from > to) return { body: Buffer.concat([preface, END]), etag: '' }
    const pieces = await piecesOf({ from, to }, head)
    const texts = pieces.flatMap(({ text }, n) => (n === 0 ? [text] : [COMMA, text]))
    const etag = `W/"${from}-${to}-${pieces.at(-1)?.lastHash}"`
    return { body: Buffer.concat([preface, ...texts, END]), etag }
  }

  return {
    async read(range, head) {
      if (!isFullPage(range)) return make(range, head)
      const last = sent.get(range.from)
      if (last?.headSerial === head.serial) return last.page
      const page = await make(range, head)
      sent.set(range.from, { headSerial: head.serial, page })
      return page
    },
  }
}

const COMMA = Buffer.from(',')
const END = Buffer.from(']}')

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
  return { text: Buffer.from(text), ends }
}

interface Piece {
  text: Buffer
  lastHash: string
}

/** The receipts from the nth to the mth of what is kept, both included, counted from 0. */
function cut({ text, ends }: Kept, n: number, m: number): Piece {
  const end = endOf(ends, m)
  return {
    text: text.subarray(n === 0 ? 0 : endOf(ends, n - 1) + COMMA.length, end),
    lastHash: hashBefore(text, end),
  }
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
function hashBefore(text: Buffer, end: number): string {
  return text.toString('latin1', end - AFTER_HASH - HASH_LENGTH, end - AFTER_HASH)
}
