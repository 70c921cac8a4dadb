// Bytes and their two text forms, hex and base64. Runs in browsers too.
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'

/** SHA-256 as 64 lowercase hex characters; a string is taken as UTF-8. */
export function sha256Hex(data: Uint8Array | string): string {
  return bytesToHex(sha256(typeof data === 'string' ? utf8ToBytes(data) : data))
}

export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

/** An answer is longer than its reader takes. */
export class TooLongError extends RangeError {}

/**
 * The body of an answer. Throws a TooLongError for one of more than `most` bytes, and what the connection throws. Each piece is copied: if
 * they were kept, a body of one-octet pieces would take hundreds of times its size.
 */
export async function readBody(response: Response, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const reader = response.body?.getReader()
  let room = new Uint8Array()
  let length = 0
  while (reader) {
    const { value, done } = await reader.read()
    if (done) break
    if (length + value.length > most) {
      await reader.cancel()
      throw new TooLongError(`The answer is longer than ${most} bytes`)
    }
    if (length + value.length > room.length) {
      const more = new Uint8Array(Math.max(2 * room.length, length + value.length))
      more.set(room.subarray(0, length))
      room = more
    }
    room.set(value, length)
    length += value.length
  }
  return length === room.length ? room : room.slice(0, length)
}

/** The bytes of standard base64, or null for anything else: whitespace, URL alphabet, stray bits, missing padding. */
export function decodeBase64(text: string): Uint8Array | null {
  try {
    const binary = atob(text)
    // atob accepts several spellings of one value. With them a field could change while every digest stays the same.
    return btoa(binary) === text ? Uint8Array.from(binary, (char) => char.charCodeAt(0)) : null
  } catch {
    return null
  }
}

/** The value of a base64 JSON header, or null when it is missing or unreadable. */
export function decodeBase64Json(header: string | null): unknown {
  const bytes = header === null ? null : decodeBase64(header)
  if (!bytes) return null
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return null
  }
}
