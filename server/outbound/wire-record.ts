// Keeps the bytes of one exchange as they crossed the connection: what was written, and what the HTTP parser read.
import type { TLSSocket } from 'node:tls'

export interface WireRecord {
  /** All that was written so far. */
  request(): Buffer
  /** All that the parser has read so far: every response header, framing and body. */
  response(): Buffer
  /** Bytes kept since the last call of this function, for those who count memory. */
  grown(): number
  /** Called with each chunk that the parser gets. */
  add(chunk: Uint8Array): void
}

/**
 * Records a socket on which nothing was sent yet. Reads are not patched here: meterSocket passes on what the parser gets, so that what it
 * refuses is not kept.
 * @param maxBytes of the response; a chunk beyond it would throw a RangeError
 */
export function recordSocket(socket: TLSSocket, maxBytes: number): WireRecord {
  const written: Buffer[] = []
  // One buffer that grows: an array of one-octet chunks would take a hundred times their size.
  const read = new ArrayBuffer(0, { maxByteLength: maxBytes })
  let counted = 0
  const { write, unshift } = socket
  socket.write = function recordedWrite(this: TLSSocket, chunk: string | Uint8Array, ...rest: unknown[]) {
    const encoding = typeof rest[0] === 'string' ? (rest[0] as BufferEncoding) : undefined
    written.push(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk))
    return Reflect.apply(write, this, [chunk, ...rest])
  } as TLSSocket['write']
  // A parser that pauses gives back what it did not parse, and reads it again later.
  socket.unshift = function recordedUnshift(this: TLSSocket, chunk: Uint8Array, ...rest: unknown[]) {
    read.resize(Math.max(0, read.byteLength - chunk.byteLength))
    return Reflect.apply(unshift, this, [chunk, ...rest])
  } as TLSSocket['unshift']
  return {
    request: () => Buffer.concat(written),
    response: () => Buffer.from(new Uint8Array(read)),
    grown() {
      const more = Math.max(0, read.byteLength - counted)
      counted += more
      return more
    },
    add(chunk) {
      const length = read.byteLength
      read.resize(length + chunk.byteLength)
      new Uint8Array(read, length).set(chunk)
    },
  }
}
