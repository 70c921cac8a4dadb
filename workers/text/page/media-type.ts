// Reads the Content-Type of a page and refuses what is not text.
import { MIMEType } from 'node:util'
import { TextRefusalError } from './refusal.ts'

export interface MediaType {
  kind: 'html' | 'plain'
  /** The charset parameter as it was sent, if any. */
  charset: string | null
}

/** text/html or text/plain; everything else is refused. */
export function readMediaType(contentType: string): MediaType {
  const type = parse(contentType)
  const kind = type && kinds[type.essence]
  if (!kind) throw new TextRefusalError('source_unsupported_type', 'The source is neither text/html nor text/plain.')
  return { kind, charset: type.params.get('charset') }
}

function parse(contentType: string) {
  try {
    return new MIMEType(contentType)
  } catch {
    // Not a media type at all, which is refused like a wrong one.
    return null
  }
}

const kinds: Record<string, 'html' | 'plain' | undefined> = { 'text/html': 'html', 'text/plain': 'plain' }

/** Servers label all sorts of files as text: what begins like a well-known binary format is refused by its name. */
export function refuseBinary(bytes: Uint8Array) {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 16)).toString('latin1')
  const match = signatures.find(([, signature, at = 0]) => head.startsWith(signature, at))
  if (match) throw new TextRefusalError('source_unsupported_type', `The body is ${match[0]}, not text.`)
}

const signatures: [format: string, signature: string, at?: number][] = [
  ['PDF', '%PDF-'],
  ['PostScript', '%!PS-Adobe-'],
  ['ZIP', 'PK\x03\x04'],
  ['ZIP', 'PK\x05\x06'],
  ['gzip', '\x1f\x8b'],
  ['Zstandard', '\x28\xb5\x2f\xfd'],
  ['XZ', '\xfd7zXZ\0'],
  ['bzip2', '1AY&SY', 4],
  ['7z', '7z\xbc\xaf\x27\x1c'],
  ['RAR', 'Rar!\x1a\x07'],
  ['PNG', '\x89PNG\r\n\x1a\n'],
  ['JPEG', '\xff\xd8\xff'],
  ['GIF', 'GIF87a'],
  ['GIF', 'GIF89a'],
  ['WebP', 'WEBPVP8', 8],
  ['WAVE', 'WAVEfmt ', 8],
  ['TIFF', 'II*\0'],
  ['TIFF', 'MM\0*'],
  ['MP4', '\0\0\0\x18ftyp'],
  ['MP4', '\0\0\0\x1cftyp'],
  ['MP4', '\0\0\0\x20ftyp'],
  ['Ogg', 'OggS\0'],
  ['Matroska', '\x1a\x45\xdf\xa3'],
  ['an OLE document', '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1'],
  ['WebAssembly', '\0asm'],
  ['ELF', '\x7fELF'],
  ['WOFF', 'wOFF\0'],
  ['WOFF', 'wOF2\0'],
  ['SQLite', 'SQLite format 3\0'],
]
