// Exports of a result: a small parser reads each format back, with quotes that try to break its syntax.
import t from 'tap'
import { bibtexEntry, markdownFootnote, textFragmentUrl, textSelectors } from '../../client/citation.ts'
import type { Evidence, VerificationResult } from '../../client/result.ts'
import { issueResult, sha256 } from './issuer.ts'

/** A result whose one quote is `quote` at its `nth` place in `text`. */
function resultWith(text: string, quote: string, { nth = 0, url = 'https://www.example.org/bridge' } = {}) {
  let at = -1
  for (let i = 0; i <= nth; i++) at = text.indexOf(quote, at + 1)
  if (at < 0) throw new Error(`${quote} is not there`)
  const start = Array.from(text.slice(0, at)).length
  const item = { ...issueResult().evidence[0]!, quote, start, end: start + Array.from(quote).length }
  const result = issueResult({
    result: (draft) => {
      draft.source = { ...draft.source, normalized_text: text, text_sha256: sha256(text), final_url: url }
      draft.evidence = [item]
    },
  })
  return { result, item, at }
}

/** Reads a text directive as the specification writes it. */
function readDirective(url: string) {
  const [, list = ''] = url.split(':~:text=')
  if (!/^[\x21-\x7e]+$/.test(url)) throw new Error(`not an address in ASCII: ${url}`)
  const parts = list.split(',')
  const prefix = parts[0]?.endsWith('-') ? parts.shift()?.slice(0, -1) : undefined
  const suffix = parts.at(-1)?.startsWith('-') ? parts.pop()?.slice(1) : undefined
  const [start = '', end, ...more] = parts
  if (more.length > 0) throw new Error(`more than four parts: ${list}`)
  const decoded = [prefix, start, end, suffix].map((part) => part && decodeURIComponent(part))
  if (/[-,&()[\]<>"'`\s]/.test([prefix, start, end, suffix].join(''))) throw new Error(`more syntax: ${list}`)
  return { prefix: decoded[0], start: decoded[1] ?? '', end: decoded[2], suffix: decoded[3] }
}

/** Where a browser would find it: an independent reading, by a regular expression. Null if nowhere. */
function locate(text: string, url: string): string | null {
  const { prefix, start, end, suffix } = readDirective(url)
  const term = (one: string) => one.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&').replace(/\s+/g, '[^\\S\\n]+')
  const pattern = [
    prefix === undefined ? '' : `(?<=${term(prefix)}\\s*)`,
    term(start),
    end === undefined ? '' : `[^]*?${term(end)}`,
    suffix === undefined ? '' : `(?=\\s*${term(suffix)})`,
  ].join('')
  const found = new RegExp(pattern, 'iu').exec(text)
  return found && `${found.index}: ${found[0]}`
}

const linkOf = ({ result, item }: { result: VerificationResult; item: Evidence }) => textFragmentUrl(result, item)

t.test('a quote that is there once is named by itself', async (t) => {
  const cited = resultWith('News\nThe bridge opened in 1932.\nEnd', 'The bridge opened in 1932.')
  const url = linkOf(cited)
  t.equal(url, 'https://www.example.org/bridge#:~:text=The%20bridge%20opened%20in%201932.')
  const { result } = cited
  for (const [before, after] of [
    ['https://a.example/p#part', 'https://a.example/p#part:~:text='],
    ['https://a.example/p#:~:text=old', 'https://a.example/p#:~:text='],
    ['https://a.example/p?q=1', 'https://a.example/p?q=1#:~:text='],
  ] as const) {
    const other = { ...result, source: { ...result.source, final_url: before } }
    t.ok(textFragmentUrl(other, cited.item).startsWith(after), before)
  }
})

t.test('a quote that is there more than once gets context, and so does one that cuts a word', async (t) => {
  const text =
    'It rose by 5 % in May. Then it fell.\nIt rose by 5 % in June. Then it fell.\nUnbelievable: it rose by 5 % again.'
  for (const [quote, nth] of [
    ['rose by 5 %', 0],
    ['rose by 5 %', 1],
    ['Then it fell.', 0],
    ['Then it fell.', 1],
    ['believable', 0],
    ['Unbelie', 0],
  ] as const) {
    const cited = resultWith(text, quote, { nth })
    const { prefix, suffix } = readDirective(linkOf(cited))
    t.ok(prefix !== undefined || suffix !== undefined, `${quote} ${nth}`)
    t.equal(locate(text, linkOf(cited)), `${cited.at}: ${quote}`)
  }
})

t.test('equal passages with equal surroundings lead to the first', async (t) => {
  const text = 'Same words here.\n'.repeat(60)
  const cited = resultWith(text, 'words', { nth: 30 })
  t.match(locate(text, linkOf(cited)), /: words$/)
})

t.test('a quote over several blocks, or a long one, is named by its ends', async (t) => {
  const long = Array.from({ length: 120 }, (_, i) => `word${i}`).join(' ')
  const texts = [
    [
      'Intro\nFirst line of it.\nSecond line of it.\nThird line of it.\nEnd',
      'First line of it.\nSecond line of it.\nThird line of it.',
    ],
    [`Before ${long} after`, long],
    [`${long}\n${long} end`, `${long}\n${long}`],
    ['one\rtwo\u2028three four', 'two\u2028three'],
  ] as const
  for (const [text, quote] of texts) {
    const cited = resultWith(text, quote)
    const { end } = readDirective(linkOf(cited))
    t.ok(end !== undefined, 'an end')
    t.equal(locate(text, linkOf(cited)), `${cited.at}: ${quote}`)
  }
})

const HOSTILE = [
  'a [link](https://evil.example) and `code` *bold* _it_ ~~no~~',
  'back\\slash \\} {brace} } { unbalanced {',
  'line\rcarriage return\r\nand newline',
  '\u{1F600} astral \u{1D54F} and 漢字の引用、テスト',
  'dash - dash, comma, -comma- 50% 100%25 %2D &amp; &copy; a&b',
  '"quotes" \u201ccurly\u201d \'single\' <script>alert(1)</script> <!-- no -->',
  '| table | $math$ $$ # heading ^[note] [^1]: note www.evil.example a@b.example',
  '@misc{x, title = {y}} \\input{/etc/passwd} \\write18{x} ~tilde ^caret',
  '\u202eright to left\u202c and \u00ad soft hy\u00adphen',
  '#:~:text=another,directive&text=more',
]

t.test('hostile quotes stay inside a text fragment', async (t) => {
  for (const quote of HOSTILE) {
    const text = `Before that. ${quote} After it.\nEnd`
    const cited = resultWith(text, quote)
    const { start, end } = readDirective(linkOf(cited))
    const last = end ?? start
    t.ok(quote.startsWith(start.slice(0, 8)) && quote.endsWith(last.slice(-4)), JSON.stringify(quote))
    t.equal(linkOf(cited).split(':~:').length, 2)
  }
})

t.test('selectors name the exact text and its place', async (t) => {
  for (const quote of HOSTILE) {
    const text = `${'\u{1F600}'.repeat(40)} ${quote} ${'z'.repeat(40)}`
    const { result, item } = resultWith(text, quote)
    const { source, selector } = textSelectors(result, item)
    const [{ exact, prefix, suffix }, { start, end }] = selector
    t.equal(source, result.source.final_url)
    t.ok(text.includes(prefix + exact + suffix) && prefix.isWellFormed())
    t.same([Array.from(prefix).length, Array.from(suffix).length], [32, 32])
    t.equal(Array.from(text).slice(start, end).join(''), exact)
  }
  const { result, item } = resultWith('all of it', 'all of it')
  t.match(textSelectors(result, item).selector[0], { prefix: '', suffix: '', exact: 'all of it' })
})

/** Reads one entry as BibTeX does: braces alone decide where a value ends. */
function readBibtex(entry: string): Record<string, string> {
  let rest = entry.slice(entry.indexOf('\n') + 1)
  const fields: Record<string, string> = {}
  for (let match = /^ {2}(\w+) = \{/.exec(rest); match; match = /^ {2}(\w+) = \{/.exec(rest)) {
    let depth = 1
    let at = match[0].length
    for (; depth > 0; at++) {
      if (at >= rest.length) throw new Error('a brace is never closed')
      depth += rest[at] === '{' ? 1 : rest[at] === '}' ? -1 : 0
    }
    fields[match[1] ?? ''] = rest.slice(match[0].length, at - 1)
    rest = rest.slice(at).replace(/^,\n/, '')
  }
  if (rest !== '}') throw new Error(`the entry does not end where it should: ${rest}`)
  return fields
}

const NAMES: Record<string, string> = {
  textbackslash: '\\',
  textbraceleft: '{',
  textbraceright: '}',
  textasciicircum: '^',
  textasciitilde: '~',
}
const unlatex = (text: string) =>
  text.replace(/\\(?:(text\w+)\{\}|([$&#%_]))/g, (_, name: string, char: string) => NAMES[name] ?? char)
const oneLine = (text: string) => text.replace(/[\s\p{Cc}]+/gu, ' ')

t.test('a BibTeX entry holds claim, verdict, quotes and receipt', async (t) => {
  for (const quote of HOSTILE) {
    const { result } = resultWith(`Before. ${quote} After.`, quote)
    const entry = bibtexEntry(result)
    const fields = readBibtex(entry)
    t.same(Object.keys(fields), ['key', 'title', 'howpublished', 'url', 'urldate', 'note'])
    t.ok(entry.startsWith('@misc{countersign-42,\n'))
    t.ok(unlatex(fields.note ?? '').includes(oneLine(quote)), JSON.stringify(quote))
    t.match(fields.note, /Countersign receipt 42, \\texttt\{[0-9a-f]{64}\}$/)
    t.equal(fields.urldate, result.checked_at.slice(0, 10))
    const bare = (fields.note ?? '').replace(/\\text\w+\{(?:[0-9a-f]{64})?\}|\\[$&#%_]/g, '')
    t.notMatch(bare, /[\\{}$&#%_^~\r\n]/, 'no command of its own')
  }
  const simulated = issueResult({ result: (draft) => void Object.assign(draft.payment, { simulated: true }) })
  t.match(bibtexEntry(simulated), 'simulated payment')
  const { result } = resultWith('text', 'text', { url: 'https://a.example/{x}%7B(1)?a_b=1#c' })
  t.equal(readBibtex(bibtexEntry(result)).url, 'https://a.example/%7Bx%7D%7B%281%29?a_b=1#c')
})

t.test('a Markdown footnote is one line, in which a quote is only text', async (t) => {
  for (const quote of HOSTILE) {
    const { result, item } = resultWith(`Before. ${quote} After.`, quote)
    const line = markdownFootnote(result, item)
    const [, quoted = '', host, address = '', rest = ''] =
      /^\[\^countersign-42-e1\]: \u201c(.*)\u201d \[(.+?)\]\((\S+?)\), (read .*)$/u.exec(line) ?? []
    t.equal(quoted.replace(/\\([!-/:-@[-`{-~])/g, '$1'), oneLine(quote), JSON.stringify(quote))
    t.notMatch(quoted.replace(/\\./g, ''), /[\\`*_{}[\]()<>#|~&^$@]|www\./, 'all markup is escaped')
    t.equal(host, 'www\\.example.org')
    t.equal(address, textFragmentUrl(result, item).replace(/&(?=#?\w+;)/g, '&amp;'))
    t.match(rest, /verdict: .*Countersign receipt 42, `[0-9a-f]{64}`\.$/)
    t.notMatch(line, /[\r\n]/)
  }
})

t.test('a page that repeats itself is searched in bounded time', { timeout: 20_000 }, async (t) => {
  const text = `${'a '.repeat(100_000)}b`
  const cited = resultWith(text, 'a a a a', { nth: 60_000 })
  t.match(linkOf(cited), ':~:text=')
})
