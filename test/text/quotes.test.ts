// How quotes are found in a text: which kind of match, at which code points, and in bounded time for any text.
import t from 'tap'
import { openThreads } from '../../server/threads/pool.ts'
import { occurrencesOf } from '../../workers/text/occurrences.ts'
import { type FoundQuote, findQuotes } from '../../workers/text/quote-thread.ts'
import { findQuotes as findOnThread } from '../../workers/text/quotes.ts'
import { similarityOf } from '../../workers/text/similarity.ts'

const find = (text: string, quote: string, near = 0): FoundQuote => findQuotes({ text, quotes: [{ quote, near }] })[0]!

/** The match and the passage's text, after a check that the offsets, in code points, cut that text out. */
function matched(text: string, quote: string): [string, string?] {
  const found = find(text, quote)
  if (found.match === 'absent') return ['absent']
  const { start, end, text: passage } = found.passage
  t.equal([...text].slice(start, end).join(''), passage, 'the offsets cut out the passage')
  if (found.match === 'exact') t.equal(passage, quote)
  return [found.match, passage]
}

t.test('a quote is found at the place that is nearest to a former one, in code points', async (t) => {
  const text = '😀 one two 😀 one two end'
  const places: [string, number, [number, number]][] = [
    ['one two', 0, [2, 9]],
    ['one two', 2, [2, 9]],
    ['one two', 12, [12, 19]],
    ['one two', 99, [12, 19]],
    ['one two', 6, [2, 9]],
    ['one two', 8, [12, 19]],
    ['ONE  TWO', 8, [12, 19]],
    ['😀', 1, [0, 1]],
  ]
  for (const [quote, near, [start, end]] of places)
    t.match(find(text, quote, near), { passage: { start, end } }, `${quote} near ${near}`)
  t.same(find('', 'x', 5), { match: 'absent' })
})

t.test('white space, quotation marks, dashes and case make a match typographic', async (t) => {
  const pairs = [
    ['The harbour was opened.', 'the  HARBOUR\n was\u00a0opened.'],
    ['He said “yes” – twice', `he said "yes" - twice`],
    ["it's so", 'it’s so'],
    ['‘single’ and „German“ and «French»', `"single" and ''German'' and « French »`],
    ['「はい」と言った', '"はい"と言った'],
    ['a—b', 'a -- b'],
    ['1914–1918', '1914-1918'],
    ['−5 °C', '-5 °C'],
    ['Bonjour !', 'bonjour!'],
    ['one\ntwo', 'one two'],
    ['港は 開かれた', '港は開かれた'],
    ['ราคา สิบ บาท', 'ราคาสิบบาท'],
    ['Die Straße', 'DIE STRASSE'],
    ['ΟΔΥΣΣΕΥΣ', 'Οδυσσευς'],
    ['Ёлка стоит', 'ёлка СТОИТ'],
    ['İstanbul', 'i̇stanbul'],
    ['𐐀𐐁 Deseret', '𐐨𐐩 deseret'],
    ['café', 'cafe\u0301'],
    ['soft', 'so\u00adft'],
    ['ﬁne', 'fine'],
  ]
  for (const [page = '', quote = ''] of pairs) {
    t.same(matched(page, quote), ['typographic', page], `${quote} in ${page}`)
    const text = `😀 Before it.\n${page}\n😀 after`
    t.same(matched(text, quote), ['typographic', page], `${quote} among other text`)
    t.same(matched(text, page), ['exact', page])
  }
})

t.test('other differences are not typographic', async (t) => {
  const pairs = [
    ['the therapist said', 'the rapist said'],
    ['a word', 'aword'],
    ['resume', 'résumé'],
    ['fee of 12 euros', 'fee of 13 euros'],
    ['wait…', 'wait...'],
    ['co-operate', 'cooperate'],
    ['हिन्दी', 'हिन्द'],
  ]
  for (const [page = '', quote = ''] of pairs) t.not(matched(page, quote.toUpperCase())[0], 'typographic', quote)
})

t.test('a typographic match has whole characters only', async (t) => {
  t.same(matched('Maß', 'MAS'), ['absent'], 'half of ß is not s')
  t.same(matched('eine Maß', 'EINE MASS'), ['typographic', 'eine Maß'])
  t.same(matched('x\u0323\u0302y', 'X'), ['absent'], 'a letter without its marks is another letter')
  t.same(matched('x x\u0323y X', 'X\u0323Y'), ['typographic', 'x\u0323y'])
  t.same(matched('e\u0301'.normalize('NFC'), 'e\u0301'), ['typographic', 'é'])
  t.same(matched('a "b" c', '“B”'), ['typographic', '"b"'])
  t.same(matched(`she said ''so''`, '“SO”'), ['typographic', `''so''`], 'a run of marks is one mark')
})

