import t from 'tap'
import { assessment } from '../../../server/interface/assessment.ts'
import { inconsistency } from '../../../server/interface/result.ts'
import { assessLiterally } from '../../../workers/assessment/literal/search-thread.ts'
import { literalFlagMeanings } from '../../../workers/assessment/risk-flags.ts'
import { labelledClaims, pageText } from '../fixtures/labelled.ts'
import { flawOf, textDigest } from '../fixtures/proof.ts'

const SOURCE = 'b'.repeat(64)
const assess = (claim: string, text: string) =>
  assessLiterally({ claim, text, digests: { sourceSha256: SOURCE, textSha256: textDigest(text) } })

const labelled = labelledClaims().map((label) => {
  const text = pageText(label.page)
  return { ...label, text, found: assess(label.claim, text) }
})
const relevant = labelled.filter(({ first }) => first !== null)
const unrelated = labelled.filter(({ first }) => first === null)

t.test('the labels of the test set are valid', (t) => {
  for (const { first, text } of relevant) t.ok(text.includes(first!), first!)
  t.ok(relevant.length >= 90)
  t.ok(unrelated.length >= 35)
  t.equal(new Set(labelled.map(({ page }) => page)).size, 23)
  t.end()
})

t.test('the most relevant passage is the first', (t) => {
  const missed = relevant.filter(({ first, found }) => !found.evidence[0]?.quote.includes(first!))
  for (const { claim } of missed) t.comment(`not first: ${claim}`)
  const rate = 1 - missed.length / relevant.length
  t.ok(rate >= 0.9, `${(100 * rate).toFixed(1)} % of ${relevant.length} claims`)
  t.end()
})

t.test('a claim that has nothing to do with the page ends as insufficient evidence', (t) => {
  for (const { claim, found } of unrelated) {
    t.equal(found.claim_support, 'insufficient_evidence', claim)
    t.same(found.evidence, [])
    t.same(found.risk_flags, [])
  }
  t.end()
})

t.test('a page that fits in one quotation is quoted if it has one content word of the claim', (t) => {
  const claim = 'The northern lighthouse of Marlow guided herring boats past dangerous reefs during winter storms.'
  const quotesOf = (text: string) => assess(claim, text).evidence.length
  t.equal(quotesOf('Its lighthouses were sold in 1931.'), 1)
  t.equal(quotesOf('Its keepers were sold a house in 1931.'), 0)
  t.equal(quotesOf(`Its lighthouses were sold in 1931.\n${'The bakery sells bread and cakes. '.repeat(20)}`), 0)
  t.end()
})

t.test('each warning is on the cases that need it and on no others', (t) => {
  for (const { claim, first, found, flags, absentFlags } of relevant) {
    if (!found.evidence[0]?.quote.includes(first!)) continue
    for (const flag of flags) t.ok(found.risk_flags.includes(flag), `${flag}: ${claim}`)
    for (const flag of absentFlags) t.notOk(found.risk_flags.includes(flag), `not ${flag}: ${claim}`)
  }
  t.end()
})

t.test('every finding is a consistent assessment whose evidence is proved', (t) => {
  for (const { claim, text, found } of labelled) {
    const checked = assessment.parse({ ...found, procedure: 'test' })
    t.equal(inconsistency(checked), null, claim)
    t.equal(found.claim_support, found.evidence.length > 0 ? 'not_assessed' : 'insufficient_evidence')
    t.ok(found.explanation.length > 0 && found.explanation.length <= 800)
    for (const item of found.evidence) t.equal(flawOf(item, text, SOURCE), null)
    for (const flag of found.risk_flags) t.ok(flag in literalFlagMeanings)
  }
  t.end()
})

t.test('the same claim and text give the same bytes', (t) => {
  for (const { claim, text, found } of labelled) t.equal(JSON.stringify(assess(claim, text)), JSON.stringify(found))
  t.end()
})

t.test('a place with the whole wording of the claim comes before one that has more of its words', (t) => {
  const text = 'The pier, the old pier of the harbour, was rebuilt in 1953 and 1954.\n\nThe old pier was rebuilt.'
  const { evidence, risk_flags } = assess('the old pier was rebuilt', text)
  t.equal(evidence[0]!.quote, 'The old pier was rebuilt.')
  t.notOk(risk_flags.includes('partial_wording'))
  t.end()
})

t.test('an exact match comes before one that differs in case', (t) => {
  const text = 'They said THE OLD PIER was long.\n\nWe walked along the old pier again.'
  t.match(assess('the old pier', text).evidence, [{ quote: /along the old pier/ }, { quote: /THE OLD PIER/ }])
  t.end()
})

t.test('places of equal rank come in the order of the page, and no sentence is shown twice', (t) => {
  const lines = Array.from({ length: 9 }, (_, i) => `The mast of ship ${'abcdefghi'[i]} was broken in the storm.`)
  const { evidence, risk_flags } = assess('mast broken', [...lines, ...lines].join('\n'))
  t.same(
    evidence.map(({ quote }) => quote),
    lines.slice(0, 6),
  )
  t.ok(risk_flags.includes('partial_wording'))
  t.end()
})

