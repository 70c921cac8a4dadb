// Reports made to exhaust a reader: name → a report of about so many characters, as Markdown and as HTML. Written for these
// tests.

const fill = (size: number, unit: string, before = '', after = '') =>
  before + unit.repeat(Math.max(1, Math.floor((size - before.length - after.length) / unit.length))) + after

const each = (size: number, unit: (i: number) => string) => {
  const parts: string[] = []
  let length = 0
  for (let i = 0; ; i++) {
    const part = unit(i)
    length += part.length
    if (length > size) return parts.join('')
    parts.push(part)
  }
}

const link = '<a href=https://s.test/a></a>'

export const hostileReports: Record<string, (size: number) => string> = {
  'open comments': (size) => fill(size, 'x <!--'),
  'open comments alone': (size) => fill(size, '<!--'),
  'open instructions': (size) => fill(size, 'x <?'),
  'open declarations': (size) => fill(size, 'x <!A '),
  'open sections': (size) => fill(size, 'x <![CDATA['),
  'open tags': (size) => fill(size, 'x <a b="'),
  'open tags of many attributes': (size) => fill(size, ' b', 'x <a'),
  'runs of code marks, each longer': (size) => each(size, (i) => `${'`'.repeat(i + 1)} `),
  'open titles of links': (size) => fill(size, '[a](b ('),
  'open addresses of links': (size) => fill(size, '[a](<b'),
  'open labels': (size) => fill(size, '[a'),
  'open labels, escaped': (size) => fill(size, '[\\]'),
  'open definitions': (size) => fill(size, '[a]: b (\n'),
  'calls of notes': (size) => fill(size, 'x[^1] '),
  'an address of stops': (size) => fill(size, '!', 'http://s.test/', 'x'),
  'an address of references': (size) => fill(size, '&a;', 'http://s.test/', 'x'),
  'addresses of mail': (size) => fill(size, 'a@b.c-'),
  'marks of emphasis': (size) => fill(size, '*a _b '),
  'marks of emphasis, each another': (size) => fill(size, '_~~'),
  'paragraphs of emphasis': (size) => fill(size, `${'*a **b _c '.repeat(600)}\n\n`),
  'paragraphs of brackets': (size) => fill(size, `${'[a] '.repeat(1200)}\n\n`),
  'words without blanks': (size) => fill(size, 'a<i></i>'),
  'emphasis without blanks': (size) => fill(size, `${'a*b*'.repeat(900)}\n\n`),
  'ends of sentences': (size) => fill(size, '. '),
  'numbers with stops': (size) => fill(size, '1. '),
  'one long sentence': (size) => fill(size, 'word '),
  'empty links at one place': (size) => fill(size, link, 'One two three. '),
  'empty links in Markdown': (size) => fill(size, `One two three. ${'[](https://s.test/a)'.repeat(800)}\n\n`),
  'links of one mark': (size) => fill(size, '<a href=https://s.test/a>†</a> ', 'One two three. '),
  'links in brackets': (size) => fill(size, '(<a href=https://s.test/a>a</a>) ', 'One two three. '),
  'quoted elements': (size) => fill(size, '<q>one two three</q> "one two three" '),
  'quoted elements in each other': (size) => fill(size, 'one two three ', '<q>'.repeat(400)),
  'named elements in each other': (size) => fill(size, '<br>', `<p>${'<span id=a>'.repeat(400)}`),
  'calls in each other': (size) => fill(size, 'x', '<a href=#a><table><td>'.repeat(100)),
  'a note of many links, called often': (size) =>
    fill(size / 2, '<a href=https://s.test/a>a</a>', '<p id=n>') +
    each(size / 2, (i) => `<p>One two three ${i} <a href=#n>1</a>`),
  'a footnote of many links, called often': (size) =>
    `${each(size / 2, (i) => `One two three ${i} [^1]\n\n`)}[^1]: ${'[a](https://s.test/a) '.repeat(Math.min(2000, size / 44))}\n`,
  'breaks after an entry': (size) => fill(size, '<br>', '[1] a'),
  'dashes in a quotation': (size) =>
    fill(size, '-', '<blockquote>a <a href=https://s.test/a>x</a>', 'a †</blockquote>'),
  'dashes before a call': (size) => fill(size, '-', '> a', ' a — [x](https://s.test/a)'),
  'blanks in a quotation': (size) => fill(size, '\u00a0', '"one two three', 'x" <a href=https://s.test/a>x</a>'),
  'blanks before a source': (size) => fill(size, '\u00a0', '<blockquote>one two three</blockquote><p>', 'x'),
  'a flood of attributes': (size) => each(size, (i) => (i === 0 ? '<p' : ` a${i}=b`)),
  'deep quotations': (size) => fill(size, '> '),
  'deep lists': (size) => fill(size, '- '),
  'deep elements': (size) => fill(size, '<div>'),
  'wrongly nested elements': (size) => each(size, (i) => `<b id=${i}><p>`),
  'items of lists': (size) => fill(size, '- a\n'),
  'quotations of one line': (size) => fill(size, '> a\n\n'),
  'lazy lines of quotations': (size) => fill(size, '> a\nb\n'),
  'lists in lists': (size) => fill(size, '- a\n  - b\n'),
  'rows of tables': (size) => fill(size, '| a ', '| a |\n|-|\n'),
  'carriage returns': (size) => fill(size, 'a\r'),
  'combining marks': (size) => fill(size, '\u0301', 'a'),
  references: (size) => fill(size, '&amp;'),
  'references, each another': (size) => each(size, (i) => `&#${i + 200};`),
  'references by names, each another': (size) => each(size, (i) => `&a${i};`),
  'closing brackets': (size) => fill(size, ']'),
  'ends of links': (size) => fill(size, '](a) '),
  'ends of links, some of them begun': (size) => fill(size, `${'[a](b) '.repeat(20)}${'](a) '.repeat(20)}`),
  'open references': (size) => fill(size, '&a'),
  backslashes: (size) => fill(size, '\\'),
  'marks of quotation': (size) => fill(size, '“a '),
}

/** Values, of which a text of JSON may have a few more. */
const MOST_VALUES = 399_000
const values = (size: number, each: number) => Math.max(0, Math.min(MOST_VALUES, Math.floor((size - 10) / each)))
const list = (size: number, item: string) =>
  `[${Array(values(size, item.length + 1))
    .fill(item)
    .join(',')}]`

/** Files that a person drops: name → a file of at most so many characters. */
export const hostileFiles: Record<string, (size: number) => string> = {
  'header lines without a body': (size) => fill(size, 'a:\r\n'),
  'header lines, some without a value': (size) => fill(size, 'a:\n\r'),
  'header lines of colons': (size) => fill(size, '::a:\n'),
  'one long header': (size) => fill(size, 'a', 'webhook-id:'),
  'a message of many headers': (size) => fill(size, 'a: b\n', 'webhook-id: a\n', '\n{}'),
  'open brackets': (size) => fill(size, '['),
  'brackets in brackets': (size) => fill(size / 2, '[') + ']'.repeat(size / 2),
  'open strings': (size) => fill(size, '\\"', '"'),
  'a string of escapes': (size) => `"${'\\"'.repeat(size / 2 - 1)}"`,
  'many members': (size) =>
    `{${Array.from({ length: values(size, 15) }, (_, i) => `"a${i}": "b"`.padEnd(14)).join(',')}}`,
  'many attestations': (size) => list(Math.min(size, MOST_VALUES * 6), '{"serial":1}'),
  'many numbers': (size) => list(size, '1.5'),
  'many halves of characters': (size) => list(size, '"\\ud800"'),
  'many objects of one member, each another': (size) =>
    `[${Array.from({ length: Math.min(values(size, 18), MOST_VALUES / 2) }, (_, i) => `{"a${i}": "b"}`.padEnd(17)).join(',')}]`,
  'a long text of many escapes': (size) => JSON.stringify({ result: '\u4e2d\n'.repeat(size / 6) }),
  'lines of an export': (size) => fill(size, '{"a":1}\n', '{"countersign_export":1}\n'),
  blanks: (size) => fill(size, ' ', '{', '}'),
}
