// The thread of text extraction: from the bytes of a body to its text, digests and risk flags.
import { hash } from 'node:crypto'
import { openBudgets } from '../budget.ts'
import { composeCharacters } from '../characters.ts'
import { codePointIndex } from '../offsets.ts'
import { type CharsetSource, decodeCharset } from './charset.ts'
import { type ContentCoding, decompress } from './decompression.ts'
import { cutText, LARGE_BYTES, maxCodePoints } from './length.ts'
import { Lines } from './lines.ts'
import { type MediaType, readMediaType, refuseBinary } from './media-type.ts'
import { addPlainText } from './plain-text.ts'
import { type RefusalCode, TextRefusalError } from './refusal.ts'
import { type RiskFlag, riskFlags } from './risk-flags.ts'
import { addVisibleText } from './visible-text.ts'

export interface Extraction {
  /** NFC, well formed, 1 to 100,000 code points, lines parted by U+000A. */
  text: string
  codePoints: number
  /** SHA-256 of the octets after content decoding, as `curl --compressed` stores them. 64 lower-case hex digits. */
  contentSha256: string
  /** SHA-256 of `text` in UTF-8. */
  textSha256: string
  decodedBytes: number
  /** Lower-case WHATWG name of the encoding that was used. */
  charset: string
  charsetSource: CharsetSource
  riskFlags: RiskFlag[]
  /** Whether `text` is only the beginning. */
  truncated: boolean
}

export interface PageBytes {
  /** As received, content coding still on. */
  body: Uint8Array<ArrayBuffer>
  contentEncoding: ContentCoding
  /** The Content-Type field, parameters included. */
  contentType: string
}

interface Refusal {
  ok: false
  code: RefusalCode
  message: string
}

export type Outcome = { ok: true; extraction: Extraction } | Refusal

/** Bytes to text. A refused page is returned as data, because a thread loses the class of an error. */
export function extract(page: PageBytes): Outcome {
  return orRefusal(() => readText(decode(page)))
}

/** As `extract`, but ends with `large` when the decoded body has the size of a large page, which only decoding shows. */
export function extractUnlessLarge(page: PageBytes): Outcome | 'large' {
  return orRefusal(() => {
    const decoded = decode(page)
    return decoded.bytes.length > LARGE_BYTES ? 'large' : readText(decoded)
  })
}

function orRefusal<T>(read: () => T): T | Refusal {
  try {
    return read()
  } catch (error) {
    if (error instanceof TextRefusalError) return { ok: false, code: error.code, message: error.message }
    throw error
  }
}

interface Decoded {
  type: MediaType
  /** After content decoding. */
  bytes: Uint8Array
}

function decode({ body, contentEncoding, contentType }: PageBytes): Decoded {
  return { type: readMediaType(contentType), bytes: decompress(body, contentEncoding) }
}

function readText({ type, bytes }: Decoded): { ok: true; extraction: Extraction } {
  refuseBinary(bytes)
  const decoded = decodeCharset(bytes, type)
  const shown = collectText(decoded.text, type.kind)
  const text = cutText(shown.text)
  if (text === '') throw new TextRefusalError('source_empty', 'The source has no visible text.')
  const { length } = codePointIndex(text)
  const truncated = shown.isPart || text.length < shown.text.length

  const extraction = {
    text,
    codePoints: length,
    contentSha256: hash('sha256', bytes),
    textSha256: hash('sha256', text),
    decodedBytes: bytes.length,
    charset: decoded.charset,
    charsetSource: decoded.source,
    riskFlags: riskFlags({ ...decoded, ...shown, truncated, length }),
    truncated,
  }
  return { ok: true, extraction }
}

function collectText(source: string, kind: 'html' | 'plain') {
  const lines = new Lines(mostCollected)
  const unseen = { length: 0 }
  const hidden = { length: 0 }
  const { reading, matching } = openBudgets()
  if (kind === 'html') addVisibleText(source, lines, unseen, hidden, { reading, matching })
  else addPlainText(source, lines, unseen)
  return {
    text: composeCharacters(lines.toString()),
    isPart: lines.isCut,
    unseen: unseen.length,
    hidden: hidden.length,
    passedOver: reading.isSpent || matching.isSpent,
  }
}

/** UTF-16 units. Far more than is kept, because composing characters shortens text. */
const mostCollected = 20 * maxCodePoints
