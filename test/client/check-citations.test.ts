// Citations in a report: which words cite which page, in Markdown and in HTML, and that the time is at most proportional to
// the length of the report.
import t from 'tap'
import { type Citation, findCitations } from '../../client/report/citations.ts'
import { applyCorrections, correctionsFor } from '../../client/report/correction.ts'
import { differenceOf } from '../../client/report/difference.ts'
import { readHtml } from '../../client/report/html.ts'
import { judge, wantedOf } from '../../client/report/judgement.ts'
import { readMarkdown } from '../../client/report/markdown.ts'
import type { Found, PageAnswer } from '../../client/report/pages.ts'
import { Lines, UnreadableReportError } from '../../client/report/report.ts'

/** `page: words | words`, or `page ~ sentence` for what does not quote. */
const shown = (citations: readonly Citation[]) =>
  citations.map(({ url, kind, parts, sentence }) => {
    const page = url.replace('https://s.test', '')
    return kind === 'claim' || kind === 'link'
      ? `${page} ~ ${sentence}`
      : `${page}: ${parts.map(({ text }) => text).join(' | ')}`
  })

const inMarkdown = async (text: string) => shown(findCitations(await readMarkdown(text)))
const inHtml = async (text: string) => shown(findCitations(await readHtml(text)))

t.test('quotation marks of every usual style', async (t) => {
  for (const quoted of ['"one two three"', '“one two three”', '„one two three“', '„one two three”', '«one two three»'])
    t.same(await inMarkdown(`It says ${quoted} [x](https://s.test/a).`), ['/a: one two three'], quoted)
  for (const quoted of [
    '« one two three »',
    '»one two three«',
    '”one two three”',
    '『这是一个很长的句子』',
    '＂one two three＂',
  ])
    t.equal((await inMarkdown(`It says ${quoted} [x](https://s.test/a).`))[0]?.slice(0, 4), '/a: ', quoted)
  t.same(await inMarkdown('A 5" pipe and a 6" pipe [x](https://s.test/a).'), ['/a ~ A 5" pipe and a 6" pipe x.'])
  t.same(await inMarkdown('The so-called "harbour" is [here](https://s.test/a).'), [
    '/a ~ The so-called "harbour" is here.',
  ])
})

t.test('each quotation has the source beside it', async (t) => {
  const a = '[A](https://s.test/a)'
  const b = '[B](https://s.test/b)'
  const cases: [string, string[]][] = [
    [`"one two three" ${a} and "four five six" ${b}.`, ['/a: one two three', '/b: four five six']],
    [`${a} says "one two three" and "four five six".`, ['/a: one two three', '/a: four five six']],
    [`${a} says "one two three", while "four five six" is from ${b}.`, ['/a: one two three', '/b: four five six']],
    [`"one two three" and "four five six" ${a}.`, ['/a: one two three', '/a: four five six']],
    [`It says "One two three. Four five six." ${a}`, ['/a: One two three. Four five six']],
    [`"one two three" without a source. Another sentence has ${a}.`, ['/a ~ Another sentence has A.']],
    [`First one here.[^n] Second one here.\n\n[^n]: ${a}`, ['/a ~ First one here.']],
    [`“One two three.”\n\n— ${a}`, ['/a: One two three']],
    [`Words lead ${a}:\n\n> one two three`, ['/a: one two three']],
    [`> one two three ${a}`, ['/a: one two three']],
    [`> one two three\n>\n> four five six\n>\n> Source: ${a}`, ['/a: one two three | four five six']],
    [`"one [...] three four … five (...) six" ${a}`, ['/a: one | three four | five | six']],
    [`"[O]ne two three [of them] four" ${a}`, ['/a: One two three | four']],
    [
      `[Page](https://s.test/a#:~:text=pre-,one%20two,three,-suf&text=x)`,
      ['/a#:~:text=pre-,one%20two,three,-suf&text=x: one two | three | x'],
    ],
    [`One two three [1].\n\n[1]: https://s.test/a`, ['/a ~ One two three 1.']],
    [
      `One two three [1, 2].\n\n[1] A. https://s.test/a\n[2] B. https://s.test/b`,
      ['/a ~ One two three.', '/b ~ One two three.'],
    ],
    [
      `One two three [1-2].\n\n## Sources\n\n1. ${a}\n2. ${b}\n3. https://s.test/c`,
      ['/a ~ One two three.', '/b ~ One two three.', '/c ~ null'],
    ],
    [`\`"one two three"\` and \`[A](https://s.test/a)\``, []],
    ['[in](#part), [mail](mailto:a@b.c), [near](other.md), ![x](https://s.test/x.png)', []],
  ]
  for (const [text, expected] of cases) t.same(await inMarkdown(text), expected, text)
})

