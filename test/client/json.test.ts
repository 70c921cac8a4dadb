import { runInNewContext } from 'node:vm'
import t from 'tap'
import { canonicalJson, jsonFaults, parseJson } from '../../client/json.ts'

t.test('numbers are written as ECMAScript writes them', async (t) => {
  // RFC 8785, appendix B, and how other spellings are parsed.
  const cases: [string, string][] = [
    ['1e21', '1e+21'],
    ['100000000000000000000', '100000000000000000000'],
    ['-0', '0'],
    ['-0.0', '0'],
    ['0.000001', '0.000001'],
    ['1e-7', '1e-7'],
    ['5e-324', '5e-324'],
    ['-1.7976931348623157e308', '-1.7976931348623157e+308'],
    ['9007199254740993', '9007199254740992'],
    ['295147905179352830000', '295147905179352830000'],
    ['333333333.33333329', '333333333.3333333'],
    ['1.50', '1.5'],
    ['10.0', '10'],
  ]
  for (const [text, expected] of cases) t.equal(canonicalJson(parseJson(text)), expected, text)
})

t.test('members are sorted by UTF-16 code units, at every level', async (t) => {
  // U+1F600 is D83D DE00 in UTF-16, before U+FB33; by code point it would be after it.
  t.equal(canonicalJson({ '\ufb33': 1, '\u{1f600}': 2 }), '{"\u{1f600}":2,"\ufb33":1}')
  t.equal(
    canonicalJson(parseJson('{"\\u20ac":1,"\\r":2,"\\ufb33":3,"1":4,"\\ud83d\\ude00":5,"\\u0080":6,"\\u00f6":7}')),
    '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\u{1f600}":5,"\ufb33":3}',
  )
  t.equal(canonicalJson([{ b: { z: [], a: {} }, a: 1 }]), '[{"a":1,"b":{"a":{},"z":[]}}]')
  t.equal(canonicalJson({ 10: 1, 9: 2, '': 3 }), '{"":3,"10":1,"9":2}')
  t.equal(canonicalJson(parseJson('{"b":1,"__proto__":{"y":1,"x":2}}')), '{"__proto__":{"x":2,"y":1},"b":1}')
})

t.test('only characters that must be escaped are escaped', async (t) => {
  t.equal(canonicalJson('\u2028\u2029'), '"\u2028\u2029"')
  t.equal(canonicalJson('\u007f\u00a0\ufeff</'), '"\u007f\u00a0\ufeff</"')
  t.equal(canonicalJson('\b\t\n\f\r"\\\u0000\u001f'), '"\\b\\t\\n\\f\\r\\"\\\\\\u0000\\u001f"')
  // Canonical form does not normalize: the two spellings of e-acute stay different.
  t.not(canonicalJson('\u00e9'), canonicalJson('e\u0301'))
})

t.test('a value without a canonical form is refused, and the error names its place', async (t) => {
  class Thing {
    a = 1
  }
  const cyclic: unknown[] = []
  cyclic.push({ inside: cyclic })
  const cases: [unknown, string][] = [
    [{ a: ['\ud800'] }, '/a/0 is not well-formed Unicode'],
    [{ '\udfff': 1 }, 'has a name that is not well-formed'],
    [{ a: Number.NaN }, '/a is not a finite number'],
    [Number.NEGATIVE_INFINITY, 'the value is not a finite number'],
    [{ 'a/b~c': undefined }, '/a~1b~0c is not JSON data'],
    [new Array(1), '/0 is not JSON data'],
    [{ a: new Date(0) }, '/a is not JSON data'],
    [{ a: { toJSON: () => 'another value' } }, '/a/toJSON is not JSON data'],
    [new Map(), 'the value is not JSON data'],
    [new Thing(), 'the value is not JSON data'],
    [Object('boxed'), 'the value is not JSON data'],
    [1n, 'the value is not JSON data'],
    [cyclic, '/0/inside contains itself'],
  ]
  for (const [value, reason] of cases) t.throws(() => canonicalJson(value), { name: 'TypeError', message: reason })
  t.equal(jsonFaults({ a: '\ud800', b: '\udc00', c: undefined }).length, 3)
})

t.test('objects without a prototype and of another realm are plain', async (t) => {
  t.equal(canonicalJson(Object.assign(Object.create(null), { b: 1, a: 2 })), '{"a":2,"b":1}')
  t.equal(canonicalJson(runInNewContext('({ b: [1], a: 2 })')), '{"a":2,"b":[1]}')
})

t.test('a repeated member is refused in any spelling', async (t) => {
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '[{"x":{"a" : 1,"b":"a","a"\n:2}}]',
    '{"\\"":1,"\\"":2}',
    '{"__proto__":1,"__proto__":2}',
  ])
    t.throws(() => parseJson(text), SyntaxError, text)
  for (const text of [
    '{"a":"\\"a\\":1,\\"a\\":2","b":"a"}',
    '[{"a":1},{"a":1}]',
    '{"a":{"a":{"a":":"}}}',
    '["a",":","\\\\",{"\\\\":"a\\":"}]',
    '{"__proto__":1,"constructor":2}',
    '"a"',
  ])
    t.same(parseJson(text), JSON.parse(text), text)
  t.throws(() => parseJson('{"a":1,}'), SyntaxError)
})

t.test('nesting without end is refused, without recursion', async (t) => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  t.doesNotThrow(() => parseJson(nested(64)))
  // Before JSON.parse makes anything of it, so a text without an end is refused for the same reason.
  for (const text of [nested(65), nested(200_000), '['.repeat(200_000), `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`])
    t.throws(() => parseJson(text), { name: 'SyntaxError', message: /nested more than 64 deep/ })
})

t.test('more values than a small machine can hold are refused before they are made', async (t) => {
  const numbers = (count: number) => `[${Array(count).fill('1').join(',')}]`
  t.doesNotThrow(() => parseJson(numbers(399_000)))
  t.doesNotThrow(() => parseJson(JSON.stringify({ a: '[{,:'.repeat(400_000) })))
  for (const text of [numbers(400_001), ','.repeat(400_001), `[${'{},'.repeat(250_000)}1]`])
    t.throws(() => parseJson(text), { name: 'SyntaxError', message: 'It has more than 400,000 values' })
})

t.test('a long string is read without recursion', async (t) => {
  const text = JSON.stringify({ a: '\\"x'.repeat(500_000) })
  t.equal((parseJson(text) as { a: string }).a.length, 1_500_000)
})
