// How the work of the readers of reports (`countersign check`) and of dropped files (`/verify`) grows with the worst of them.
import t from 'tap'
import { examine } from '../../client/page/examine.ts'
import { partsOf, passagesOf, quotedIn } from '../../client/page/passages.ts'
import { findCitations } from '../../client/report/citations.ts'
import { readHtml } from '../../client/report/html.ts'
import { readMarkdown } from '../../client/report/markdown.ts'
import { UnreadableReportError } from '../../client/report/report.ts'
import { growthFault } from '../growth.ts'
import { hostileReports } from './hostile-reports.ts'

t.test('the time of every hostile report grows as the report does, or the report is refused', async (t) => {
  const faults: string[] = []
  for (const [name, build] of Object.entries(hostileReports))
    for (const read of [readMarkdown, readHtml]) {
      const work = async (size: number) => {
        try {
          findCitations(await read(build(size)))
        } catch (error) {
          if (!(error instanceof UnreadableReportError)) throw error
        }
      }
      const fault = await growthFault(work, [1024, 8192, 32_768])
      if (fault) faults.push(`${name}, ${read.name}: ${fault}`)
    }
  t.same(faults, [])
})

t.test('marks that begin and do not end are refused, whatever the construct', async (t) => {
  for (const name of ['open comments', 'open instructions', 'runs of code marks, each longer', 'an address of stops'])
    await t.rejects(readMarkdown(hostileReports[name]!(16_384)), { message: /begin and do not end/ }, name)
})

const fill = (size: number, unit: string, before = '', after = '') =>
  before + unit.repeat(Math.max(1, Math.floor((size - before.length - after.length) / unit.length))) + after

/** Files that a person drops: name → a file of about so many characters. */
const hostileFiles: Record<string, (size: number) => string> = {
  'header lines without a body': (size) => fill(size, 'a:\r\n'),
  'header lines, some without a value': (size) => fill(size, 'a:\n\r'),
  'header lines of colons': (size) => fill(size, '::a:\n'),
  'one long header': (size) => fill(size, 'a', 'webhook-id:'),
  'a message of many headers': (size) => fill(size, 'a: b\n', 'webhook-id: a\n', '\n{}'),
  'open brackets': (size) => fill(size, '['),
  'brackets in brackets': (size) => fill(size, '[', '', '') + ']'.repeat(size),
  'open strings': (size) => fill(size, '\\"', '"'),
  'a string of escapes': (size) => `"${'\\"'.repeat(size / 2)}"`,
  'many members': (size) => `{${Array.from({ length: size / 12 }, (_, i) => `"a${i}": "b"`).join(',')}}`,
  'many attestations': (size) => `[${fill(size, '{"serial":1},')}{}]`,
  'lines of an export': (size) => fill(size, '{"a":1}\n', '{"countersign_export":1}\n'),
  blanks: (size) => fill(size, ' ', '{', '}'),
}

t.test('the time of every hostile file that is dropped grows as the file does', async (t) => {
  const faults: string[] = []
  const encoder = new TextEncoder()
  for (const [name, build] of Object.entries(hostileFiles)) {
    const work = (size: number) => {
      const bytes = encoder.encode(build(size))
      const chunks = async function* () {
        yield bytes
      }
      return examine(chunks, { pinned: [], published: null })
    }
    const fault = await growthFault(work, [1024, 16_384, 262_144])
    if (fault) faults.push(`${name}: ${fault}`)
  }
  t.same(faults, [])
})

t.test('quotes are shown as far as a result may have them', async (t) => {
  const result = (count: number, length: number, text = 'x'.repeat(1000)) => ({
    source: { final_url: 'https://s.test/a', normalized_text: text },
    evidence: Array.from({ length: count }, (_, i) => ({
      ...{ evidence_id: `e${i}`, stance: 'supports', quote: 'x', start: 0, end: length },
    })),
  })
  const shown = quotedIn(result(6, 900))
  t.equal(shown && passagesOf(shown).length, 6)
  t.equal(shown && partsOf(shown).length, 2)
  t.equal(quotedIn(result(100_000, 10)), null, 'quotes')
  t.equal(quotedIn(result(1, 100_000)), null, 'a long quote')
  t.equal(quotedIn(result(1, 10, 'x'.repeat(5_000_000))), null, 'a long text')
  t.equal(quotedIn({ ...result(0, 0), evidence: [null] }), null, 'no quote')
})
