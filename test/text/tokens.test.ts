import t from 'tap'
import { foldNumber, tokensOf } from '../../workers/text/tokens.ts'

const folded = (text: string) => tokensOf(text).map((token) => token.folded)
const kinds = (text: string) =>
  tokensOf(text)
    .map(({ kind }) => kind[0])
    .join('')

t.test('words that differ only in case, typography, accents or invisible characters are the same', (t) => {
  for (const [a, b] of [
    ['Straße', 'STRASSE'],
    ['Zürich', 'Zurich'],
    ['cafe\u0301', 'café'],
    ['ﬁnal', 'final'],
    ['exam\u00adple', 'example'],
    ['zero\u200bwidth', 'zerowidth'],
    ['İstanbul', 'ISTANBUL'],
    ['ΟΔΟΣ', 'οδός'],
    ['ёлка', 'ЕЛКА'],
    ['ｆｕｌｌ', 'full'],
    ['U.S.', 'US'],
    ['CO₂', 'CO2'],
    ['كِتَاب', 'كتاب'],
    ['الكتاب', 'كتاب'],
    ['القـــاهرة', 'القاهره'],
    ['שָׁלוֹם', 'שלום'],
    ['ｶﾞ', 'ガ'],
    ['three', '3'],
  ] as const)
    t.same(folded(a), folded(b), `${a} ${b}`)
  for (const [a, b] of [
    ['10²', '102'],
    ['かき', 'がき'],
    ['resume', 'consume'],
    ['बल', 'बाल'],
  ] as const)
    t.notSame(folded(a), folded(b), `${a} ${b}`)
  t.end()
})

t.test('an apostrophe, a hyphen and a dash separate words', (t) => {
  t.same(folded("l'homme"), ['l', 'homme'])
  t.same(folded('company’s'), ['company', 's'])
  t.same(folded('state-of-the–art'), ['state', 'of', 'the', 'art'])
  t.end()
})

t.test('a number is one token however it is written', (t) => {
  const same = ['1234.5', '1,234.5', '1.234,5', '1 234.5', '1\u202f234,5', "1'234.5", '١٢٣٤٫٥', '１２３４.５', '१२३४.५']
  for (const text of same) t.same(folded(text), ['1234.5'], text)
  t.same(folded('1 234 567'), ['1234567'])
  t.same(folded('12.05.2019'), ['12', '5', '2019'])
  t.same(folded('2019-03-05'), ['2019', '3', '5'])
  t.same(folded('0.125'), ['0.125'])
  t.same(folded('v1.2.3'), ['v1', '2', '3'])
  t.same(folded('5km'), ['5', 'km'])
  t.equal(foldNumber('007'), '7')
  t.equal(foldNumber('0'), '0')
  t.end()
})

t.test('scripts without spaces give one token for each character with its marks', (t) => {
  t.equal(kinds('東京は ABC 12'), 'dddwn')
  t.equal(tokensOf('ผู้').length, 1)
  t.equal(kinds('서울'), 'dd')
  t.end()
})

t.test('offsets refer to the given text', (t) => {
  const text = '🎉 Zürich’s 1 200 東京 e\u0301té'
  for (const { raw, start, end } of tokensOf(text)) t.equal(text.slice(start, end), raw)
  t.end()
})
