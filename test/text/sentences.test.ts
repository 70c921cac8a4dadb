import t from 'tap'
import { sentencesOf } from '../../workers/text/sentences.ts'

const cut = (text: string) => sentencesOf(text).map(({ start, end }) => text.slice(start, end))

t.test('sentences end at the punctuation that ends a sentence, and at no other', (t) => {
  for (const sentences of [
    ['Dr. Smith met J. K. Rowling in Paris.', 'It cost $3.5 million, e.g. a lot.', 'See Fig. 3 and No. 5.'],
    ['"Is it true?" he asked.', 'She nodded.'],
    ['Das war am 3. Oktober 1926.', 'Es gilt z. B. hier.', 'Ende.'],
    ['1. Peel the apples.', '2. Cut them.'],
    ['東京は首都です。', '人口は多い。', '「はい。」', 'と言った。'],
    ['यह एक वाक्य है।', 'दूसरा।'],
    ['القاهرة عاصمة مصر.', 'هل هذا صحيح؟', 'نعم.'],
    ['Мост построен в 1936 г. по проекту Ладынина.', 'Он цел.'],
  ]) {
    const joint = /[。」]/.test(sentences[0]!) ? '' : ' '
    t.same(cut(sentences.join(joint)), sentences)
  }
  t.end()
})

t.test('a line break always ends a sentence, and lines are counted', (t) => {
  const text = 'Heading\n\nOne. Two\nA\tB\r\nlast'
  t.same(cut(text), ['Heading', 'One.', 'Two', 'A\tB', 'last'])
  t.same(
    sentencesOf(text).map(({ line }) => line),
    [0, 2, 2, 3, 4],
  )
  t.end()
})

t.test('between sentences there is white space only, and none is longer than half a quotation', (t) => {
  for (const text of [
    'word '.repeat(3000),
    'x'.repeat(5000),
    '中'.repeat(2000),
    '🎉'.repeat(2000),
    `a${'\u0301'.repeat(3000)}`,
    'one, two; '.repeat(900),
    `${' '.repeat(3000)}x${' '.repeat(3000)}y`,
    '"Dr. A. "'.repeat(500),
  ]) {
    const sentences = sentencesOf(text)
    let end = 0
    for (const sentence of [...sentences, { start: text.length, end: text.length }]) {
      t.equal(text.slice(end, sentence.start).trim(), '')
      t.ok(sentence.end - sentence.start <= 500)
      end = sentence.end
    }
    t.ok(sentences.every(({ start, end }) => text.slice(start, end).isWellFormed()))
  }
  t.same(sentencesOf(''), [])
  t.same(sentencesOf(' \n\n '), [])
  t.end()
})
