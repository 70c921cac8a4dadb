// The reading line of a card, which no verdict may leave in doubt: how far to rely on it, and whether the page was visited for it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderToString } from 'preact-render-to-string'
import t from 'tap'
import { html } from '../../client/page/html.ts'
import { cardOf } from '../../client/page/result/card-result.ts'
import { ResultCard } from '../../client/page/result/result-card.ts'

const EXAMPLES = join(import.meta.dirname, '../../server/pages/examples/example-results.json')
const { local, literal } = JSON.parse(readFileSync(EXAMPLES, 'utf8'))

const textOf = (markup: string) => markup.replaceAll(/<[^>]+>/g, '')

function readingOf(result: object): string {
  const card = cardOf(result)
  if (!card) throw new Error('it is no result')
  const whole = renderToString(html`<${ResultCard} result=${card} accuracy="/accuracy" />` as never)
  return textOf(/<p class="reading">.*?<\/p>/s.exec(whole)?.[0] ?? '')
}

t.test(
  'the line says which figure to rely on, with its counts, and why the explanation has a higher one',
  async (t) => {
    const supports = '19 of its 27 verdicts for a claim'
    const contradicts = '19 of its 31 verdicts against a claim'
    const rely =
      'For a page that the verifier has not seen, rely on this: on public sets that had no part in making it,'
    const higher = 'The explanation’s higher figure is of held-back pages'
    const of = (claim_support: string) => readingOf({ ...local, claim_support })
    t.match(
      of('contradicts'),
      `${rely} ${contradicts} were right; with so few, the true share is likely 44 to 76 of 100. ${higher}`,
    )
    t.match(
      of('supports'),
      `${rely} ${supports} were right; with so few, the true share is likely 52 to 84 of 100. ${higher}`,
    )
    t.notMatch(of('supports'), contradicts, 'the other side is not the reader’s')
    const undecided = of('insufficient_evidence')
    t.match(
      undecided,
      `${supports} and ${contradicts} were right; with so few, the true shares are likely 52 to 84 and 44 to 76 of 100.`,
    )
    t.notMatch(undecided, higher, 'its explanation has no such figure')
    t.notMatch(readingOf(literal), 'rely on this', 'nothing judged it')
    const { claim, claim_support, explanation, evidence, risk_flags, ...page } = local
    const one = { claim, claim_support, explanation, evidence, risk_flags }
    const several = readingOf({ ...page, claims: [one, { ...one, claim: 'Another.', claim_support: 'supports' }] })
    t.match(several, `${supports} and ${contradicts} were right`)
    t.match(several, higher)
  },
)

t.test('the line says that an earlier reading of the page was used again', async (t) => {
  const of = (age_seconds: number, hit = true) => readingOf({ ...local, cache: { ...local.cache, hit, age_seconds } })
  t.match(of(45), /^Read .*, kept, and used again 45 seconds later without another visit; judged by/)
  t.match(of(1), ' 1 second later')
  t.match(of(0), ' 0 seconds later')
  t.notMatch(of(0, false), 'used again')
  const { cache, ...look } = local
  t.notMatch(readingOf(look), 'used again', 'an answer without that member says nothing of it')
})
