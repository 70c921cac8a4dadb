// Which rows `countersign batch` reads from its input files, and what it refuses before anything is paid.
import t from 'tap'
import { UsageError } from '../../client/arguments.ts'
import type { Format } from '../../client/batch/formats.ts'
import { readRows } from '../../client/batch/rows.ts'

const read = (text: string | Uint8Array, format: Format = 'csv') =>
  readRows(typeof text === 'string' ? Buffer.from(text) : text, format)

const lines = (text: string, format?: Format) => {
  const { usable, unusable } = read(text, format)
  return {
    usable: usable.map(({ id, line, claim }) => [id, line, claim]),
    unusable: unusable.map(({ id, line, reason }) => [id, line, reason]),
  }
}

const URL = 'https://example.org/harbour'

t.test('CSV as spreadsheets write it', async (t) => {
  const claim = 'It has, as the "board" says,\nthree piers.'
  const quoted = `"${claim.replaceAll('"', '""')}"`
  for (const [name, end] of Object.entries({ LF: '\n', CRLF: '\r\n', CR: '\r' })) {
    const text = ['\ufeffCLAIM, Source_URL ,extra,ID', `${quoted},${URL},x,first`, '', `two,${URL},,second`, ''].join(
      end,
    )
    t.same(
      lines(text),
      {
        usable: [
          ['first', 2, claim],
          ['second', 5, 'two'],
        ],
        unusable: [],
      },
      name,
    )
  }
  const mixed = `id,source_url,claim\r\na,${URL},one\nb,${URL},"two\r\nlines"\r\nc,${URL},three`
  t.same(lines(mixed).usable, [
    ['a', 2, 'one'],
    ['b', 3, 'two\nlines'],
    ['c', 5, 'three'],
  ])
  t.same(read(`id,source_url,claim,max_age_seconds\na,${URL},one,60\nb,${URL},two,`).usable, [
    { id: 'a', line: 2, source_url: URL, claim: 'one', max_age_seconds: 60 },
    { id: 'b', line: 3, source_url: URL, claim: 'two' },
  ])
})

t.test('a row with too many cells is not bought: its claim was cut off at a comma', async (t) => {
  const text = `id,source_url,claim\na,${URL},It has three piers, a lighthouse and a crane.\nb,${URL},fine,,\nc,${URL}\n`
  t.same(lines(text), {
    usable: [['b', 3, 'fine']],
    unusable: [
      ['a', 2, 'the row has 4 cells and the header 3: a cell with a comma in it needs quotes'],
      ['c', 4, 'claim is missing'],
    ],
  })
})

t.test('TSV has no quotes', async (t) => {
  t.same(lines(`source_url\tclaim\tid\n${URL}\t"It" has, three\t1\n${URL}\tx\t2\tmore\n`, 'tsv'), {
    usable: [['1', 2, '"It" has, three']],
    unusable: [['2', 3, 'the row has 4 cells and the header 3']],
  })
})

t.test('JSON lines', async (t) => {
  const row = (more: object) => JSON.stringify({ source_url: URL, claim: 'c', ...more })
  const text = [
    `\ufeff${row({ custom_id: 'a', max_age_seconds: 5 })}`,
    '',
    row({ custom_id: 7 }),
    '[1]',
    'null',
    '{"claim":',
    row({ custom_id: 'b', max_age_seconds: 1.5 }),
    row({ custom_id: 'c', max_age_seconds: '301' }),
    row({ custom_id: 'd', max_age_seconds: true }),
    row({ custom_id: 'e', claim: ['c'] }),
    row({ id: 'f' }),
    row({ custom_id: 'g', claim: '\ud800' }),
  ].join('\r\n')
  const { usable, unusable } = read(text, 'jsonl')
  t.same(
    usable.map(({ id, line }) => [id, line]),
    [
      ['a', 1],
      ['7', 3],
      ['f', 11],
    ],
  )
  t.equal(usable[0]?.max_age_seconds, 5)
  const age = 'max_age_seconds is not a whole number from 0 to 300'
  t.same(
    unusable.map(({ line, reason }) => [line, reason]),
    [
      ...[4, 5, 6].map((line) => [line, 'this line is no JSON object']),
      ...[7, 8, 9].map((line) => [line, age]),
      [10, 'claim is missing'],
      [12, 'claim is not well-formed Unicode'],
    ],
  )
})

