// Texts of one small part again and again, which every reader may be sent. Written for these tests.
import { fill } from './hostile-pages.ts'

/** Small parts of which every text may consist: what opens and never closes, marks, and characters that take others in. */
export const UNITS = [
  ...[
    '/*',
    '<!--',
    '<',
    '&',
    '"',
    "'",
    '“a ',
    '`',
    '[',
    '[a',
    '(',
    '{',
    '\\',
    '- ',
    '> ',
    '# ',
    '1. ',
    ' a=b',
    '*a _b ',
  ],
  ...[
    'a ',
    'a',
    ' ',
    '\t',
    '\n',
    '\r',
    'a\r',
    'a\n',
    '. ',
    'e\u0301',
    '\u0301',
    '\u200b',
    '\u3099',
    '😀',
    '中',
    '1 ',
    'https://s.test/a ',
  ],
]
/** Texts of one part. */
export const generated = Object.fromEntries(
  UNITS.map((unit) => [`${JSON.stringify(unit)} again and again`, (size: number) => fill(size, unit)]),
)
