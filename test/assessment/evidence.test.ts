import t from 'tap'
import { inconsistency } from '../../server/interface/result.ts'
import { codePoints } from '../../server/interface/scalars.ts'
import {
  deriveVerdict,
  isProven,
  LONGEST_EXPLANATION,
  type Proposal,
  proveEvidence,
} from '../../workers/assessment/evidence.ts'
import { codePointIndex } from '../../workers/text/offsets.ts'
import { shortenedTo } from '../../workers/text/sentences.ts'
import { flawOf, textDigest } from './fixtures/proof.ts'

const SOURCE = 'a'.repeat(64)
const prove = (text: string, ...spans: [start: number, end: number, stance?: Proposal['stance']][]) =>
  proveEvidence(
    text,
    { sourceSha256: SOURCE, textSha256: textDigest(text) },
    spans.map(([start, end, stance = 'mentions']) => ({ start, end, stance })),
  )
const quotes = (...args: Parameters<typeof prove>) => prove(...args).evidence.map(({ quote }) => quote)

t.test('a text that is too long for an explanation is cut between code points', (t) => {
  t.equal(shortenedTo('𝕏'.repeat(799), 799), '𝕏'.repeat(799))
  const cut = shortenedTo(`a${'𝕏'.repeat(900)}`, LONGEST_EXPLANATION - 1)
  t.equal(cut, `a${'𝕏'.repeat(798)}…`)
  t.equal(codePoints(cut), LONGEST_EXPLANATION)
  t.end()
})

t.test('a quotation is the text at its offsets, which count code points', (t) => {
  const text = '🎉🎉 The harbour was opened in 1911. 𝒜 new pier followed.'
  const { evidence, dropped } = prove(text, [5, 36, 'supports'], [37, text.length])
  t.equal(dropped, 0)
  t.match(evidence, [
    { evidence_id: 'e1', quote: 'The harbour was opened in 1911.', start: 3, end: 34, stance: 'supports' },
    { evidence_id: 'e2', quote: '𝒜 new pier followed.', start: 35, end: 55, stance: 'mentions' },
  ])
  for (const item of evidence) t.equal(flawOf(item, text, SOURCE), null)
  t.end()
})

t.test('a quotation that would split a surrogate pair is widened to the whole character', (t) => {
  const text = 'ab🎉cd'
  t.same(quotes(text, [3, 5]), ['🎉c'])
  t.same(quotes(text, [0, 3]), ['ab🎉'])
  t.end()
})

t.test('white space at the ends is left out, and a proposal of white space alone is dropped', (t) => {
  t.same(quotes('  one \n two  ', [0, 6], [5, 8], [7, 13]), ['one', 'two'])
  t.end()
})

t.test('a proposal outside the text is dropped', (t) => {
  const { evidence, dropped } = prove('one two', [-1, 3], [0, 8], [3, 3], [4, 2], [0.5, 3], [0, Number.NaN], [4, 7])
  t.match(evidence, [{ evidence_id: 'e1', quote: 'two' }])
  t.equal(dropped, 6)
  t.end()
})

t.test('of overlapping proposals the first is kept, with any stance', (t) => {
  const { evidence, dropped } = prove('one two three', [4, 7, 'supports'], [0, 7, 'contradicts'], [4, 7], [8, 13])
  t.match(
    evidence.map(({ quote, stance }) => [quote, stance]),
    [
      ['two', 'supports'],
      ['three', 'mentions'],
    ],
  )
  t.equal(dropped, 2)
  t.end()
})

t.test('no more than six are kept, in the order proposed', (t) => {
  const text = 'a b c d e f g h'
  const { evidence, dropped } = prove(
    text,
    ...[7, 6, 5, 4, 3, 2, 1, 0].map((i): [number, number] => [2 * i, 2 * i + 1]),
  )
  t.equal(evidence.map(({ evidence_id, quote }) => evidence_id + quote).join(), 'e1h,e2g,e3f,e4e,e5d,e6c')
  t.equal(dropped, 2)
  t.end()
})

