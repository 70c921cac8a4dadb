// Decodes the bytes of a page: finds their charset and their text.
import { isUtf8 } from 'node:buffer'
import { getBOMEncoding, isomorphicDecode, normalizeEncoding, TextDecoder } from '@exodus/bytes/encoding.js'
import { load } from 'cheerio/slim'
import type { Element } from 'domhandler'
import { parseMarkup } from './markup.ts'
import type { MediaType } from './media-type.ts'
import { TextRefusalError } from './refusal.ts'

/** In order of precedence. `utf8` is detected from the bytes; `default` is windows-1252, a guess. */
export type CharsetSource = 'bom' | 'header' | 'meta' | 'utf8' | 'default'

export interface DecodedText {
  text: string
  charset: string
  source: CharsetSource
  /** Places where the bytes are invalid in the charset. */
  replacements: number
}

/**
 * Bytes to characters by the WHATWG tables of @exodus/bytes: those of Node itself are wrong for EUC-KR and Big5.
 * The order is that of browsers, except for pages that declare nothing: valid UTF-8 is read as UTF-8.
 */
export function decodeCharset(bytes: Uint8Array, type: MediaType): DecodedText {
  const { charset, source } = findCharset(bytes, type)
  if (charset === 'replacement') {
    throw new TextRefusalError('source_encoding_invalid', 'The declared charset is one that browsers refuse to decode.')
  }
  const text = new TextDecoder(charset).decode(bytes)
  const replacements = charset === 'utf-8' && isUtf8(bytes) ? 0 : count(text, '\ufffd')
  if (replacements > text.length * mostReplaced) {
    throw new TextRefusalError('source_encoding_invalid', `The body is not text in the charset ${charset}.`)
  }
  return { text, charset, source, replacements }
}

function findCharset(bytes: Uint8Array, { kind, charset }: MediaType): { charset: string; source: CharsetSource } {
  const bom = getBOMEncoding(bytes)
  if (bom) return { charset: bom, source: 'bom' }

  const header = charset === null ? null : normalizeEncoding(charset)
  if (header) return { charset: header, source: 'header' }

  const early = kind === 'html' ? declaredCharset(bytes.subarray(0, 1024), 'meta') : null
  if (early) return { charset: early, source: 'meta' }

  if (isUtf8(bytes)) return { charset: 'utf-8', source: 'utf8' }

  const late = kind === 'html' ? declaredCharset(bytes.subarray(0, 65_536), 'head meta') : null
  if (late) return { charset: late, source: 'meta' }

  return { charset: 'windows-1252', source: 'default' }
}

/**
 * The charset that the page declares in a meta element or an XML declaration. Parsing keeps comments and scripts out.
 */
function declaredCharset(bytes: Uint8Array, selector: string): string | null {
  const start = isomorphicDecode(bytes)
  const $ = load(parseMarkup(start))
  const labels = $<Element, string>(selector)
    .get()
    .map(({ attribs }) => attribs.charset ?? (isContentType(attribs) ? inContent(attribs.content ?? '') : null))
  labels.push(start.match(/^<\?xml\s[^>]*?encoding\s*=\s*["']([^"'>]*)/)?.[1] ?? null)

  for (const label of labels) {
    const charset = label === null ? null : normalizeEncoding(label)
    if (charset) return inMarkup[charset] ?? charset
  }
  return null
}

const isContentType = (attribs: Record<string, string>) => attribs['http-equiv']?.toLowerCase() === 'content-type'

const inContent = (content: string) => {
  const match = content.match(/charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))/i)
  return match?.[1] ?? match?.[2] ?? match?.[3] ?? null
}

/** A declaration that is readable as ASCII is not in UTF-16, also when it names UTF-16. */
const inMarkup: Record<string, string> = { 'utf-16le': 'utf-8', 'utf-16be': 'utf-8', 'x-user-defined': 'windows-1252' }

function count(text: string, character: string) {
  let found = 0
  for (let i = text.indexOf(character); i >= 0; i = text.indexOf(character, i + 1)) found++
  return found
}

/**
 * A share of the characters. Single invalid bytes are common on real pages; with a larger share the bytes are in another
 * charset, or no text.
 */
const mostReplaced = 0.1
