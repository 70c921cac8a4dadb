import t from 'tap'
import { assessment } from '../../../server/interface/assessment.ts'
import { inconsistency } from '../../../server/interface/result.ts'
import { codePoints } from '../../../server/interface/scalars.ts'
import { assessLiterally } from '../../../workers/assessment/literal/search-thread.ts'
import { sentencesOf } from '../../../workers/text/sentences.ts'
import { readClaim, termsIn } from '../../../workers/text/terms.ts'
import { rounds } from '../../long.ts'
import { flawOf, textDigest } from '../fixtures/proof.ts'
import { seeded } from '../fixtures/random.ts'

const SOURCE = 'c'.repeat(64)
const MOST_CHARACTERS = 100_000

function assess(claim: string, text: string) {
  return assessLiterally({ claim, text, digests: { sourceSha256: SOURCE, textSha256: textDigest(text) } })
}

/** Properties that hold for every claim and every text. */
function flaws(claim: string, text: string): string[] {
  const found = assess(claim, text)
  const shape = assessment.safeParse({ ...found, procedure: 'test' })
  const spans = found.evidence.map(({ start, end }) => [start, end] as const)
  const overlap = spans.some(([start, end], i) => spans.some(([from, to], j) => i < j && start < to && from < end))
  const isPartial = found.risk_flags.includes('partial_wording') && claim.length >= 12
  const stub = found.evidence.some(({ quote, start, end }) => quote.length < 12 && !isLine(text, start, end))
  return [
    ...found.evidence.map((item) => flawOf(item, text, SOURCE)),
    shape.success ? null : shape.error.message,
    inconsistency(found),
    found.claim_support === (spans.length > 0 ? 'not_assessed' : 'insufficient_evidence') ? null : 'verdict',
    codePoints(found.explanation) <= 800 && found.explanation.isWellFormed() ? null : 'explanation',
    found.evidence.every(({ evidence_id }, i) => evidence_id === `e${i + 1}`) ? null : 'numbering',
    overlap ? 'overlap' : null,
    isPartial && stub ? 'a quotation too short to mean anything' : null,
  ].filter((flaw) => flaw !== null)
}

function isLine(text: string, start: number, end: number): boolean {
  const characters = Array.from(text)
  const before = characters
    .slice(0, start)
    .join('')
    .split(/[\n\r\u2028\u2029]/)
    .at(-1)!
  const after = characters
    .slice(end)
    .join('')
    .split(/[\n\r\u2028\u2029]/)[0]!
  return (before + after).trim() === ''
}

const random = seeded(20)
const pickOne = <T>(list: readonly T[]): T => list[random(list.length)]!

const PIECES = [
  ...[
    'the',
    'harbour',
    'Vellmar',
    'was',
    'opened',
    'in',
    '1911',
    '41,200',
    'tonnes',
    'not',
    'Dr.',
    'U.S.',
    '12 %',
    '$5',
  ],
  ...[
    '東京',
    '人口は',
    '約12万',
    '서울은',
    'ตลาดน้ำ',
    'مدينة',
    'القاهرة',
    '١٩٥٨',
    'גן',
    'הזיתים',
    'किले',
    'Мост',
    'ο',
    'ﬁ',
  ],
  ...[
    'e\u0301',
    'a\u0300\u0323\u0301',
    '\u0301',
    '𝒜𝒷',
    '🎉',
    '👩\u200d👩\u200d👧',
    '🇫🇷',
    '\u200f',
    '\u00ad',
    '\u200b',
    '\ufffd',
    '½',
  ],
  ...[
    '.',
    '. ',
    '! ',
    '?',
    '。',
    '، ',
    '\n',
    '\n\n',
    '\t',
    ' ',
    '   ',
    '“',
    '”',
    '(',
    ')',
    '—',
    "'",
    '\u2028',
    '\u00a0',
    '…',
  ],
]

const randomText = (pieces: number) =>
  Array.from({ length: pieces }, () => pickOne(PIECES) + (random(3) ? ' ' : '')).join('')

const cutTo = (text: string, characters: number) => Array.from(text).slice(0, characters).join('')