t.test('the nearest passage has the changed words and the rest of the quote', async (t) => {
  const text =
    'Kelby is a town. The harbour was opened in 1875 by the county engineer, and it has three piers. The fee is 12 euros. ' +
    'Fishing ended in 1962, said the mayor.'
  const pairs = [
    ['The harbour was opened in 1874 by the county engineer', 'The harbour was opened in 1875 by the county engineer'],
    ['opened in 1875 by the state engineer', 'opened in 1875 by the county engineer'],
    ['The fee is 14 euros.', 'The fee is 12 euros.'],
    ['it has three piers. The fee was 12 euros. Fishing', 'it has three piers. The fee is 12 euros. Fishing'],
    ['Fishing had ended in 1962', 'Fishing ended in 1962'],
    ['by the county engineer, and it has 30', 'by the county engineer, and it has three'],
  ]
  for (const [quote = '', passage = ''] of pairs) t.same(matched(text, quote), ['near', passage], quote)
  t.same(matched(text, 'The library closes at noon on every Sunday.'), ['absent'])
  t.same(matched(text, 'harbour'.repeat(3)), ['absent'])
  t.same(matched('港は1874年に開かれました。', '港は1875年に開かれました。'), ['near', '港は1874年に開かれました。'])
  t.same(matched('बंदरगाह 1874 में खोला गया था', 'बंदरगाह 1875 में खोला गया था'), ['near', 'बंदरगाह 1874 में खोला गया था'])
  t.same(matched('افتتح الميناء في عام 1874', 'افتتح الميناء في عام 1875'), ['near', 'افتتح الميناء في عام 1874'])
  const astral = '😀😀 𐐀 one 😀 two three four'
  t.same(matched(astral, '𐐀 one 😀 two five four'), ['near', '𐐀 one 😀 two three four'])
})

t.test('a passage is never longer than a quote may be', async (t) => {
  const long = 'x'.repeat(3000)
  for (const text of [`one two ${long} three four`, `${long} one`, `one ${'!'.repeat(3000)} two three`]) {
    const found = find(text, `one two ${long.slice(0, 900)} three four!!!!`)
    if (found.match !== 'absent') t.ok(found.passage.text.length <= 1000, String(found.passage.text.length))
  }
})

t.test('similarity counts words and their order', async (t) => {
  t.equal(similarityOf('The fee is 12 euros.', 'the fee is 12 euros'), 1)
  t.equal(similarityOf('a b c', 'x y z'), 0)
  t.equal(similarityOf('', ''), 0)
  const changed = similarityOf('The fee is 12 euros.', 'The fee is 14 euros.')
  t.ok(changed > 0.6 && changed < 0.9, String(changed))
  t.ok(similarityOf('a b c d', 'd c b a') < similarityOf('a b c d', 'a b c e'), 'order')
  t.equal(similarityOf('a b', 'b a'), similarityOf('b a', 'a b'))
  t.ok(similarityOf('港は開かれた', '港は閉じた') > 0.3, 'characters are the words of scripts without spaces')
})

t.test('all occurrences are found, as the search of the language finds them', async (t) => {
  const letters = () => 'ab'[Math.floor(Math.random() * 2)]!
  for (let n = 0; n < 500; n++) {
    const text = Array.from({ length: n % 40 }, letters).join('')
    const pattern = Array.from({ length: 1 + (n % 5) }, letters).join('')
    const expected = [...text].map((_, i) => i).filter((i) => text.startsWith(pattern, i))
    t.same([...occurrencesOf(pattern, text)], expected, `${pattern} in ${text}`)
  }
  t.same([...occurrencesOf('', 'abc')], [])
})

/** Texts and quotes of the largest size, each the worst for some step. */
const HOSTILE: Record<string, [string, string]> = {
  'one letter': ['a'.repeat(100_000), `b${'a'.repeat(999)}`],
  'one letter, from the end': ['a'.repeat(100_000), `${'A'.repeat(999)}b`],
  'overlapping matches': ['a'.repeat(100_000), 'A'.repeat(1000)],
  'periodic words': ['a b '.repeat(25_000), `${'b a '.repeat(249)}x`],
  'words of one character': ['漢字学校'.repeat(25_000), '漢学字校'.repeat(250)],
  'one word of a script without spaces': ['漢'.repeat(100_000), `字${'漢'.repeat(998)}字`],
  'white space': [`${' '.repeat(99_999)}x`, `${' '.repeat(999)}y`],
  dashes: ['-'.repeat(100_000), '– '.repeat(500)],
  'characters that fold to many': ['ﬃ'.repeat(100_000), 'ffiffif'.repeat(142)],
  'half characters': ['ß'.repeat(100_000), 's'.repeat(999)],
  'surrogate pairs': ['😀'.repeat(100_000), `${'😀'.repeat(999)}x`],
  marks: [`${`e${'\u0323'.repeat(30)}`.repeat(3200)}`, 'e\u0323\u0302'.repeat(333)],
  lines: ['a\n'.repeat(50_000), 'a a a b '.repeat(125)],
}

t.test('twenty quotes take bounded time in any text', async (t) => {
  for (const [name, [text, quote]] of Object.entries(HOSTILE)) {
    const quotes = Array.from({ length: 20 }, () => ({ quote, near: 0 }))
    const before = process.cpuUsage()
    findQuotes({ text, quotes })
    const { user, system } = process.cpuUsage(before)
    const ms = (user + system) / 1000
    // CPU time, which other work on the machine does not change. A quadratic step would take minutes.
    t.ok(ms < 10_000, `${name}: ${ms.toFixed(0)} ms`)
  }
})

t.test('the search runs on a thread, and ends with its signal', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  const task = { text: 'One two three.', quotes: [{ quote: 'two', near: 0 }] }
  t.match(await findOnThread(threads, task), [{ match: 'exact', passage: { start: 4, end: 7 } }])
  await t.rejects(findOnThread(threads, task, { signal: AbortSignal.abort() }), { code: 'aborted' })
})
