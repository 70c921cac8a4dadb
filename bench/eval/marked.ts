// Data sets with annotated evidence: measures how the literal assessment finds the evidence, compared with BM25.
import { createHash } from 'node:crypto'
import { WAYS, type Way } from '../../server/pages/accuracy/accuracy.ts'
import { assessLiterally } from '../../workers/assessment/literal/search-thread.ts'
import { codePointIndex } from '../../workers/text/offsets.ts'
import { printNote, printRows } from '../table.ts'
import type { Item, Span } from './labels.ts'
import { bm25 } from './peers.ts'
import { type Share, shareOf } from './random.ts'

/** What each way of looking quoted of one item. */
interface Assessed {
  item: Item
  literal: Span[]
  bm25: Span[]
  neighbours: Span[]
}

export interface MeasuredRetrieval {
  top1: Share
  top3: Share
  whole: Share
  abstained: Share
}

export interface Measured {
  set: string
  n: number
  retrieval: Record<Way, MeasuredRetrieval>
  abstainedBy: Map<string, Share>
  quotes: { valid: number; all: number; meanLength: number }
  misses: Item[]
}

/** Measures each set by itself, in the order given. @param onSet called before each set, which may take a minute */
export function measureMarked(items: readonly Item[], onSet: (what: string) => void = () => {}): Measured[] {
  const measured: Measured[] = []
  for (const set of new Set(items.map((item) => item.set))) {
    const own = items.filter((item) => item.set === set)
    onSet(`${set}: ${own.length} items`)
    const { assessed, quotes } = assess(own)
    const marked = assessed.filter(({ item }) => item.gold.length > 0)
    const labels = new Set(own.map(labelOf))
    measured.push({
      set,
      n: own.length,
      retrieval: {
        literal: retrieval(marked, 'literal'),
        bm25: retrieval(marked, 'bm25'),
        neighbours: retrieval(marked, 'neighbours'),
      },
      abstainedBy: new Map(
        [...labels].sort().map((label) => [
          label,
          abstention(
            assessed.filter(({ item }) => labelOf(item) === label),
            'literal',
          ),
        ]),
      ),
      quotes,
      misses: marked.filter((one) => !hits(one, 'literal', 3)).map(({ item }) => item),
    })
  }
  return measured
}

/** The label, and that of the set where it says more. */
const labelOf = ({ label, kind }: Item) => (kind === 'partially_supported' ? kind : label)

const MOST = 6

function assess(items: readonly Item[]) {
  const quotes = { valid: 0, all: 0, meanLength: 0 }
  const literal = items.map(({ claim, observation }) => {
    const text = observation.source.normalized_text
    const index = codePointIndex(text)
    const { evidence } = assessLiterally({ claim, text, digests: DIGESTS })
    return evidence.map(({ start, end, quote }) => {
      const span = { start: index.toUtf16(start), end: index.toUtf16(end) }
      quotes.all++
      if (text.slice(span.start, span.end) === quote) quotes.valid++
      return span
    })
  })
  const lengths = literal.flat().map(({ start, end }) => end - start)
  quotes.meanLength = lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, lengths.length)
  const assessed = items.map((item, i): Assessed => {
    const peer = bm25(item.claim, item.observation.source.normalized_text)
    return {
      item,
      literal: literal[i]!,
      bm25: peer.sentences(MOST),
      neighbours: peer.withNeighbours(MOST, quotes.meanLength),
    }
  })
  return { assessed, quotes }
}

/** A quotation holds at least half of a span. */
export const holds = (quote: Span, gold: Span): boolean =>
  (Math.min(quote.end, gold.end) - Math.max(quote.start, gold.start)) * 2 >= gold.end - gold.start

const hits = (assessed: Assessed, way: Way, most: number): boolean =>
  assessed[way].slice(0, most).some((quote) => assessed.item.gold.flat().some((gold) => holds(quote, gold)))

/** Of one set of spans each is held by some quotation. */
const hasWhole = (assessed: Assessed, way: Way): boolean =>
  assessed.item.gold.some((spans) => spans.every((gold) => assessed[way].some((quote) => holds(quote, gold))))

const pageOf = ({ item }: { item: Item }) => item.observation.source.text_sha256

function retrieval(marked: readonly Assessed[], way: Way): MeasuredRetrieval {
  return {
    top1: shareOf(marked, (one) => hits(one, way, 1), pageOf),
    top3: shareOf(marked, (one) => hits(one, way, 3), pageOf),
    whole: shareOf(marked, (one) => hasWhole(one, way), pageOf),
    abstained: abstention(marked, way),
  }
}

const abstention = (assessed: readonly Assessed[], way: Way): Share =>
  shareOf(assessed, (one) => one[way].length === 0, pageOf)

export function printMarked({ set, n, retrieval, abstainedBy, quotes, misses }: Measured) {
  console.log(`\n${set}: ${n} items, ${retrieval.literal.top1.n} with marked evidence`)
  printRows([
    ['share of those with marked evidence', 'top-1', 'top-3', 'whole set', 'no quote'],
    ...WAYS.map((way): [string, ...string[]] => {
      const { top1, top3, whole, abstained } = retrieval[way]
      return [WAY_NAMES[way], ...[top1, top3, whole, abstained].map(percent)]
    }),
  ])
  printRows([...abstainedBy].map(([label, share]) => [`  literal quotes nothing, label ${label}`, interval(share)]))
  printNote(`quotes valid: ${quotes.valid} of ${quotes.all}; ${Math.round(quotes.meanLength)} characters on average`)
  for (const { id, claim } of misses.slice(0, MOST_LISTED)) printNote(`  not in the first three: ${id} ${claim}`)
}

const WAY_NAMES: Record<Way, string> = {
  literal: 'literal',
  bm25: '  BM25, stemmed',
  neighbours: '  BM25 with neighbours, as long as literal',
}
const percent = ({ share }: Share) => (share === null ? '-' : `${(100 * share).toFixed(1)} %`)
const interval = (share: Share) =>
  share.share === null
    ? 'no case'
    : `${percent(share)} of ${share.n} [${(100 * share.low).toFixed(1)}, ${(100 * share.high).toFixed(1)}]`

/** One set for machines; shares from 0 to 1, null where there is no case. */
export function forMachines({ set, n, retrieval, abstainedBy }: Measured) {
  const plain = ({ top1, top3, whole, abstained }: MeasuredRetrieval) => ({
    top1: top1.share,
    top3: top3.share,
    whole: whole.share,
    abstained: abstained.share,
  })
  return {
    set,
    n,
    literal: {
      ...plain(retrieval.literal),
      abstained_by_label: Object.fromEntries([...abstainedBy].map(([label, { share }]) => [label, share])),
    },
    bm25: plain(retrieval.bm25),
    bm25_neighbours: plain(retrieval.neighbours),
  }
}

/** Which of two parts of the pages an item is in: rules are tuned on one and reported on the other. */
export function partOfPage({ observation }: Item): 'tune' | 'report' {
  const digest = createHash('sha256').update(`part ${observation.source.text_sha256}`).digest()
  return digest[0]! % 2 === 0 ? 'tune' : 'report'
}

const DIGESTS = { sourceSha256: '0'.repeat(64), textSha256: '0'.repeat(64) }
const MOST_LISTED = 40
