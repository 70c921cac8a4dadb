// Recognises binary formats by their first bytes, because servers sometimes label them text/html or text/plain. The list
// has only signatures with which no text begins by chance. Imports nothing, so that threads can use it on decoded bodies
// too.

/** The binary format of a body; null for anything that may be text. */
export function findSignature(body: Uint8Array): string | null {
  const start = Buffer.from(body.buffer, body.byteOffset, Math.min(body.byteLength, 16)).toString('latin1')
  const fits = (marks: Marks) => Object.entries(marks).every(([at, mark]) => start.startsWith(mark, Number(at)))
  return SIGNATURES.find(([, marks]) => fits(marks))?.[0] ?? null
}

/** Offset → the bytes at it, as latin1. */
type Marks = Readonly<Record<number, string>>

const SIGNATURES: readonly [format: string, marks: Marks][] = [
  ['PDF', { 0: '%PDF-' }],
  ['PNG', { 0: '\x89PNG\r\n\x1a\n' }],
  ['JPEG', { 0: '\xff\xd8\xff' }],
  ['GIF', { 0: 'GIF87a' }],
  ['GIF', { 0: 'GIF89a' }],
  ['WebP', { 0: 'RIFF', 8: 'WEBP' }],
  ['WAV', { 0: 'RIFF', 8: 'WAVE' }],
  ['AVI', { 0: 'RIFF', 8: 'AVI ' }],
  ['ISO media', { 0: '\0\0\0', 4: 'ftyp' }],
  ['Ogg', { 0: 'OggS\0' }],
  ['ZIP', { 0: 'PK\x03\x04' }],
  ['ZIP', { 0: 'PK\x05\x06' }],
  ['gzip', { 0: '\x1f\x8b\x08' }],
  ['bzip2', { 0: 'BZh', 4: '1AY&SY' }],
  ['xz', { 0: '\xfd7zXZ\0' }],
  ['Zstandard', { 0: '\x28\xb5\x2f\xfd' }],
  ['7z', { 0: '7z\xbc\xaf\x27\x1c' }],
  ['RAR', { 0: 'Rar!\x1a\x07' }],
  ['ELF', { 0: '\x7fELF' }],
  ['WebAssembly', { 0: '\0asm' }],
]
