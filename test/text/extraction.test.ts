import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import t from 'tap'
import { openThreads, ThreadError, type Threads } from '../../server/threads/pool.ts'
import { extractText, type PageBytes } from '../../workers/text/page/extraction.ts'
import { LARGE_BYTES } from '../../workers/text/page/length.ts'
import { riskFlagMeanings } from '../../workers/text/page/risk-flags.ts'
import { TEXT_PROCEDURE } from '../../workers/text/procedure.ts'

const article = `<!DOCTYPE html>
<html lang=en><head><meta charset=utf-8><title>Harbour news</title>
<style>.promo { display: none } @media print { p { display: none } }</style></head>
<body><nav><a href=/>Home</a> <a href=/news>News</a></nav>
<main><h1>Old crane moves</h1>
<p>The harbour’s oldest crane, built in 1\u202f904, moved <b>40&nbsp;metres</b> on Tuesday.</p>
<p class=promo>Subscribe now!</p>
<table><tr><th>Year<th>Cranes<tr><td>1990<td>12<tr><td>2020<td>5</table>
<pre>  crane A: 40 m
  crane B:  0 m</pre>
<p>“It was a cafe\u0301 once,” said a neighbour 😀.<br>Others were co&shy;operative.</p></main>
<script>track('Tuesday')</script></body></html>`

const articleText = `Home News
Old crane moves

The harbour’s oldest crane, built in 1 904, moved 40 metres on Tuesday.

Year\tCranes
1990\t12
2020\t5
  crane A: 40 m
  crane B:  0 m

“It was a café once,” said a neighbour 😀.
Others were cooperative.`

const page = (body: string | Uint8Array, more: Partial<PageBytes> = {}): PageBytes => ({
  body: Uint8Array.from(typeof body === 'string' ? Buffer.from(body) : body),
  contentEncoding: 'identity',
  contentType: 'text/html; charset=utf-8',
  ...more,
})

const threads = openThreads({ maxThreads: 1 })
t.teardown(() => threads[Symbol.asyncDispose]())

t.test('a page becomes its text, with its measures and digests', async (t) => {
  const found = await extractText(threads, page(article))
  t.equal(found.text, articleText)
  t.equal(found.codePoints, Array.from(articleText).length)
  t.equal(found.textSha256, bytesToHex(sha256(utf8ToBytes(articleText))))
  t.equal(found.contentSha256, bytesToHex(sha256(utf8ToBytes(article))))
  t.equal(found.decodedBytes, Buffer.byteLength(article))
  t.same([found.charset, found.charsetSource], ['utf-8', 'header'])
  t.same(found.riskFlags, [])
  t.equal(found.truncated, false)
})

t.test('content codings change nothing but the bytes on the wire', async (t) => {
  const plain = await extractText(threads, page(article))
  t.same(await extractText(threads, page(gzipSync(article), { contentEncoding: 'gzip' })), plain)
  t.same(await extractText(threads, page(brotliCompressSync(article), { contentEncoding: 'br' })), plain)
})

t.test('a large page waits for a thread of slow tasks, also when only decoding shows its size', async (t) => {
  const calls: unknown[] = []
  const watched: Threads = {
    ...threads,
    run(file, name, argument, options) {
      calls.push([name, options?.isSlow ?? false])
      return threads.run(file, name, argument, options)
    },
  }
  const sized = (octets: number) => Buffer.alloc(octets, ' ').fill(article, 0, Buffer.byteLength(article))
  const large = sized(LARGE_BYTES + 1)
  await extractText(watched, page(sized(LARGE_BYTES)))
  await extractText(watched, page(large))
  const found = await extractText(watched, page(gzipSync(large), { contentEncoding: 'gzip' }))
  t.same(calls, [
    ['extractUnlessLarge', false],
    ['extract', true],
    ['extractUnlessLarge', false],
    ['extract', true],
  ])
  t.equal(found.text, articleText)
  t.equal(found.decodedBytes, LARGE_BYTES + 1, 'the body is still there for the second look')
})

t.test('charsets change nothing but the bytes', async (t) => {
  const utf16 = Buffer.from(`\ufeff${article}`, 'utf16le')
  const found = await extractText(threads, page(utf16))
  t.equal(found.text, articleText)
  t.same([found.charset, found.charsetSource], ['utf-16le', 'bom'])
})

t.test('the same bytes give the same text in every thread', async (t) => {
  await using others = openThreads({ maxThreads: 3 })
  const found = await Promise.all(Array.from({ length: 9 }, () => extractText(others, page(article))))
  t.equal(others.threadCount, 3)
  t.equal(new Set(found.map((extraction) => JSON.stringify(extraction))).size, 1)
})

t.test('a body that is a part of a buffer is read without the rest of it', async (t) => {
  const shared = Uint8Array.from(Buffer.from(`<p>others${article}`))
  const found = await extractText(threads, page('', { body: shared.subarray(9) }))
  t.equal(found.text, articleText)
})

t.test('plain text', async (t) => {
  const source = 'First <b>line</b>\r\n\tsecond &amp; line   \r\n'
  const found = await extractText(threads, page(source, { contentType: 'text/plain' }))
  t.equal(found.text, 'First <b>line</b>\n\tsecond &amp; line')
  t.equal(found.contentSha256, hash('sha256', source))
  t.same(found.riskFlags, ['low_text'])
})