/** A part of the text, a changed part of it, or other text; always well formed and never blank. */
function randomClaim(text: string): string {
  const characters = Array.from(text)
  const at = random(Math.max(1, characters.length))
  const taken = characters.slice(at, at + 1 + random(200)).join('')
  const claim = pickOne([taken, taken.toUpperCase(), taken.split(' ').reverse().join(' '), randomText(1 + random(30))])
  return /\S/.test(claim) ? cutTo(claim, 2000) : 'x'
}

t.test('any claim on any text is answered soundly', (t) => {
  let quoted = 0
  const count = rounds(400)
  for (let round = 0; round < count; round++) {
    const text = randomText(random(round % 8 < 7 ? 60 : 600))
    const claim = randomClaim(text)
    const found = flaws(claim, text)
    if (found.length > 0) t.fail(JSON.stringify({ claim, text, found }))
    if (assess(claim, text).evidence.length > 0) quoted++
  }
  t.ok(quoted > 0.375 * count, `${quoted} of ${count} had evidence`)
  t.end()
})

t.test('any claim on any text of the greatest length is answered soundly', (t) => {
  for (let round = 0; round < 3; round++) {
    const text = cutTo(randomText(45_000), MOST_CHARACTERS)
    t.equal(codePoints(text), MOST_CHARACTERS)
    for (let i = 0; i < 3; i++) {
      const claim = randomClaim(text)
      t.same(flaws(claim, text), [])
      t.equal(JSON.stringify(assess(claim, text)), JSON.stringify(assess(claim, text)))
    }
  }
  t.end()
})

const CLAIM = 'The harbour of Vellmar was opened on 14 June 1911 and handled 41,200 tonnes'
const filled = (unit: string) =>
  cutTo(unit.repeat(Math.ceil(MOST_CHARACTERS / Array.from(unit).length)), MOST_CHARACTERS)
const series = (count: number, name: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => name(i)).join(' ')

const HOSTILE: [what: string, claim: string, text: string][] = [
  ['the claim again and again', CLAIM, filled(`${CLAIM}. `)],
  ['its words without an end of a sentence', CLAIM, filled(`${CLAIM} `)],
  ['one word', 'harbour', filled('harbour ')],
  ['one letter', 'a a a a', filled('a ')],
  ['a claim that almost matches everywhere', `${'a '.repeat(999)}b`, filled('a ')],
  ['a run that always slides', 'a '.repeat(1000), filled('a ')],
  ['one character of a script without spaces', '中'.repeat(2000), filled('中')],
  ['two of them', `${'中文'.repeat(999)}字`, filled('中文')],
  ['a word as long as the text', 'a'.repeat(2000), filled('a')],
  ['lines of one letter', 'a b', filled('a\n')],
  [
    'words that all begin alike',
    series(300, (i) => `abcd${i}`),
    cutTo(
      series(20_000, (i) => `abcd${i}x`),
      MOST_CHARACTERS,
    ),
  ],
  ['numbers only', series(300, (i) => String(7 * i)), filled('1 2 3 4 5 6 7 ')],
  ['digits without an end', '1', filled('1')],
  ['grouped digits without an end', '1,111', filled('1,111,')],
  ['dates', '5 May 2019', filled('5 May 2019 ')],
  ['marks', 'e\u0301', filled(`e${'\u0301'.repeat(99)}`)],
  ['joined characters', '👩\u200d👩', filled('👩\u200d')],
  ['abbreviations', 'Dr. A', filled('Dr. A. ')],
  ['quotation marks', 'he said', filled('“he said” (" ')],
  ['white space', 'x', `${filled(' ').slice(1)}x`],
  ['blank lines', 'x y', filled('x\n\n\n')],
]

t.test('hostile texts of the greatest length take no more work than others', (t) => {
  for (const [what, claim, text] of HOSTILE) {
    const started = process.cpuUsage()
    t.same(flaws(claim, text), [], what)
    const { user } = process.cpuUsage(started)
    // With work proportional to the square of the length this would take minutes.
    t.ok(user < 5e6, `${what}: ${Math.round(user / 1000)} ms`)
    const found = termsIn(readClaim(claim), text, sentencesOf(text))
    const terms = found.reduce((sum, { length }) => sum + length, 0)
    t.ok(terms <= text.length, `${terms} terms`)
  }
  t.end()
})
