import t from 'tap'
import type { Answer } from '../../workers/assessment/answer.ts'
import { checkEvidence } from '../../workers/assessment/checks.ts'
import { linesOf, windowsOf } from '../../workers/assessment/lines.ts'

/** The stance that the page's only line has after the checks, and the flags. */
function check(
  claim: string,
  text: string,
  verdict: Answer['verdict'] = 'supports',
  basis: Answer['basis'] = 'stated',
) {
  const stance = verdict === 'contradicts' ? 'contradicts' : 'supports'
  const evidence = [{ start: 0, end: text.length, stance } as const]
  const checked = checkEvidence(claim, text, linesOf(text), { verdict, basis, evidence })
  return [checked.evidence[0]?.stance, ...checked.flags].join(' ')
}

const agreeing: [claim: string, text: string][] = [
  ['The port handled 41200 tonnes.', 'The port handled 41,200 tonnes.'],
  ['The path is 10 km long.', 'The path is 6.2 miles long.'],
  ['The bridge is 300 m long.', 'The bridge is 0.3 km long.'],
  ['The temperature was 20 °C.', 'The temperature was 68 °F.'],
  ['The harbour opened in 1911.', 'The harbour opened on 12 May 1911.'],
  ['The harbour opened before 1920.', 'The harbour opened in 1911.'],
  ['More than 300 people work there.', 'The firm has 312 employees; the people work in shifts.'],
  ['Between 80 and 90 percent voted.', '85 % of residents voted.'],
  ['Dort arbeiten mehr als 300 Menschen.', 'Dort arbeiten 312 Menschen.'],
  ['人口超过100万。', '人口为124万。'],
  ['The page says "red dwarf star".', 'It orbits a red dwarf star.'],
]
const failing: [claim: string, text: string, flag: string][] = [
  ['The port handled 45,000 tonnes.', 'The port handled 41,200 tonnes.', 'number_mismatch'],
  ['The path is 10 km long.', 'The path is 8 miles long.', 'number_mismatch'],
  ['The building was designed by Blanc in 1911.', 'The building was designed by Blanc in 1921.', 'date_mismatch'],
  ['The trial began on 4 May 2016.', 'The trial began on 5 May 2016.', 'date_mismatch'],
  ['It cost 5 million dollars.', 'It cost 5 million euros.', 'unit_mismatch'],
  ['Sales rose by 50 %.', 'Sales rose from 100 to 150 units.', 'number_absent'],
  ['The company uses child labour.', 'The company does not use child labour.', 'negation_mismatch'],
  ['Die Bibliothek öffnet sonntags.', 'Die Bibliothek öffnet sonntags nicht.', 'negation_mismatch'],
  ['The harbour belongs to the Marlow family.', 'Dogs are welcome on the piers.', 'unrelated_evidence'],
]

t.test('a verdict that agrees with its lines is unchanged', (t) => {
  for (const [claim, text] of agreeing) t.equal(check(claim, text), 'supports', `${claim} | ${text}`)
  t.end()
})

t.test('evidence that does not agree with its lines loses its stance, and a flag names the reason', (t) => {
  for (const [claim, text, flag] of failing)
    t.match(check(claim, text), new RegExp(`^mentions .*${flag}`), `${claim} | ${text}`)
  t.end()
})

t.test('a difference that may be only one of wording becomes a flag and changes no verdict', (t) => {
  t.equal(
    check('The page says "the earth is flat".', 'The page says that the earth is round.'),
    'supports quoted_phrase_absent',
  )
  t.equal(check('The drug is ineffective.', 'The drug had no effect.'), 'supports negation_mismatch')
  t.equal(
    check('Two people were injured.', 'A driver and a cyclist, both local people, were injured.'),
    'supports number_absent',
  )
  t.equal(
    check('The lake is polluted.', 'Activists claimed that the lake is polluted.'),
    'supports attributed_statement',
  )
  t.end()
})

t.test('a number of the claim may be in another place on the page, but it must be on the page', (t) => {
  const text = 'Annual report 2019\nThe mill employed 312 people.'
  const lines = linesOf(text)
  const quote = { start: lines[1]!.start, end: lines[1]!.end, stance: 'supports' as const }
  const proposed = { verdict: 'supports', basis: 'stated', evidence: [quote] } as const
  t.match(checkEvidence('In 2019 the mill employed 312 people.', text, lines, proposed), {
    evidence: [{ stance: 'supports' }],
    flags: ['number_absent'],
  })
  t.match(checkEvidence('In 2018 the mill employed 312 people.', text, lines, proposed).evidence, [
    { stance: 'mentions' },
  ])
  t.end()
})