t.test('rows that the service would refuse are not sent', async (t) => {
  const long = 'x'.repeat(2001)
  const rows = [
    [',c', 'source_url is missing'],
    ['http://example.org/,c', 'source_url is not an https:// URL'],
    ['example.org,c', 'source_url is not an https:// URL'],
    ['https://exa mple.org/,c', 'source_url is not an https:// URL'],
    ['https://example.org/\u00fc,c', 'source_url must be ASCII: percent-encode it'],
    [`https://example.org/${'x'.repeat(2048)},c`, 'source_url is longer than 2048 characters'],
    ...['a|b', '?t[]=1', 'a^', 'a\\b', '{x}', '<x>', '`'].map((tail) => {
      const character = /[^a-z?]/.exec(tail)?.[0] ?? ''
      const escaped = `%${character.charCodeAt(0).toString(16).toUpperCase()}`
      return [`https://example.org/${tail},c`, `source_url is no URI: write ${character} as ${escaped}`]
    }),
    ...['%', '%zz', '%2', '?a=%g0'].map((tail) => [
      `https://example.org/${tail},c`,
      'source_url is no URI: write % as %25 where no two hexadecimal digits follow it',
    ]),
    ['https://example.org/#a#b,c', 'source_url is no URI: write # as %23 after the first one'],
    [`${URL},`, 'claim is missing'],
    [`${URL},"  "`, 'claim is missing'],
    [`${URL},${long}`, 'claim is longer than 2000 characters'],
  ]
  const { usable, unusable } = lines(`source_url,claim\n${rows.map(([row]) => row).join('\n')}\n${URL},last\n`)
  t.same(
    unusable.map(([, line, reason]) => [line, reason]),
    rows.map(([, reason], index) => [index + 2, reason]),
  )
  t.equal(usable.length, 1, 'and the others go on')
  t.equal(read(`source_url,claim\n${URL},${'\u{1f6a2}'.repeat(2000)}`).usable.length, 1, 'characters, not UTF-16 units')
})

t.test('each row has an id of its own', async (t) => {
  const text = `id,source_url,claim\nX,${URL},one\nX,${URL},two\nX-2,${URL},three\n,${URL},same\n,${URL},same\n,${URL},other\n`
  const { usable, unusable } = read(text)
  t.same(
    unusable.map(({ id, line, reason }) => [id, line, reason]),
    [['X-3', 3, 'the id X is that of line 2, too']],
  )
  t.same(
    usable.map(({ line }) => line),
    [2, 4, 5, 6, 7],
  )
  t.equal(usable[1]?.id, 'X-2', 'a row keeps its id, whatever a duplicate above it is called')
  const ids = [...usable, ...unusable].map(({ id }) => id)
  t.equal(new Set(ids).size, 6)
  const moved = read(`id,source_url,claim\n,${URL},other\n,${URL},same\n`).usable.map(({ id }) => id)
  t.same(moved, [usable[4]?.id, usable[2]?.id], 'a row without id is known by what it says')
})

t.test('files that are not a batch', async (t) => {
  const refused = (text: string | Uint8Array, message: RegExp, format?: Format) =>
    t.throws(() => read(text, format), { constructor: UsageError, message })
  refused('', /The file is empty/)
  refused('\n\n', /The file is empty/)
  refused('', /no rows/, 'jsonl')
  refused('source_url,claim\n', /no rows/)
  refused(Buffer.from([0xff, 0xfe, 0x69, 0x00]), /not UTF-8/)
  refused(`id,url,claim\na,${URL},c\n`, /no column source_url: id, url, claim/)
  refused(
    `source_url;claim\n${URL};c\n`,
    /source_url;claim\. Are the cells separated by semicolons\? Commas are needed\.$/,
  )
  refused(`${'\u{1f6a2}'.repeat(100_000)}\n`, /no column source_url: (\u{1f6a2}){200}…\.$/u)
  refused(`source_url,claim,CLAIM\n${URL},a,b\n`, /two columns claim/)
  refused(`source_url,claim\n${URL},"never closed\n`, /cannot be read as CSV: Quote Not Closed/)
})

t.test('ten thousand rows are read in less than five seconds of the processor', async (t) => {
  const text = Array.from({ length: 10_000 }, (_, i) => `${URL}/${i},"Row ${i}, with a ""quote""\nand a line."`)
  const started = process.cpuUsage()
  const { usable } = read(`source_url,claim\n${text.join('\n')}`)
  t.equal(usable.length, 10_000)
  t.equal(usable.at(-1)?.line, 20_000)
  t.ok(process.cpuUsage(started).user < 5_000_000)
})

t.test('so are ten thousand rows that are all the same, with an id or without one', async (t) => {
  const started = process.cpuUsage()
  const ids = ['', 'X'].map((id) => {
    const { usable, unusable } = read(`id,source_url,claim\n${`${id},${URL},one\n`.repeat(10_000)}`)
    return [...usable, ...unusable].map((row) => row.id)
  })
  for (const all of ids) t.equal(new Set(all).size, 10_000)
  t.equal(ids[1]?.at(-1), 'X-10000')
  t.ok(process.cpuUsage(started).user < 5_000_000)
})
