// Bytes and the two texts they travel as. Everything here runs in browsers too.
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'

/** SHA-256 as 64 lowercase hex characters; a string is taken as UTF-8. */
export function sha256Hex(data: Uint8Array | string): string {
  return bytesToHex(sha256(typeof data === 'string' ? utf8ToBytes(data) : data))
}

/** The bytes of standard base64, or null for anything else: whitespace, URL alphabet, stray bits, missing padding. */
export function decodeBase64(text: string): Uint8Array | null {
  try {
    const binary = atob(text)
    // atob forgives; two spellings of one value would let a field change without any digest changing.
    return btoa(binary) === text ? Uint8Array.from(binary, (char) => char.charCodeAt(0)) : null
  } catch {
    return null
  }
}

/** What a base64 JSON header says, or null when it is missing or says nothing readable. */
export function decodeBase64Json(header: string | null): unknown {
  const bytes = header === null ? null : decodeBase64(header)
  if (!bytes) return null
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return null
  }
}
