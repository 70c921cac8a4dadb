// The card of the verifier, its settings and its code say the same: the digest, the windows, the thresholds, the figures.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FRESH_RIGHT_OF_100, FRESH_VERDICTS } from '../../../client/verdict-words.ts'
import { findAccuracy } from '../../../server/pages/accuracy/accuracy.ts'
import { bounded } from '../../../server/pages/accuracy/accuracy-figures.ts'
import { RIGHT_OF_100 } from '../../../workers/assessment/local/explanation.ts'
import { readVerifierFiles, settings } from '../../../workers/assessment/local/weights.ts'
import { chooseWindows, sentencesOf } from '../../../workers/assessment/local/windows.ts'
import { LOCAL_PROCEDURE } from '../../../workers/assessment/procedure.ts'

const ROOT = join(import.meta.dirname, '../../..')
const card = readFileSync(join(ROOT, 'bench/model/README.md'), 'utf8').replace(/\s+/g, ' ')

t.test('the weights are those of the card', async (t) => {
  const { model } = readVerifierFiles()
  const digest = createHash('sha256').update(model).digest('hex')
  t.equal(digest, settings.weights_sha256)
  t.match(card, `${model.length.toLocaleString('en')} bytes, SHA-256 \`${digest}\``)
  t.match(LOCAL_PROCEDURE, digest.slice(0, 16))
})

t.test('windows, thresholds, lean and quotes are those of the card', async (t) => {
  const { windows, thresholds, tokens, lean, quotes, page_checks_claims } = settings
  t.match(card, `the ${windows.k} sentences nearest to the claim by BM25`)
  t.match(card, `up to ${windows.width} words`)
  t.match(
    card,
    `\`supports\` if S ≥ ${thresholds.supports} and S > C; \`contradicts\` if C ≥ ${thresholds.contradicts}`,
  )
  t.match(card, `n at most ${tokens}`)
  t.match(card, `the larger of S and C from ${lean} on is a lean`)
  t.match(card, /best first, at most three,/)
  t.equal(quotes, 3)
  t.match(card, 'one of ten words')
  t.equal(page_checks_claims.length, 10)
})

t.test('the code makes the windows of the card', async (t) => {
  const line = (n: number) => `Bridge number ${n} of ${'many '.repeat(34)}bridges.`
  const text = ['A title', ...Array.from({ length: 20 }, (_, n) => line(n))].join('\n')
  const found = chooseWindows(sentencesOf(text), 'The bridge', settings.windows)
  t.equal(found.length, settings.windows.k)
  for (const { from, to, text: window } of found) {
    t.ok(to - from <= 2)
    const own = window.replace(/^A title\. /, '')
    t.ok(own.split(/\s+/).length <= settings.windows.width, 'at most as many words as the card says')
  }
})

t.test('the figures that buyers read are those of the card', async (t) => {
  const [, supports, ofSupports, contradicts, ofContradicts] =
    card.match(/\| 440 \| 31\.8 % \| 89\.3 % \| ([\d.]+) % of (\d+) \| ([\d.]+) % of (\d+) \|/) ?? []
  t.equal(Math.round(Number(supports)), RIGHT_OF_100.supports)
  t.equal(Math.round(Number(contradicts)), RIGHT_OF_100.contradicts)
  t.match(card, `of the 111 leans among all claims ${RIGHT_OF_100.lean - 0.1} % were right`)
  const { published } = await findAccuracy()
  const whole = published[0]?.sets.find(({ claims }) => claims === 440)
  t.match(published, [{ procedure: LOCAL_PROCEDURE, weights_sha256: settings.weights_sha256 }])
  t.same([whole?.supports.whole, whole?.contradicts.whole].map(String), [ofSupports, ofContradicts])
  t.equal(FRESH_VERDICTS.procedure, LOCAL_PROCEDURE, 'a card names the figures of this verifier alone')
  const fresh = published[0]?.sets.find(({ name }) => name === 'these six together')
  for (const side of ['supports', 'contradicts'] as const) {
    const { part = 0, whole = 0 } = fresh?.[side] ?? {}
    t.equal(Math.round((100 * part) / whole), FRESH_RIGHT_OF_100[side], `${side}, on fresh public sets`)
    const [low, high] = [bounded(part, whole).low, bounded(part, whole).high].map((share) => Math.round(100 * share))
    t.same(
      FRESH_VERDICTS[side],
      { right: part, of: whole, low, high },
      `${side}, as the counts and the interval of a card`,
    )
  }
  const rate = ({ part, whole }: { part: number; whole: number }) => ((100 * part) / whole).toFixed(1)
  t.same([whole && rate(whole.supports), whole && rate(whole.contradicts)], [supports, contradicts])
})
