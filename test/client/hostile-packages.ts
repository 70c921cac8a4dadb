// Archives and responses made to exhaust what reads an evidence package: name → about so many bytes of latin1. Written for these tests.
import { gzipSync } from 'node:zlib'
import { fill } from '../text/hostile-pages.ts'
import { zipOf } from './zip.ts'

/** Twice what an archive inflates to. */
const MOST_TEXT = 67_108_864

const OK = 'HTTP/1.1 200 OK\r\n'
const gzipped = (text: string) => gzipSync(text).toString('latin1')
const record = (block: string) => gzipped(`WARC/1.1\r\nContent-Length: ${block.length}\r\n\r\n${block}\r\n\r\n`)
const stored = (files: Map<string, Buffer>) => zipOf(files).toString('latin1')
export const packages: Record<string, (size: number) => string> = {
  'a ZIP of a large file': (size) => stored(new Map([['a', Buffer.alloc(size)]])),
  'a ZIP of many files': (size) =>
    stored(
      new Map(
        Array.from({ length: Math.min(size / 100, 200) }, (_, i) => [`f${i}`, Buffer.alloc(Math.floor(size / 200))]),
      ),
    ),
  'many ends of a ZIP': (size) => fill(size, 'PK\x05\x06'),
  'records that inflate to little': (size) => fill(size, record('')),
  'a record that inflates to much': (size) => record('x'.repeat(Math.min(size * 8, MOST_TEXT))),
  'a record of many lines': (size) => gzipped(`WARC/1.1\r\n${fill(size, 'a: b\r\n')}`),
  'small chunks': (size) => `${OK}Transfer-Encoding: chunked\r\n\r\n${fill(size, '1\r\nx\r\n')}0\r\n\r\n`,
  'a chunk without an end of its size': (size) => `${OK}Transfer-Encoding: chunked\r\n\r\n1${fill(size, ';')}`,
  'early responses': (size) => `${fill(size, 'HTTP/1.1 103 Early\r\n\r\n')}${OK}\r\n`,
  'many fields': (size) => `${OK}${fill(size, 'a: b\r\n')}\r\n`,
  'blanks in a field': (size) => `${OK}a: b${' '.repeat(size)}c\r\n\r\n`,
  'blanks in a WARC field': (size) => gzipped(`WARC/1.1\r\na: b${' '.repeat(Math.min(size, 260_000))}c\r\n\r\n`),
}
