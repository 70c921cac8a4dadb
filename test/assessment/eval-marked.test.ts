// The evaluation on marked evidence counts correctly: its file format, its baselines and its intervals.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { readLabels } from '../../bench/eval/labels.ts'
import { forMachines, measureMarked, partOfPage } from '../../bench/eval/marked.ts'
import { bm25 } from '../../bench/eval/peers.ts'
import { seeded, shareOf } from '../../bench/eval/random.ts'
import { openThreads } from '../../server/threads/pool.ts'

const threads = openThreads({ maxThreads: 1 })
t.teardown(() => threads[Symbol.asyncDispose]())

const HARBOUR =
  'Cafe\u0301 Marlow lies at the pier. The harbour of Marlow was opened in 1874 by the county engineer. It has two piers. The pilots moved to the new tower in 1901.'
const MILL = 'The mill of Kessa grinds oats. It employed 312 people in 1930. A flood took its wheel away in spring.'

function line(id: string, label: string, claim: string, gold: string[][], text: string, orig = label) {
  const spans = gold.map((set) =>
    set.map((words) => [text.indexOf(words), text.indexOf(words) + words.length] as const),
  )
  return JSON.stringify({ id, set: 'ours', orig, label, claim, gold_utf16: spans, text })
}

const OPENED = 'The harbour of Marlow was opened in 1874 by the county engineer.'
const LINES = [
  line('a', 'supports', 'The harbour of Marlow was opened in 1874.', [[OPENED]], HARBOUR),
  line('b', 'contradicts', 'The harbour of Marlow was opened in 1875.', [[OPENED]], HARBOUR),
  line('c', 'insufficient_evidence', 'Violins are built by hand in Cremona.', [], MILL),
  line('d', 'supports', 'The mill of Kessa employed 312 people in 1930.', [['It employed 312 people in 1930.']], MILL),
]

t.test('a gzipped set is read, spans follow the composed text, and what has no such span is refused', async (t) => {
  // The name of tap's own folder would be too long where several files run in one process.
  const folder = mkdtempSync(join(tmpdir(), 'countersign-eval-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'ours.jsonl.gz')
  writeFileSync(file, gzipSync(LINES.join('\n')))
  const items = await readLabels([file], threads)
  t.equal(items.length, 4)
  const { observation, gold } = items[0]!
  const text = observation.source.normalized_text
  t.not(text, HARBOUR, 'the text is composed')
  t.equal(text.slice(gold[0]![0]!.start, gold[0]![0]!.end), OPENED)
  t.same(new Set(items.map(partOfPage)).size > 0, true)
  t.equal(partOfPage(items[0]!), partOfPage(items[1]!), 'one page is in one part')
  writeFileSync(file, gzipSync(line('x', 'supports', 'x', [['y']], 'z').replace('-1,0', '0,99')))
  await t.rejects(readLabels([file], threads), /line 1: the text has no span 0 to 99/)
})

t.test('the first quotes are counted, beside BM25', async (t) => {
  const file = join(t.testdir(), 'ours.jsonl')
  writeFileSync(file, LINES.join('\n'))
  const [measured] = measureMarked(await readLabels([file], threads))
  const { n, literal, bm25 } = forMachines(measured!)
  t.equal(n, 4)
  t.match(literal, { top1: 1, top3: 1, whole: 1, abstained: 0, abstained_by_label: { insufficient_evidence: 1 } })
  t.match(bm25, { top1: 1, top3: 1, whole: 1, abstained: 0 })
})

t.test('BM25 finds stems, and adds neighbouring lines up to the given length', (t) => {
  const text = 'One goat. The harbours open. Two sheep. Three oxen here.'
  const cut = ({ start, end }: { start: number; end: number }) => text.slice(start, end)
  const peer = bm25('A harbour opened', text)
  t.same(peer.sentences(3).map(cut), ['The harbours open.'])
  t.same(peer.withNeighbours(3, 30).map(cut), ['The harbours open. Two sheep.'])
  t.same(peer.withNeighbours(3, 40).map(cut), ['One goat. The harbours open. Two sheep.'])
  t.same(bm25('Violin', text).sentences(3), [])
  t.end()
})

t.test('confidence intervals are the same on every run, contain the share, and resample whole pages', (t) => {
  const random = seeded(1)
  t.same(
    [random(1000), random(1000)],
    [
      seeded(1)(1000),
      (() => {
        const again = seeded(1)
        again(1000)
        return again(1000)
      })(),
    ],
  )
  const cases = Array.from({ length: 200 }, (_, i) => ({ page: `${i % 4}`, holds: i % 4 === 0 }))
  const byPage = shareOf(
    cases,
    ({ holds }) => holds,
    ({ page }) => page,
  )
  const byCase = shareOf([...cases.keys()], (i) => cases[i]!.holds, String)
  t.equal(byPage.share, 0.25)
  t.ok(byPage.low <= 0.25 && 0.25 <= byPage.high)
  t.ok(byPage.high - byPage.low > 2 * (byCase.high - byCase.low), 'claims of one page stand or fall together')
  t.equal(shareOf([], () => true, String).share, null)
  t.end()
})
