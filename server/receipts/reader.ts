// Reading the chain for many callers at once. What never changes is kept in memory; what does, the head, is read for all who
// ask at the same time by one query that began after the last of them asked, so nobody is shown an older head than was
// there when he came.
import { LRUCache } from 'lru-cache'
import { openBatcher } from '../db/batch.ts'
import type { Database } from '../db/pool.ts'
import type { Attestation } from '../interface/attestation.ts'
import { exportRange, findAttestations, findHash, type NodeLoader } from './archive.ts'
import { findHead, type Head } from './head.ts'
import { buildTiles } from './tiles.ts'

export interface Reader extends AsyncDisposable {
  head(): Promise<Head>
  /** Null when there is none. */
  attestation(serial: number): Promise<Attestation | null>
  /** Receipts that this head covers, and the head's serial, as they are sent. */
  page(range: Range, head: Head): Promise<Page>
  /** Loads nodes of the tree that this head is of, or of an older one. */
  nodes(head: Head): NodeLoader
}

export interface Range {
  from: number
  to: number
}

export interface Page {
  /** JSON, as GET /v1/chain answers it. */
  body: Buffer
  /** The last receipt's: stands for all before it. */
  receiptHash: string
}

interface KeptPage extends Page {
  /** What stands before the attestations, which are all that never changes. */
  preface: string
}

const MAX_PAGE_BYTES = 64 * 1024 * 1024
/** Serials of one query. */
const MAX_GROUP = 256

export function openReader(db: Database): Reader {
  const heads = openBatcher<null, Head>(
    async (asking) => {
      const head = await findHead(db)
      return asking.map(() => head)
    },
    { batch: Number.POSITIVE_INFINITY, queue: Number.POSITIVE_INFINITY },
  )
  const attestations = openBatcher<number, Attestation | null>((serials) => findAttestations(db, serials), {
    batch: MAX_GROUP,
    queue: Number.POSITIVE_INFINITY,
  })
  const pages = new LRUCache<string, KeptPage, Range>({
    maxSize: MAX_PAGE_BYTES,
    sizeCalculation: (page) => page.body.length + 300,
    fetchMethod: (_name, _stale, { context }) => loadPage(db, context),
  })
  const tiles = buildTiles(db)
  return {
    head: () => heads.add(null),
    attestation: (serial) => attestations.add(serial),
    async page(range, head) {
      const page = await pages.forceFetch(`${range.from}-${range.to}`, { context: range })
      // The same bytes are sent again until the head moves: a copy of a large page would cost more than sending it.
      const preface = prefaceOf(range, head)
      if (page.preface !== preface) {
        page.body = Buffer.concat([Buffer.from(preface), page.body.subarray(page.preface.length)])
        page.preface = preface
      }
      return page
    },
    nodes: tiles.under,
    async [Symbol.asyncDispose]() {
      await heads[Symbol.asyncDispose]()
      await attestations[Symbol.asyncDispose]()
    },
  }
}

function prefaceOf({ from, to }: Range, { serial }: Head): string {
  return `{"from":${from},"to":${to},"head_serial":${serial},"attestations":`
}

async function loadPage(db: Database, range: Range): Promise<KeptPage> {
  const { from, to } = range
  if (from > to) return { preface: '', body: Buffer.from('[]}'), receiptHash: '' }
  const [text, receiptHash] = await Promise.all([exportRange(db, from, to), findHash(db, to)])
  return { preface: '', body: Buffer.from(`${text}}`), receiptHash }
}
