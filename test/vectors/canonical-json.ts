// Canonical JSON (RFC 8785). What is expected is written down here by hand, not computed.
import { createHash } from 'node:crypto'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

type Case = [name: string, input: string, canonical: string]

const NUMBERS: Case[] = [
  ['1e21 is the first power of ten with an exponent', '1e21', '1e+21'],
  ['and 1e20 the last without', '1e20', '100000000000000000000'],
  ['999999999999999900000', '999999999999999900000', '999999999999999900000'],
  ['negative zero is zero', '-0', '0'],
  ['negative zero with a fraction', '-0.0', '0'],
  ['1e-6 has no exponent', '1e-6', '0.000001'],
  ['1e-7 has', '0.0000001', '1e-7'],
  ['a fraction that is none', '1.0', '1'],
  ['an exponent that is not needed', '15E-1', '1.5'],
  ['the largest integer that is exact', '9007199254740991', '9007199254740991'],
  ['an integer that is not exact is rounded as IEEE 754 has it', '9007199254740993', '9007199254740992'],
  ['the smallest number', '5e-324', '5e-324'],
  ['the largest number', '1.7976931348623157e308', '1.7976931348623157e+308'],
  ['RFC 8785, appendix B', '333333333.33333329', '333333333.3333333'],
  ['RFC 8785, appendix B, rounded to even', '295147905179352830000', '295147905179352830000'],
]

const TEXTS: Case[] = [
  ['what must be escaped, and how', '"\\u0008\\u0009\\u000a\\u000c\\u000d\\u0022\\u005c"', '"\\b\\t\\n\\f\\r\\"\\\\"'],
  ['other control characters in lower case', '"\\u0000\\u001F"', '"\\u0000\\u001f"'],
  ['nothing else is escaped: solidus, DEL, NEL', '"\\/\\u007f\\u0085"', '"/\u007f\u0085"'],
  ['U+2028 and U+2029 stand as they are', '"\\u2028\\u2029"', '"\u2028\u2029"'],
  ['a pair of escapes is one character', '"\\ud83d\\ude00"', '"\u{1f600}"'],
  ['no normalisation: composed', '"\\u00e9"', '"\u00e9"'],
  ['no normalisation: decomposed', '"e\\u0301"', '"e\u0301"'],
  ['U+FEFF inside a text is a character', '"\\ufeff"', '"\ufeff"'],
]

const STRUCTURES: Case[] = [
  ['an empty object', ' { } ', '{}'],
  ['an empty array', '[\n]', '[]'],
  ['nested empty ones', '{"b":[{},[],[[]]],"a":{"":{}}}', '{"a":{"":{}},"b":[{},[],[[]]]}'],
  ['members by name, at every level', '[{"b":{"z":[],"a":{}},"a":1}]', '[{"a":1,"b":{"a":{},"z":[]}}]'],
  ['items in their order', '[3,1,2]', '[3,1,2]'],
  ['digits are characters: "10" before "9"', '{"9":1,"10":2,"":3}', '{"":3,"10":2,"9":1}'],
  ['upper case before lower case', '{"a":1,"B":2,"A":3}', '{"A":3,"B":2,"a":1}'],
  ['a name that is the beginning of another', '{"ab":1,"a":2}', '{"a":2,"ab":1}'],
  [
    'by UTF-16 code units: U+1F600 (D83D DE00) before U+FB33, though its code point is higher',
    '{"\\ufb33":1,"\\ud83d\\ude00":2}',
    '{"\u{1f600}":2,"\ufb33":1}',
  ],
  [
    'RFC 8785, 3.2.3',
    '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}',
    '{"\\r":"Carriage Return","1":"One","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis","\u20ac":"Euro Sign","\u{1f600}":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
  ],
  [
    'names that languages have plans for',
    '{"constructor":1,"__proto__":{"b":1,"a":2}}',
    '{"__proto__":{"a":2,"b":1},"constructor":1}',
  ],
  ['literals', '[true,false,null]', '[true,false,null]'],
  ['64 deep', '['.repeat(64) + ']'.repeat(64), '['.repeat(64) + ']'.repeat(64)],
]

/** The check that refuses: before anything is known of the data (`json`), or when it is to be canonical. */
type Refusal = [name: string, input: string | Buffer, check: 'json' | 'plain_json' | 'well_formed_unicode']

const REFUSED: Refusal[] = [
  ['a lone high surrogate', '{"a":"x\\ud800y"}', 'well_formed_unicode'],
  ['a lone low surrogate', '{"a":"\\udc00"}', 'well_formed_unicode'],
  ['the halves of a pair in the wrong order', '{"a":"\\ude00\\ud83d"}', 'well_formed_unicode'],
  ['a lone surrogate in a name', '{"\\ud800":1}', 'well_formed_unicode'],
  ['a number beyond IEEE 754', '{"a":1e400}', 'plain_json'],
  ['a member twice, with the same value', '{"a":1,"a":1}', 'json'],
  ['a member twice, in two spellings', '{"a":1,"\\u0061":2}', 'json'],
  ['a member twice, further in', '{"a":[{"b":{"c":1,"c":2}}]}', 'json'],
  ['65 deep', '['.repeat(65) + ']'.repeat(65), 'json'],
  ['not a number', '{"a":NaN}', 'json'],
  ['infinity', '{"a":Infinity}', 'json'],
  ['a leading zero', '{"a":01}', 'json'],
  ['a trailing comma', '{"a":1,}', 'json'],
  ['a comment', '{"a":1/* one */}', 'json'],
  ['a control character that is not escaped', '{"a":"\n"}', 'json'],
  ['a byte order mark', '\ufeff{"a":1}', 'json'],
  ['something after the end', '{"a":1}{}', 'json'],
  ['nothing', '', 'json'],
  ['a byte that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'json'],
  ['an overlong encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), 'json'],
  ['a surrogate encoded in UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), 'json'],
]

export const canonicalJsonVectors = {
  cases: [...NUMBERS, ...TEXTS, ...STRUCTURES].map(([name, input, canonical]) => ({
    name,
    input,
    canonical,
    sha256: sha256(canonical),
  })),
  refused: REFUSED.map(([name, input, check]) => ({
    name,
    input_base64: Buffer.from(input).toString('base64'),
    check,
  })),
}
