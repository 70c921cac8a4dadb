// The local verifier against the logits and verdicts that were recorded with its weights.
import { readFileSync } from 'node:fs'
import t from 'tap'
import { PURCHASE } from '../../../server/pages/front-page.ts'
import { assessLocally } from '../../../workers/assessment/local/assessment.ts'
import { loadVerifier } from '../../../workers/assessment/local/verifier.ts'
import { readVerifierFiles, settings } from '../../../workers/assessment/local/weights.ts'
import { LONG } from '../../long.ts'

interface Vectors {
  weights_sha256: string
  pages: Record<string, string>
  pairs: { claim: string; passage: string; logits_f32_hex: string }[]
  verdicts: {
    page: string
    claim: string
    verdict: string
    lean: string | null
    S: number
    C: number
    flags: string[]
    quotes: { stance: string; quote: string; start: number; end: number }[]
  }[]
}

const vectors = JSON.parse(readFileSync(new URL('vectors.json', import.meta.url), 'utf8')) as Vectors
const verifier = await loadVerifier(readVerifierFiles())
t.teardown(() => verifier[Symbol.asyncDispose]())

t.test('the weights in force are those of the vectors', async (t) => {
  t.equal(settings.weights_sha256, vectors.weights_sha256)
})

t.test('the logits are the recorded ones, bit for bit', async (t) => {
  for (const { claim, passage, logits_f32_hex } of vectors.pairs) {
    const logits = Float32Array.from(await verifier.logits(claim, passage))
    t.equal(Buffer.from(logits.buffer).toString('hex'), logits_f32_hex, claim)
  }
})

/** All of them in long runs; else one of each kind, because a verdict takes a second of a core. */
const kindOf = ({ verdict, lean, flags }: Vectors['verdicts'][number]) => `${verdict} ${lean} ${flags}`
const sample = LONG ? vectors.verdicts : [...new Map(vectors.verdicts.map((one) => [kindOf(one), one])).values()]

t.test('verdicts, probabilities, leans, flags and quotes are the recorded ones', async (t) => {
  for (const { page, claim, verdict, lean, S, C, flags, quotes } of sample) {
    const text = vectors.pages[page] ?? ''
    const found = await assessLocally(verifier, text, claim)
    t.equal(found.claim_support, verdict === 'insufficient' ? 'insufficient_evidence' : verdict, claim)
    t.match(found.reading, { supports: S, contradicts: C, lean })
    t.same(found.risk_flags, flags)
    t.same(
      found.quotes,
      quotes.map(({ stance, quote, start, end }) => ({ quote, start, end, stance })),
      'the pages have no character beyond the basic plane, so both kinds of offsets agree',
    )
    for (const { quote, start, end } of found.quotes) t.equal([...text].slice(start, end).join(''), quote)
    t.ok(found.explanation.length <= 800, 'the explanation fits')
    t.match(found.explanation, claim.slice(0, 40))
  }
})

t.test('the same pair gives the same bits after other pairs', async (t) => {
  const [first, second] = vectors.pairs
  if (!first || !second) throw new Error('two pairs are needed')
  const once = await verifier.logits(first.claim, first.passage)
  await verifier.logits(second.claim, first.passage)
  t.same(await verifier.logits(first.claim, first.passage), once)
})

t.test('a passage and a claim of any length are read', async (t) => {
  const long = 'The quick brown fox jumps over the lazy dog '.repeat(400)
  for (const [claim, passage] of [
    ['A fox jumps.', long],
    [long.slice(0, 2000), 'A fox.'],
    ['x'.repeat(2000), 'y'.repeat(100_000)],
  ] as const)
    t.equal((await verifier.logits(claim, passage)).length, 3)
})

t.test('the purchase that the front page shows as an example ends with a verdict', async (t) => {
  // What https://example.com/ says.
  const text =
    'Example Domain\n\nThis domain is for use in documentation examples without needing permission. Avoid use in operations.\n\nLearn more'
  t.equal((await assessLocally(verifier, text, PURCHASE.claim)).claim_support, 'supports')
})
