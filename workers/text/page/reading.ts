// What the package `countersign-verifier` exports as `countersign-verifier/page`: the way from the bytes of a page to its text, with
// the code that the service runs. It is packed as one file, so that its parsers have the versions that its name says.
import { TEXT_PROCEDURE } from '../procedure.ts'
import { extract } from './text-thread.ts'

export interface PageBytes {
  /** As received after the framing of chunks is removed, content coding still on: at most 4,194,304 bytes. */
  body: Uint8Array
  contentEncoding: 'identity' | 'gzip' | 'br'
  /** The Content-Type field, parameters included. */
  contentType: string
}

export interface PageText {
  text: string
  /** SHA-256 of the bytes after content decoding. 64 lower-case hex digits. */
  contentSha256: string
  /** SHA-256 of `text` in UTF-8. */
  textSha256: string
  decodedBytes: number
}

export type PageReading = { ok: true; page: PageText } | { ok: false; code: string; message: string }

/** Names the procedure: same bytes, same content type, same name, same text. A part of every `methodology_version`. */
export const pageProcedure: string = TEXT_PROCEDURE

/** From bytes to text. A page that the service would have refused is answered with the code of the refusal. */
export function readPage({ body, contentEncoding, contentType }: PageBytes): PageReading {
  const outcome = extract({ body: Uint8Array.from(body), contentEncoding, contentType })
  if (!outcome.ok) return outcome
  const { text, contentSha256, textSha256, decodedBytes } = outcome.extraction
  return { ok: true, page: { text, contentSha256, textSha256, decodedBytes } }
}
