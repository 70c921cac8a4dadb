import t from 'tap'
import { cleanCharacters, composeCharacters } from '../../workers/text/characters.ts'

function clean(text: string) {
  const unseen = { length: 0 }
  return [cleanCharacters(text, unseen), unseen.length]
}

t.test('what stays as it is', async (t) => {
  for (const text of [
    '',
    'plain ASCII ~ with\ttabs\nand\r\nline\ffeeds',
    'Zażółć gęślą jaźń – „ß“ … €',
    '日本語 한글 العربية עברית ไทย',
    'می\u200cخواهم',
    '👩\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3',
    '10² ½ ﬁ Ⅳ',
    '\ufffd',
    '\u{20000}\u{10ffff}',
  ]) {
    t.same(clean(text), [text, 0], JSON.stringify(text))
  }
})

t.test('every blank becomes a space', async (t) => {
  for (const blank of '\v\x85\xa0\u1680\u2000\u2003\u2009\u200a\u2028\u2029\u202f\u205f\u3000') {
    t.same(clean(`a${blank}b`), ['a b', 0], blank.codePointAt(0)!.toString(16))
  }
})

t.test('what has no width goes without a word', async (t) => {
  for (const character of '\xad\u061c\u200b\u200e\u200f\u2060\u2064\u2066\u2069\ufeff') {
    t.same(clean(`a${character}b`), ['ab', 0], character.codePointAt(0)!.toString(16))
  }
})

t.test('what can carry unseen content goes and is counted', async (t) => {
  for (const text of [
    '\0',
    '\x07',
    '\x1b',
    '\x7f',
    '\x9f',
    '\u202a',
    '\u202e',
    '\u206f',
    '\ufff9',
    '\u3164',
    '\uffa0',
  ]) {
    t.same(clean(`a${text}b`), ['ab', 1], text.codePointAt(0)!.toString(16))
  }
  const smuggled = [...'ignore all'].map((letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join('')
  t.same(clean(`a${smuggled}b`), ['ab', 20], 'tags, in UTF-16 units')
  t.same(clean('a\ufe00\ufe01\ufe02b'), ['a\ufe00b', 2], 'of variation selectors, the first stays')
  t.same(clean('a\u{e0100}\u{e0101}b'), ['a\u{e0100}b', 2])
})

t.test('composition is NFC and no more', async (t) => {
  t.equal(composeCharacters('e\u0301 A\u030a \u1112\u1161\u11ab'), 'é Å 한')
  t.equal(composeCharacters('q\u0323\u0307'), composeCharacters('q\u0307\u0323'), 'marks are put in order')
  t.equal(composeCharacters('10² ½ ﬁ Å'), '10² ½ ﬁ Å', 'compatibility characters stay, the Angstrom sign does not')
})

t.test('piles of marks are cut to thirty', async (t) => {
  t.equal(composeCharacters(`x${'\u0316'.repeat(30)}y`).length, 32)
  t.equal(composeCharacters(`x${'\u0316'.repeat(31)}y`).length, 32)
  t.equal(composeCharacters('x\u0316\u0301'.repeat(2)).length, 6, 'marks of several letters are no pile')
  const pile = composeCharacters(`a${'\u0316\u0301'.repeat(2_100_000)}`)
  t.equal(pile.length, 30, 'a with acute, and 29 others')
})
