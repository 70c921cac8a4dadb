// How a watched quote is found in a text, and how similar two passages are.
import t from 'tap'
import { placeOf, similarityOf } from '../../server/citations/page-check.ts'

t.test('a quote is found at its old place, or at the nearest other one, in code points', async (t) => {
  const text = '😀 one two 😀 one two end'
  t.same(placeOf('one two', text, 2), { start: 2, end: 9 })
  t.same(placeOf('one two', text, 12), { start: 12, end: 19 })
  t.same(placeOf('one two', text, 99), { start: 12, end: 19 })
  t.same(placeOf('one two', text, 6), { start: 2, end: 9 }, 'of two equally near places, the earlier one')
  t.same(placeOf('one two', text, 8), { start: 12, end: 19 })
  t.equal(placeOf('one  two', text, 0), null)
  t.same(placeOf('😀', text, 1), { start: 0, end: 1 })
  t.equal(placeOf('x', '', 5), null)
})

t.test('similarity counts words and their order', async (t) => {
  t.equal(similarityOf('The fee is 12 euros.', 'the fee is 12 euros'), 1)
  t.equal(similarityOf('a b c', 'x y z'), 0)
  t.equal(similarityOf('', ''), 0)
  const changed = similarityOf('The fee is 12 euros.', 'The fee is 14 euros.')
  t.ok(changed > 0.6 && changed < 0.9, String(changed))
  t.ok(similarityOf('a b c d', 'd c b a') < similarityOf('a b c d', 'a b c e'), 'order')
  t.equal(similarityOf('a b', 'b a'), similarityOf('b a', 'a b'))
})
