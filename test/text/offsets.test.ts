import { hash } from 'node:crypto'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import t from 'tap'
import { codePointIndex } from '../../workers/text/offsets.ts'

/** Random numbers that are the same in every run. */
function randomizer(seed: number) {
  return (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
}

const alphabets = {
  'ASCII only': ['a', 'b', ' ', '\n'],
  'no surrogates': ['a', 'é', '語', '\u0301', '\ufffd'],
  'some surrogates': ['a', 'é', '😀', '語', '\u200d', 'b', 'c'],
  'nothing but surrogates': ['😀', '𐀀', '\u{10ffff}', '🏴'],
}

for (const [name, alphabet] of Object.entries(alphabets)) {
  t.test(`${name}: every index agrees with Array.from`, async (t) => {
    const random = randomizer(alphabet.length)
    for (let round = 0; round < 60; round++) {
      const points = Array.from({ length: random(80) }, () => alphabet[random(alphabet.length)]!)
      const text = points.join('')
      const index = codePointIndex(text)
      const starts = [0]
      for (const point of points) starts.push(starts.at(-1)! + point.length)
      const wrong = starts.filter((start, i) => index.toUtf16(i) !== start || index.toCodePoint(start) !== i)
      if (index.length !== points.length || wrong.length > 0) t.fail(JSON.stringify({ text, wrong }))
    }
    t.pass()
  })

  t.test(`${name}: a quote is the same slice either way, with the same digest`, async (t) => {
    const random = randomizer(alphabet.length + 7)
    for (let round = 0; round < 60; round++) {
      const points = Array.from({ length: 1 + random(300) }, () => alphabet[random(alphabet.length)]!)
      const text = points.join('')
      const index = codePointIndex(text)
      const begin = random(points.length)
      const end = begin + random(points.length - begin + 1)
      const quote = text.slice(index.toUtf16(begin), index.toUtf16(end))
      const expected = Array.from(text).slice(begin, end).join('')
      if (quote !== expected) t.fail(JSON.stringify({ text, begin, end }))
      if (hash('sha256', quote) !== bytesToHex(sha256(utf8ToBytes(expected)))) t.fail(`digest of ${expected}`)
    }
    t.pass()
  })
}

t.test('places that are none', async (t) => {
  const index = codePointIndex('a😀b')
  t.equal(index.length, 3)
  t.equal(index.toCodePoint(4), 3, 'the end is a place')
  t.equal(index.toUtf16(3), 4)
  t.throws(() => index.toCodePoint(2), RangeError, 'inside of a surrogate pair')
  for (const place of [-1, 5, 1.5, Number.NaN]) t.throws(() => index.toCodePoint(place), RangeError)
  for (const place of [-1, 4, 0.5]) t.throws(() => index.toUtf16(place), RangeError)
  t.equal(codePointIndex('').length, 0)
  t.equal(codePointIndex('').toUtf16(0), 0)
})

t.test('text that has no UTF-8 is refused', async (t) => {
  for (const text of ['\ud83d', 'a\ude00', '\ude00\ud83d', `${'x'.repeat(1000)}\ud800`]) {
    t.throws(() => codePointIndex(text), TypeError)
  }
})
