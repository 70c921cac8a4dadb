import { deflateRawSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { readMediaType, refuseBinary } from '../../workers/text/page/media-type.ts'

const unsupported = { name: 'TextRefusalError', code: 'source_unsupported_type' }

t.test('text/html and text/plain, with their charset', async (t) => {
  const table = {
    'text/html': { kind: 'html', charset: null },
    'text/plain': { kind: 'plain', charset: null },
    'TEXT/HTML; Charset=UTF-8': { kind: 'html', charset: 'UTF-8' },
    ' text/html ;charset="iso-8859-1"; x=y': { kind: 'html', charset: 'iso-8859-1' },
    'text/plain; format=flowed; charset=us-ascii': { kind: 'plain', charset: 'us-ascii' },
    "text/html; charset='utf-8'": { kind: 'html', charset: "'utf-8'" },
    'text/html; charset=': { kind: 'html', charset: null },
    'text/html; charset=a; charset=b': { kind: 'html', charset: 'a' },
    'text/html;': { kind: 'html', charset: null },
  }
  for (const [header, expected] of Object.entries(table)) t.same(readMediaType(header), expected, header)
})

t.test('everything else is refused', async (t) => {
  for (const header of [
    '',
    'text',
    'text/',
    '/html',
    'html',
    'text/html text/plain',
    'text/html, text/plain',
    'text/xml',
    'application/xhtml+xml',
    'application/json',
    'application/octet-stream',
    'text/html+x',
    'multipart/text/html',
  ]) {
    t.throws(() => readMediaType(header), unsupported, JSON.stringify(header))
  }
})

t.test('files that are labelled as text', async (t) => {
  const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
  const zip = Buffer.concat([Buffer.from('504b0304140000000800', 'hex'), deflateRawSync('x')])
  for (const [name, bytes] of Object.entries({
    PDF: Buffer.from('%PDF-1.7\n%âãÏÓ'),
    PNG: png,
    ZIP: zip,
    gzip: gzipSync('<p>once more</p>'),
    JPEG: Buffer.from('ffd8ffe000104a46494600', 'hex'),
    GIF: Buffer.from('GIF89a\x01\x00'),
    Zstandard: Buffer.from('28b52ffd2400', 'hex'),
    SQLite: Buffer.from('SQLite format 3\0\x10\0'),
  })) {
    t.throws(() => refuseBinary(bytes), { ...unsupported, message: `The body is ${name}, not text.` })
    refuseBinary(Buffer.concat([Buffer.from('x'), bytes]))
    refuseBinary(bytes.subarray(0, 1))
  }
})

t.test('text that only speaks of such files', async (t) => {
  for (const text of [
    '',
    'P',
    'PK is short for Phil Katz',
    'GIF89 is a format',
    'Rar! it roared',
    '\ufefftext',
    'BZh',
  ]) {
    refuseBinary(Buffer.from(text))
  }
  t.pass()
})