t.test('lines that repeat the words of the claim do not contradict it, unless they negate them', (t) => {
  t.equal(
    check('The harbour opened in 1874.', 'The harbour opened in 1874.', 'contradicts', 'other_value'),
    'mentions claim_wording_present',
  )
  const denied = 'It is not true that the harbour opened in 1874.'
  t.equal(check('The harbour opened in 1874.', denied, 'contradicts', 'opposite'), 'contradicts')
  t.equal(
    check('The harbour opened in 1874.', 'The harbour opened in 1901.', 'contradicts', 'other_value'),
    'contradicts',
  )
  t.end()
})

t.test('a verdict is never more definite than the reason that the model gave', (t) => {
  for (const basis of ['partly', 'reported', 'unsure', 'silent'] as const)
    t.equal(check('The mill is old.', 'The mill is old.', 'supports', basis), 'mentions weak_basis')
  t.equal(check('The mill is old and red.', 'The mill is new.', 'contradicts', 'partly'), 'contradicts')
  t.equal(check('The mill is old.', 'The mill is old.', 'supports', null), 'supports')
  t.end()
})

t.test('a claim in another language than the page does not need the words of the page', (t) => {
  const german = 'Der Hafen wurde 1874 vom Ingenieur des Kreises eröffnet, und er ist der älteste der Küste.'
  t.equal(check('The harbour was opened in 1874.', german), 'supports')
  t.match(check('The harbour was opened in 1901.', german), /^mentions date_mismatch/)
  t.end()
})

t.test('every visible character is in one line; the windows contain every line and overlap', (t) => {
  const texts = [
    'One. Two.\nThree',
    'x',
    'a\n'.repeat(20_000),
    '鉄道'.repeat(5000),
    `${'word '.repeat(3000)}end`,
    '👩‍👩‍👧 '.repeat(900),
  ]
  for (const text of texts) {
    const lines = linesOf(text)
    t.equal(
      lines
        .map(({ start, end }) => text.slice(start, end))
        .join('')
        .replace(/\s/g, ''),
      text.replace(/\s/g, ''),
    )
    t.ok(lines.length <= 6000, `${lines.length} lines`)
    t.ok(lines.every(({ start, end }) => end - start <= 1400))
    for (const budget of [1, 500, 24_000]) {
      const windows = windowsOf(text, lines, budget)
      t.equal(windows[0]?.first, 0)
      t.equal(windows.at(-1)?.last, lines.length - 1)
      for (let i = 1; i < windows.length; i++)
        t.ok(windows[i]!.first <= windows[i - 1]!.last + 1 && windows[i]!.last > windows[i - 1]!.last)
    }
  }
  t.end()
})

t.test('up to a hundred numbers of a claim are checked; a flag says when there are more', (t) => {
  const figures = (from: number, count: number) => Array.from({ length: count }, (_, i) => 1e6 + (from + i) * 1000)
  const claim = (from: number, count: number) => `The mill sold these lots: ${figures(from, count).join('; ')}.`
  const page = claim(0, 150)
  t.equal(check(claim(0, 100), page), 'supports')
  t.match(check(claim(60, 91), page), /^mentions .*number_mismatch/, 'the last of ninety-one is on no page')
  t.equal(check(claim(0, 150), page), 'supports claim_partly_checked')
  const twice = `${claim(0, 60)} ${claim(0, 60)}`
  t.equal(check(twice, page), 'supports', 'what is said twice counts once')
  t.end()
})

t.test('each quoted phrase of a claim must be on the page, token for token', (t) => {
  const phrases = Array.from({ length: 60 }, (_, i) => `lot ${i} of oak`)
  const page = `Sold: ${phrases.join(', ')}. Also «12 ½» and “…?!…”.`
  const said = (list: string[]) => `The page lists ${list.map((phrase) => `"${phrase}"`).join(', ')}.`
  t.notMatch(check(said(phrases), page), /quoted_phrase_absent/)
  t.match(check(said([...phrases, 'lot 60 of oak']), page), /quoted_phrase_absent/)
  t.match(check(said(['lot 5 of oa']), page), /quoted_phrase_absent/, 'a part of a word is no word')
  t.end()
})
