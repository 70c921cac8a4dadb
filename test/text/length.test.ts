import t from 'tap'
import { cutText, maxCodePoints } from '../../workers/text/page/length.ts'

t.test('what fits is kept whole', async (t) => {
  t.equal(maxCodePoints, 100_000)
  for (const text of ['', 'a', 'a b\nc', '😀😀😀😀😀']) t.equal(cutText(text, 5), text)
})

t.test('the cut is where a block ends, else a word, else anywhere between code points', async (t) => {
  for (const [text, limit, expected] of [
    ['one two\nthree four\nfive', 20, 'one two\nthree four'],
    ['one two\nthree four\nfive', 18, 'one two\nthree four'],
    ['one two\n\nthree four', 12, 'one two'],
    ['a\nlong paragraph without end', 16, 'a\nlong paragraph'],
    ['a\nlong paragraph without end', 15, 'a\nlong paragrap'],
    ['a\nlongparagraphwithoutend', 10, 'a\nlongpara'],
    ['😀😀😀😀😀', 3, '😀😀😀'],
    ['😀😀 😀😀', 4, '😀😀'],
    ['ab\tcd\nef', 7, 'ab\tcd'],
  ] as const) {
    t.equal(cutText(text, limit), expected, `${JSON.stringify(text)} at ${limit}`)
  }
})

t.test('no cut is longer than the limit, or less than half of it', async (t) => {
  const points = Array.from({ length: 400 }, (_, i) => ['😀', '語', 'a', '\n', ' ', 'b', 'c'][(i * i) % 7])
  const text = points.join('')
  const wrong = points.flatMap((_, limit) => {
    const cut = cutText(text, limit)
    const { length } = Array.from(cut)
    return text.startsWith(cut) && cut.isWellFormed() && length <= limit && length * 2 >= limit - 3 ? [] : [limit]
  })
  t.same(wrong, [])
})