t.test('the explanation says when there are more places than it shows', (t) => {
  const text = Array.from({ length: 8 }, (_, i) => `Line ${i} has the red lantern in it.`).join('\n')
  const { evidence, explanation, risk_flags } = assess('The red lantern', text)
  t.equal(evidence.length, 6)
  t.ok(risk_flags.includes('more_matches'))
  t.match(explanation, /in 8 places/)
  t.end()
})

t.test('a short sentence is shown with the neighbouring sentences of its own line', (t) => {
  const text = 'Nothing here.\nThe keeper was Ada Lund. She resigned. The lamp went out.\nNothing there.'
  t.equal(assess('Ada Lund resigned', text).evidence[0]!.quote, text.split('\n')[1])
  t.equal(assess('resigned', text).evidence[0]!.quote, text.split('\n')[1])
  t.end()
})

t.test('claims of odd characters have an answer', (t) => {
  const text = 'The sign said ☢ ☣ and nothing else. C++ is a language. Price: 5 €.'
  t.match(assess('☢ ☣', text).evidence, [{ quote: /☢ ☣/ }])
  t.match(assess('☠ ♻', text), { claim_support: 'insufficient_evidence' })
  t.match(assess('\u200b', text), { claim_support: 'insufficient_evidence', explanation: /no visible characters/ })
  t.match(assess('anything', ''), { claim_support: 'insufficient_evidence', explanation: /no text/ })
  t.match(assess('anything', ' \n\t '), { claim_support: 'insufficient_evidence', explanation: /no text/ })
  t.end()
})

t.test('the explanation says what was found, what was not found, and what it does not mean', (t) => {
  const text = 'The old pier was not rebuilt in 1953, the mayor said.\n\nA pier is long.'
  const { explanation, risk_flags } = assess('The old pier was rebuilt by convicts in 1954', text)
  t.equal(
    explanation,
    '2 passages of the page share words with the claim and are quoted, the most similar first. The page does not have ' +
      '"1954" and "convicts". Only words were compared, so read the quotes to see whether they support the claim.',
  )
  t.same(risk_flags, ['claim_terms_absent', 'number_absent', 'partial_wording'])
  t.match(
    assess('old PIER', text).explanation,
    /^The page has the words of the claim in one place, but with other letter case/,
  )
  t.notMatch(assess('The deck of the pier is long.', `${text} The afterdeck is short.`).explanation, /"deck"/)
  t.end()
})

t.test('the whole claim is found where it begins again inside itself, and is counted without overlaps', (t) => {
  const found = (claim: string, text: string) => assess(claim, text).explanation
  t.match(found('red red lamp', 'A red red red lamp was lit.'), /in one place, word for word/)
  t.match(found('to and fro to and', 'They went to and fro to and fro to and fro to and back.'), /in 2 places/)
  t.match(found('a b a', 'a b a b a b a'), /in 2 places/)
  t.end()
})

t.test(
  'a heading alone comes after a sentence about the claim, and the next sentence belongs to the first quotes',
  (t) => {
    const text = [
      'Museum of the Northern Coast',
      'Opening hours and tickets of the house are on the page for visitors, with prices for groups and schools.',
      'A boat for whaling is shown in the first room, beside the museum shop and the stairs to the northern wing. ' +
        'It was the gift of a captain.',
      'The rooms are heated in winter, and the café serves soup until four in the afternoon on all days.',
      'Dogs wait outside, where there is water for them, and bicycles are locked at the rail by the gate.',
    ].join('\n')
    const [first] = assess('The Museum of the Northern Coast shows a boat for whaling.', text).evidence
    t.match(first!.quote, /^A boat for whaling .*It was the gift of a captain\.$/)
    t.end()
  },
)

t.test('a pair of characters with a function word of Chinese counts little', (t) => {
  const text = [
    '万安桥在江城的东部,建于清代,长四十米。',
    '1937年十一月日军飞机轰炸江城,万安桥的东半部被炸毁。',
    '后来的居民在河的两岸种了柳树和桃树,春天有很多游客。',
    '城里的市场每天早上五点开门,卖鱼和蔬菜,也卖花。',
    '学校建于1952年,有六百个学生和三十个老师,操场在山上。',
  ]
    .join('\n')
    .repeat(3)
  const { evidence } = assess('在1937年的空袭中,万安桥有一半被摧毁了。', text)
  t.match(evidence[0]?.quote, /1937年十一月/)
  t.end()
})

t.test('the longest explanation fits', (t) => {
  const word = (i: number) => `${'w'.repeat(150)}${i}`
  const claim = Array.from({ length: 12 }, (_, i) => word(i)).join(' ')
  const { explanation } = assess(claim, `${word(1)} ${word(2)} ${word(3)} ${word(4)} ${word(5)} ${word(6)}.`)
  t.match(explanation, /The page does not have/)
  t.ok(Array.from(explanation).length <= 800, `${explanation.length}`)
  t.end()
})
