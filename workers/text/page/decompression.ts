// Undoes the content coding of a response body, to a limit.
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { LIMITS } from '../../../server/interface/limits.ts'
import { TextRefusalError } from './refusal.ts'

export type ContentCoding = 'identity' | 'gzip' | 'br'

/**
 * Decodes one content coding, to at most `LIMITS.decodedBytes`. The stream must be complete, and no bytes may follow it.
 * Synchronous on purpose: in a thread it is several times faster than streaming, and `maxOutputLength` stops a bomb
 * before its output is held.
 */
export function decompress(body: Uint8Array, coding: ContentCoding): Uint8Array {
  const decoded = coding === 'identity' || body.length === 0 ? body : decode(body, coding)
  if (decoded.length > LIMITS.decodedBytes) throw tooLarge()
  return decoded
}

function decode(body: Uint8Array, coding: 'gzip' | 'br') {
  try {
    const { buffer, engine } = decoders[coding](body)
    // zlib stops silently at the end of the stream. Bytes that follow it would be ignored, so they are refused.
    if (engine.bytesWritten !== body.length) {
      throw new TextRefusalError('source_encoding_invalid', `Bytes follow the end of the ${coding} stream.`)
    }
    return buffer
  } catch (error) {
    if (error instanceof TextRefusalError) throw error
    if (isTooLarge(error)) throw tooLarge(error)
    throw new TextRefusalError('source_encoding_invalid', `The body is not a complete ${coding} stream.`, error)
  }
}

// With `info` zlib answers with its engine too, which the types do not know.
const options = { maxOutputLength: LIMITS.decodedBytes, info: true }
const decoders = {
  gzip: (body: Uint8Array) => gunzipSync(body, options) as unknown as Decoded,
  br: (body: Uint8Array) => brotliDecompressSync(body, options) as unknown as Decoded,
}

interface Decoded {
  buffer: Uint8Array
  engine: { bytesWritten: number }
}

const isTooLarge = (error: unknown) =>
  error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'

const tooLarge = (cause?: unknown) =>
  new TextRefusalError(
    'source_too_large',
    `The decoded body exceeds ${LIMITS.decodedBytes.toLocaleString('en')} bytes.`,
    cause,
  )