t.test('what cannot be read is refused by its name', async (t) => {
  const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
  for (const [code, body, more] of [
    ['source_unsupported_type', '{}', { contentType: 'application/json' }],
    ['source_unsupported_type', '%PDF-1.7', {}],
    ['source_unsupported_type', png, {}],
    ['source_unsupported_type', 'a\0b', { contentType: 'text/plain' }],
    ['source_unsupported_type', gzipSync(gzipSync('twice')), { contentEncoding: 'gzip' }],
    ['source_encoding_invalid', article, { contentEncoding: 'gzip' }],
    ['source_encoding_invalid', gzipSync(article).subarray(0, -1), { contentEncoding: 'gzip' }],
    ['source_encoding_invalid', article, { contentType: 'text/html; charset=iso-2022-kr' }],
    ['source_too_large', gzipSync(Buffer.alloc(8_388_609)), { contentEncoding: 'gzip' }],
    ['source_too_complex', '<div>'.repeat(1000), {}],
    ['source_empty', '', {}],
    ['source_empty', '<title>x</title><script>x</script><p hidden>x', {}],
    ['source_empty', '\ufeff \n ', { contentType: 'text/plain' }],
  ] as const) {
    await t.rejects(extractText(threads, page(body, more)), { name: 'AppError', code }, `${code}: ${body.slice(0, 20)}`)
  }
})

t.test('a long text is cut, and says so', async (t) => {
  const paragraph = 'Ten words or so that say nothing of any use.'
  const found = await extractText(threads, page(`<p>${paragraph}</p>`.repeat(3000)))
  t.equal(found.truncated, true)
  t.ok(found.riskFlags.includes('text_truncated'))
  t.ok(found.codePoints <= 100_000 && found.codePoints > 100_000 - paragraph.length - 2)
  t.ok(found.text.endsWith(`\n\n${paragraph}`), 'where a block ends')
  t.equal(found.textSha256, hash('sha256', found.text), 'the digest is of what is kept')

  const astral = await extractText(threads, page('😀 '.repeat(40_000)))
  t.same([astral.codePoints, astral.truncated], [79_999, false], 'the limit counts code points')
  const exact = await extractText(threads, page('x'.repeat(100_000)))
  t.same([exact.codePoints, exact.truncated], [100_000, false])
})

t.test('risk flags', async (t) => {
  const enough = 'Enough words to be more than a stub of a page. '.repeat(6)
  const latin1 = (text: string) => Buffer.from(text, 'latin1')
  for (const [flags, body, more] of [
    [[], enough, {}],
    [['low_text'], enough.slice(0, 199), {}],
    [[], enough.slice(0, 200), {}],
    [['charset_guessed'], latin1(`${enough}\xe9`), { contentType: 'text/html' }],
    [['replacement_characters'], latin1(`${enough}\xe9`), {}],
    [[], `<p hidden>secret</p>${enough}`, {}],
    [['hidden_text'], `<p hidden>${'secret '.repeat(5)}</p>${enough}`, {}],
    [['hidden_text'], `<style>.x{display:none}</style><p class=x>${'secret '.repeat(5)}</p>${enough}`, {}],
    [['invisible_characters'], `${enough}\u{e0041}\u{e0042}`, {}],
    [['invisible_characters'], `${enough}\u202e`, { contentType: 'text/plain' }],
    [[], `${enough}\u00ad\u200b`, {}],
  ] as const) {
    const found = await extractText(threads, page(body, more))
    t.same(found.riskFlags, flags, body.slice(0, 30).toString())
  }
  for (const [flag, meaning] of Object.entries(riskFlagMeanings)) {
    t.match(flag, /^[a-z][a-z0-9_]{0,127}$/)
    t.match(meaning, /^[A-Z].*\.$/)
  }
})

t.test('the caller can call it off', async (t) => {
  const abort = new AbortController()
  const found = extractText(threads, page(article), { signal: abort.signal })
  abort.abort()
  await t.rejects(found, { name: 'ThreadError', code: 'aborted' })
  t.equal((await extractText(threads, page(article))).text, articleText, 'and the next is answered')
})

t.test('a page that takes too much memory is refused', async (t) => {
  const full: Threads = { ...threads, run: () => Promise.reject(new ThreadError('out_of_memory')) }
  const found = extractText(full, page(article))
  await t.rejects(found, { name: 'AppError', code: 'source_too_complex', cause: { code: 'out_of_memory' } })
})

t.test('text outside of the cells of a table takes no more memory than other text', async (t) => {
  // The parser keeps it until it ends, and each null character ends a piece of it.
  const found = await extractText(threads, page(`<table>${' \0a\0'.repeat(2_090_000)}<tr><td>cell</table>`))
  t.ok(found.text.startsWith('a a a a'))
  t.equal(found.truncated, true)
})

t.test('the procedure names the versions that are installed', async (t) => {
  const version = (name: string) => {
    const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url)
    return JSON.parse(readFileSync(file, 'utf8')).version
  }
  t.equal(TEXT_PROCEDURE, `text-4+parse5-${version('parse5')}+bytes-${version('@exodus/bytes')}`)
  t.ok(TEXT_PROCEDURE.length <= 80)
})
