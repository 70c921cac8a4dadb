// Reports and results that are refused because of their form, at any size. How work grows is in test/readers.test.ts.
import t from 'tap'
import { partsOf, passagesOf, quotedIn } from '../../client/page/result/passages.ts'
import { readMarkdown } from '../../client/report/markdown.ts'
import { hostileReports } from './hostile-reports.ts'

t.test('marks that begin and do not end are refused, whatever the construct', async (t) => {
  for (const name of ['open comments', 'open instructions', 'runs of code marks, each longer', 'an address of stops'])
    await t.rejects(readMarkdown(hostileReports[name]!(16_384)), { message: /begin and do not end/ }, name)
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
