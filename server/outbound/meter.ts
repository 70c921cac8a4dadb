// Counts the bytes of a response that undici's own limits miss: undici's header limit covers only names and values, starts
// again with each 1xx response, and ignores reason phrases, chunk extensions and trailers.
import type { TLSSocket } from 'node:tls'
import { AppError } from '../errors.ts'
import type { WireRecord } from './wire-record.ts'

export interface MeterLimits {
  /** Bytes from the start of the response to the end of the final header block, 1xx responses included. */
  headerBytes: number
  /** Decrypted bytes of the whole response, framing included. */
  totalBytes: number
}

export interface Meter {
  /** Whether the end of the final header block was reached. */
  readonly headersDone: boolean
  /** Bytes from the start of the response to the end of the final header block, as far as it was read. */
  readonly headBytes: number
}

/**
 * Counts the bytes that the HTTP parser reads from the socket, before the parser gets them. At the first byte too many it
 * destroys the socket with AppError `source_headers_too_large`, `source_too_large` or `source_protocol_error`.
 * @param record keeps what the parser gets
 */
export function meterSocket(
  socket: TLSSocket,
  hostname: string,
  limits: MeterLimits,
  record: WireRecord | null = null,
): Meter {
  const headers = new HeaderScanner()
  const read = socket.read
  const problem = () => {
    if (headers.bytes > limits.headerBytes)
      return new AppError('source_headers_too_large', `The response headers exceed ${limits.headerBytes} bytes.`)
    if (headers.unexpected)
      return new AppError(
        'source_protocol_error',
        `"${hostname}" sent a ${headers.status} response that was not requested.`,
      )
    // Not a sum over chunks: bytes that the parser returns with unshift() would count twice.
    if (socket.bytesRead > limits.totalBytes)
      return new AppError('source_too_large', `The response exceeds ${limits.totalBytes} bytes on the wire.`)
    return null
  }
  socket.read = function meteredRead(size?: number) {
    const chunk: Buffer | null = read.call(this, size)
    if (chunk === null) return null
    headers.scan(chunk, limits.headerBytes)
    const found = problem()
    if (found === null) {
      record?.add(chunk)
      return chunk
    }
    this.destroy(found)
    return null
  }
  return {
    get headersDone() {
      return headers.done
    },
    get headBytes() {
      return headers.bytes
    },
  }
}

const CR = 13
const LF = 10
const END = Buffer.from('\r\n\r\n')
/** Index of the three digits of the status, after "HTTP/1.1 ". */
const STATUS_AT = 9

/** Finds the end of the final header block byte by byte, so that the cost does not depend on how the bytes are split. */
class HeaderScanner {
  bytes = 0
  done = false
  /** A status that no request here allows: 100 without Expect, 101 without Upgrade, and those below, which HTTP does not have. */
  unexpected = false
  status = 0
  #offset = 0
  #matched = 0

  scan(chunk: Uint8Array, limit: number): void {
    for (const byte of chunk) {
      if (this.done || this.unexpected || this.bytes > limit) return
      this.bytes++
      this.#take(byte)
    }
  }

  #take(byte: number): void {
    // Parsers skip empty lines before a status line. Counted as a block, they would hide the real one.
    if (this.#offset === 0 && (byte === CR || byte === LF)) return
    if (this.#offset >= STATUS_AT && this.#offset < STATUS_AT + 3) this.status = this.status * 10 + byte - 48
    this.#matched = byte === END[this.#matched] ? this.#matched + 1 : byte === CR ? 1 : 0
    this.#offset++
    if (this.#matched === END.length) this.#endBlock()
  }

  #endBlock(): void {
    // undici fails at a status below 100 as if it were itself at fault.
    this.unexpected = this.status >= 0 && this.status <= 101
    this.done = this.status < 100 || this.status > 199
    if (this.done || this.unexpected) return
    this.status = 0
    this.#offset = 0
    this.#matched = 0
  }
}