t.test('a proposal longer than the limit of a quotation ends at the last sentence or word boundary', (t) => {
  const sentence = `${'word '.repeat(30).trim()}. `
  t.equal(quotes(sentence.repeat(20), [0, 2000])[0], sentence.repeat(6).trim(), 'a sentence')
  t.equal(quotes(`${'clause one, '.repeat(200)}`, [0, 2000])[0], 'clause one, '.repeat(83).trim(), 'a clause')
  t.equal(quotes('word '.repeat(400), [0, 2000])[0]!.length, 999, 'a word')
  t.equal(quotes('x'.repeat(2000), [0, 2000])[0]!.length, 1000, 'a character')
  const flags = '🎉'.repeat(1500)
  t.equal(quotes(flags, [0, 3000])[0], '🎉'.repeat(1000), 'code points are what counts')
  const marked = `${'x'.repeat(998)}e${'\u0301'.repeat(5)}`
  t.equal(quotes(marked, [0, marked.length])[0], 'x'.repeat(998), 'a character stays with its marks')
  t.end()
})

t.test('a text may be longer than the largest offset of the interface', (t) => {
  const text = `${'x'.repeat(99_990)} end and more`
  t.same(quotes(text, [99_991, 99_994], [99_995, text.length]), ['end'])
  t.end()
})

t.test('a text with a lone surrogate is refused', (t) => {
  t.throws(() => prove('a\ud83d', [0, 1]), TypeError)
  t.end()
})

t.test('isProven finds every deviation', (t) => {
  const text = 'one 🎉 two three'
  const digests = { sourceSha256: SOURCE, textSha256: textDigest(text) }
  const index = codePointIndex(text)
  const [item] = proveEvidence(text, digests, [{ start: 4, end: 10, stance: 'mentions' }]).evidence
  t.equal(item!.quote, '🎉 two')
  t.ok(isProven(text, index, digests, item!))
  for (const change of [
    { quote: '🎉 twO' },
    { start: 5 },
    { start: -1 },
    { end: 8 },
    { end: 99 },
    { start: 4.5 },
    { end: 4 },
    { text_sha256: SOURCE },
    { source_sha256: digests.textSha256 },
  ])
    t.notOk(isProven(text, index, digests, { ...item!, ...change }), JSON.stringify(change))
  t.end()
})

const VERDICTS = ['supports', 'contradicts', 'mixed', 'insufficient_evidence', 'not_assessed'] as const
const SCOPES = ['source_local_semantic_support', 'literal_quotation_only'] as const
const STANCES = ['supports', 'contradicts', 'mentions'] as const
const MIXTURES = [0, 1, 2, 3, 4, 5, 6, 7].map((bits) =>
  STANCES.filter((_, i) => bits & (1 << i)).map((stance) => ({ stance })),
)

t.test('a derived verdict is consistent for every proposal and every surviving evidence', (t) => {
  for (const proposed of VERDICTS) {
    for (const evidence of MIXTURES) {
      const claim_support = deriveVerdict(proposed, 'source_local_semantic_support', evidence)
      t.equal(inconsistency({ claim_support, assessment_scope: 'source_local_semantic_support', evidence }), null)
      const mentions = evidence.map(() => ({ stance: 'mentions' as const }))
      const literal = deriveVerdict(proposed, 'literal_quotation_only', mentions)
      t.equal(inconsistency({ claim_support: literal, assessment_scope: SCOPES[1], evidence: mentions }), null)
    }
  }
  t.end()
})

t.test('a derived verdict is never more definite than the proposed one', (t) => {
  const derive = (proposed: (typeof VERDICTS)[number], ...stances: (typeof STANCES)[number][]) =>
    deriveVerdict(
      proposed,
      'source_local_semantic_support',
      stances.map((stance) => ({ stance })),
    )
  t.equal(derive('supports', 'supports', 'mentions'), 'supports')
  t.equal(derive('supports', 'mentions'), 'insufficient_evidence')
  t.equal(derive('supports', 'contradicts'), 'insufficient_evidence')
  t.equal(derive('supports', 'supports', 'contradicts'), 'mixed')
  t.equal(derive('mixed', 'supports', 'contradicts'), 'mixed')
  t.equal(derive('mixed', 'supports'), 'insufficient_evidence')
  t.equal(derive('contradicts'), 'insufficient_evidence')
  t.equal(derive('not_assessed', 'supports'), 'not_assessed')
  t.equal(derive('insufficient_evidence', 'supports'), 'insufficient_evidence')
  t.end()
})