t.test('HTML: elements that quote, notes within the page, tables', async (t) => {
  const a = '<a href="https://s.test/a">A</a>'
  const cases: [string, string[]][] = [
    [`<p>It says <q>one <b>two</b> three</q> ${a}.`, ['/a: one two three']],
    [`<blockquote cite="https://s.test/a"><p>one two<p>three</blockquote>`, ['/a: one two | three']],
    [`<p>&quot;one&nbsp;two\n three&quot; ${a}`, ['/a: one two three']],
    [
      `<p>One two three<sup><a href="#n1">1</a></sup><ol><li id=n1>${a} <a href="#r1">↩</a></ol>`,
      ['/a ~ One two three'],
    ],
    [`<table><tr><td>"one two three"<td><p>${a}</table>`, ['/a: one two three']],
    [`<script>"one two three" ${a}</script><pre>"one two three" ${a}</pre>`, []],
  ]
  for (const [text, expected] of cases) t.same(await inHtml(text), expected, text)
})

t.test('a correction changes only the misquoted words', async (t) => {
  const fix = async (text: string, words: string, read = readMarkdown) => {
    const report = await read(text)
    const citations = findCitations(report)
    const near: Found = { match: 'near', fragment_url: null, nearest: { text: words, similarity: 0.9 } }
    const answers = new Map(
      [...wantedOf(citations)].map(([page, { texts }]): [string, PageAnswer] => {
        return [page, { finalUrl: page, failure: null, found: new Map([...texts].map((one) => [one, near])) }]
      }),
    )
    return applyCorrections(text, correctionsFor(judge(citations, answers), report.syntax))
  }
  const link = '[A](https://s.test/a)'
  const cases: [before: string, words: string, after: string][] = [
    ['"one *two* three,"', 'one 2 three.', '"one 2 three,"'],
    ['"one &amp; two \\* three"', 'a * b_c & &amp; <d>', '"a \\* b\\_c & \\&amp; \\<d\\>"'],
    ['"one two three"', 'he said "no" twice', '"he said \'no\' twice"'],
    ['“one two three”', 'he said “no” twice', '“he said ‘no’ twice”'],
    ['**"one two three"**', 'one 2 three', '**"one 2 three"**'],
    ['"one two *three" four*', 'one 2 three', '"one two *three" four*'],
    ['"one two `three`"', 'one 2 three', '"one two `three`"'],
    ['"one two![x](y) three"', 'one 2 three', '"one two![x](y) three"'],
    ['"one two\nthree"', 'one 2\n\nthree four five', '"three four five"'],
  ]
  for (const [before, words, after] of cases)
    t.equal(await fix(`\ufeffX ${before} ${link}.\r\n`, words), `\ufeffX ${after} ${link}.\r\n`, before)
  const page = (quote: string) => `<p title='"'>${quote} <a href="https://s.test/a">A</a>`
  t.equal(await fix(page('"one <i>two</i> th&eacute;"'), 'a <b> & c', readHtml), page('"a &lt;b&gt; &amp; c"'))
})

t.test('differences and places', async (t) => {
  t.same(differenceOf('The old Bridge opened', 'the bridge “opened” late'), [
    { in: 'both', text: 'the' },
    { in: 'first', text: 'old' },
    { in: 'both', text: 'bridge' },
    { in: 'first', text: 'opened' },
    { in: 'second', text: '“opened” late' },
  ])
  const lines = new Lines('a\r\nbc\n\rd')
  t.same(
    [0, 1, 3, 4, 6, 7].map((offset) => Object.values(lines.at(offset)).join(':')),
    ['1:1', '1:2', '2:1', '2:2', '3:1', '4:1'],
  )
  t.equal(lines.line(2), 'bc')
})

