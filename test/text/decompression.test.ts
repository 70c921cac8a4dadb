import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { LIMITS } from '../../server/interface/limits.ts'
import { decompress } from '../../workers/text/page/decompression.ts'

const text = Buffer.from('Same bytes, same text. '.repeat(40))
const gzip = gzipSync(text)
const brotli = brotliCompressSync(text)
const garbage = Buffer.from('tail')

const invalid = { name: 'TextRefusalError', code: 'source_encoding_invalid' }
const tooLarge = { name: 'TextRefusalError', code: 'source_too_large' }

t.test('undoes one coding', async (t) => {
  t.same(Buffer.from(decompress(gzip, 'gzip')), text)
  t.same(Buffer.from(decompress(brotli, 'br')), text)
  t.same(Buffer.from(decompress(text, 'identity')), text)
  t.same(Buffer.from(decompress(Buffer.concat([gzip, gzip]), 'gzip')), Buffer.concat([text, text]), 'members of gzip')
  for (const coding of ['gzip', 'br', 'identity'] as const) t.equal(decompress(new Uint8Array(0), coding).length, 0)
})

t.test('the limit is exact', async (t) => {
  const full = Buffer.alloc(LIMITS.decodedBytes, 'x')
  const over = Buffer.alloc(LIMITS.decodedBytes + 1, 'x')
  for (const [coding, encode] of [
    ['gzip', gzipSync],
    ['br', (bytes: Buffer) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })],
    ['identity', (bytes: Buffer) => bytes],
  ] as const) {
    t.equal(decompress(encode(full), coding).length, LIMITS.decodedBytes, coding)
    t.throws(() => decompress(encode(over), coding), tooLarge, coding)
  }
})

t.test('bombs are stopped at the limit, not at their end', async (t) => {
  const block = gzipSync(Buffer.alloc(16 * 1024 * 1024))
  t.throws(() => decompress(Buffer.concat(Array.from({ length: 64 }, () => block)), 'gzip'), tooLarge)
  const bomb = brotliCompressSync(Buffer.alloc(64 * 1024 * 1024), { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } })
  t.throws(() => decompress(bomb, 'br'), tooLarge)
})

t.test('nothing may be missing', async (t) => {
  for (const [coding, body] of [
    ['gzip', gzip],
    ['br', brotli],
  ] as const) {
    for (const length of [1, 5, body.length >> 1, body.length - 1]) {
      t.throws(() => decompress(body.subarray(0, length), coding), invalid, `${coding} of ${length} bytes`)
    }
  }
})

t.test('nothing may follow', async (t) => {
  t.throws(() => decompress(Buffer.concat([gzip, garbage]), 'gzip'), invalid)
  t.throws(() => decompress(Buffer.concat([gzip, Buffer.alloc(3)]), 'gzip'), invalid, 'zeros, which zlib passes over')
  t.throws(() => decompress(Buffer.concat([brotli, garbage]), 'br'), invalid, 'which zlib passes over')
  t.throws(() => decompress(Buffer.concat([brotli, brotli]), 'br'), invalid)
})

t.test('damage is seen', async (t) => {
  for (const place of [gzip.length - 1, gzip.length - 6, 12]) {
    const damaged = Buffer.from(gzip)
    damaged[place]! ^= 0x01
    t.throws(() => decompress(damaged, 'gzip'), invalid, `gzip, byte ${place}`)
  }
})

t.test('another coding than the one named', async (t) => {
  for (const body of [text, brotli, deflateSync(text), zstdCompressSync(text)]) {
    t.throws(() => decompress(body, 'gzip'), invalid)
  }
  t.throws(() => decompress(gzip, 'br'), invalid)
  t.same(Buffer.from(decompress(gzipSync(gzip), 'gzip')), gzip, 'a second coding stays on')
})
