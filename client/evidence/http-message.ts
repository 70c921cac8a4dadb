// Splits a response as it came over the wire: head, body, and the body without its framing. Reads only what the service reads too.
import { Fault } from './steps.ts'
import { findBlankLine, withoutBlanks } from './warc.ts'

export interface Response {
  /** From the first byte to the blank line of the final response; responses of status 1xx before it are included. */
  head: Uint8Array
  /** All bytes after the head, framing included. */
  body: Uint8Array
  /** Of the final response. */
  status: number
  /** Of the final response, in order: names in lower case, values as Latin-1. */
  fields: readonly (readonly [name: string, value: string])[]
}

/** Throws a Fault where no final response begins in the bytes. */
export function splitResponse(block: Uint8Array): Response {
  for (let start = 0; ; ) {
    const end = findBlankLine(block, start)
    if (end < 0) throw new Fault('has no blank line after its head')
    const { status, fields } = readHead(block.subarray(start, end))
    if (status >= 200 || status === 101)
      return { head: block.subarray(0, end), body: block.subarray(end), status, fields }
    start = end
  }
}

function readHead(head: Uint8Array): Pick<Response, 'status' | 'fields'> {
  const [first = '', ...lines] = latin1(head).split('\r\n')
  const status = /^HTTP\/1\.[01] ([1-9]\d\d)(?: |$)/.exec(first)?.[1]
  if (status === undefined) throw new Fault('does not begin with a status line of HTTP/1.1')
  const fields: [string, string][] = []
  for (const line of lines.filter((one) => one !== '')) {
    const last = fields.at(-1)
    const colon = line.indexOf(':')
    // A line that begins with a blank goes on with the value before it, in an old form of HTTP that parsers still take.
    if (/^[ \t]/.test(line) && last) last[1] = `${last[1]} ${line.trim()}`
    else if (colon < 1) throw new Fault('has a line in its head that is no field')
    else fields.push([line.slice(0, colon).toLowerCase(), withoutBlanks(line.slice(colon + 1))])
  }
  return { status: Number(status), fields }
}

/** One character for each byte. */
function latin1(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return text
}

/** The one value of a field that decides how a body is read. Throws a Fault where it is given twice. */
export function single({ fields }: Response, name: string): string | undefined {
  const values = fields.filter(([one]) => one === name)
  if (values.length > 1) throw new Fault(`has more than one ${name} field`)
  return values[0]?.[1]
}

/** The content coding, of those that the service reads. Throws a Fault for another one. */
export function contentCoding(response: Response): 'identity' | 'gzip' | 'br' {
  const coding = (single(response, 'content-encoding') ?? '').toLowerCase()
  if (coding === '' || coding === 'identity') return 'identity'
  if (coding === 'gzip' || coding === 'x-gzip') return 'gzip'
  if (coding === 'br') return 'br'
  throw new Fault('has a content coding other than gzip and br')
}

/** The body without the framing of chunks. Bytes after its end are left out, as clients leave them out. Throws a Fault. */
export function unframed(response: Response): Uint8Array {
  const transfer = single(response, 'transfer-encoding')?.toLowerCase()
  if (transfer !== undefined && transfer !== 'chunked') throw new Fault('has a transfer coding other than chunked')
  if (transfer === 'chunked') return joinChunks(response.body)
  const length = single(response, 'content-length')
  if (length === undefined) return response.body
  if (!/^\d{1,9}$/.test(length)) throw new Fault('has a Content-Length that is no number')
  if (response.body.length < Number(length)) throw new Fault('has a body that ends before its Content-Length')
  return response.body.subarray(0, Number(length))
}

/** Copies each chunk at once: a body may have millions. */
function joinChunks(body: Uint8Array): Uint8Array {
  const joined = new Uint8Array(body.length)
  let length = 0
  for (let at = 0; ; ) {
    const line = body.indexOf(10, at)
    const size =
      line < 0 ? null : /^([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n$/.exec(latin1(body.subarray(at, line + 1)))
    if (!size) throw new Fault('has a body with a chunk that does not begin with its size')
    const start = line + 1
    const end = start + Number.parseInt(size[1] ?? '', 16)
    if (end === start) return joined.subarray(0, length)
    if (body[end] !== 13 || body[end + 1] !== 10)
      throw new Fault('has a body with a chunk that is not as long as its size')
    joined.set(body.subarray(start, end), length)
    length += end - start
    at = end + 2
  }
}