const PIECES = [
  ...[
    '"',
    '“',
    '”',
    '«',
    '»',
    '„',
    '[1]',
    '[^1]',
    '[^1]: ',
    '[',
    ']',
    '](https://s.test/a)',
    '[x](https://s.test/b)',
    '> ',
    '\n',
    '\n\n',
  ],
  ...[
    '- ',
    '1. ',
    '| ',
    '|-|-|',
    '*',
    '**',
    '_',
    '`',
    '~',
    '<p>',
    '</p>',
    '<q>',
    '<a href="#n">',
    '</a>',
    '<li id=n>',
    '<ol>',
    '<table>',
  ],
  ...[
    '<td>',
    '<blockquote>',
    '&quot;',
    '&amp',
    '\\',
    '\\*',
    '...',
    '[...]',
    '…',
    '# ',
    '## References\n\n',
    'one two three ',
    '漢字',
    '\u0000',
  ],
  ...[
    '\ud800',
    '😀',
    'https://s.test/c#:~:text=a,-b ',
    'https://s.test/%',
    '—',
    'Source: ',
    '\t',
    '\r',
    '\ufeff',
    'www.s.test',
    '<!--',
  ],
]

/** A generator of numbers below 1, so that a failure can be repeated by its seed. */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

t.test('for any report, each place that is named exists in the file', async (t) => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = generator(seed)
    const text = Array.from(
      { length: 1 + Math.floor(random() * 60) },
      () => PIECES[Math.floor(random() * PIECES.length)],
    ).join('')
    for (const read of [readMarkdown, readHtml]) {
      const citations = findCitations(await read(text))
      const fine = citations.every(({ location, parts }) =>
        [location, ...parts.flatMap((part) => [part.location, part.replaceable ?? part.location])].every(
          ({ start, end }) => start >= 0 && start <= end && end <= text.length,
        ),
      )
      const literal = citations
        .flatMap(({ kind, parts }) => (kind === 'quotation' ? parts : []))
        .filter(({ replaceable }) => replaceable)
      const isThere = literal.every(({ replaceable }) =>
        /[\p{L}\p{N}]/u.test(text.slice(replaceable?.start, replaceable?.end)),
      )
      if (!fine || !isThere) t.fail(`${read.name}, seed ${seed}: ${JSON.stringify(text)}`)
    }
  }
  t.pass('400 reports of each syntax')
})

const HARD: Record<string, (n: number) => string> = {
  'deep quotations': (n) => '> '.repeat(n),
  'deep lists': (n) => '- '.repeat(n),
  emphasis: (n) => `${'a**b'.repeat(n)}${'c* '.repeat(n)}`,
  brackets: (n) => `${'['.repeat(n)}a${'](u)'.repeat(n)}`,
  'open quotation marks': (n) => '“a '.repeat(n),
  'straight marks': (n) => '"'.repeat(n),
  'quotations and links': (n) => '"one two three" [x](https://s.test/a) '.repeat(n),
  'quotations without a link': (n) => '"one two three" '.repeat(n),
  'numbers and links': (n) => `${'word [1] [x](https://s.test/a) '.repeat(n)}\n\n[1] https://s.test/b`,
  'a huge table': (n) => `| a | b |\n|-|-|\n${'| "one two three" | [x](https://s.test/a) |\n'.repeat(n)}`,
  references: (n) => Array.from({ length: n }, (_, i) => `[${i % 1000}] https://s.test/${i}`).join('\n'),
  'deep elements': (n) => '<div>'.repeat(n),
  'wrongly nested elements': (n) => Array.from({ length: n }, (_, i) => `<b id=${i}><p>`).join(''),
  notes: (n) =>
    Array.from({ length: n }, (_, i) => `<p id=n${i}><a href="#n${i}">1</a> <a href="https://s.test/${i}">x</a>`).join(
      '',
    ),
}

t.test('time grows as the report does, or the report is refused', async (t) => {
  const milliseconds = async (read: typeof readMarkdown, text: string) => {
    // CPU time of this thread: on a loaded machine the clock also counts other processes.
    const begun = process.threadCpuUsage()
    try {
      findCitations(await read(text))
    } catch (error) {
      if (!(error instanceof UnreadableReportError)) throw error
    }
    const { user, system } = process.threadCpuUsage(begun)
    return (user + system) / 1000
  }
  for (const [name, make] of Object.entries(HARD))
    for (const read of [readMarkdown, readHtml]) {
      const small = await milliseconds(read, make(500))
      const large = await milliseconds(read, make(4000))
      // Eight times the text; quadratic work would take 64 times as long.
      t.ok(
        large < 2000 || large < 32 * small,
        `${name}, ${read.name}: ${Math.round(small)} ms and ${Math.round(large)} ms`,
      )
    }
})
