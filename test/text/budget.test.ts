// What a page gets that spends its budget. How work grows is in test/readers.test.ts.
import t from 'tap'
import { extract } from '../../workers/text/text-thread.ts'
import { hostilePages } from './hostile-pages.ts'

const encoder = new TextEncoder()
const read = (html: string) =>
  extract({ body: encoder.encode(html), contentEncoding: 'identity', contentType: 'text/html; charset=utf-8' })

t.test('a page that spends its budget is flagged, and text that rules would hide is kept', async (t) => {
  const flagged = (html: string) => {
    const outcome = read(html)
    return outcome.ok && outcome.extraction.riskFlags.includes('style_passed_over')
  }
  t.ok(flagged(hostilePages['classes, each another, of many rules']!(262_144)), 'matching')
  t.ok(flagged(hostilePages['nested rules that declare nothing']!(262_144)), 'reading')
  t.ok(flagged(`<style>${'i{color:red} '.repeat(90_000)}p{display:none}</style><p>x`), 'characters of style')
  t.notOk(flagged('<style>p{display:none}</style><p>x</p>y'))
})
