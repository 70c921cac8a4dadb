// One TLS connection whose bytes are counted before they are decrypted. What TLS sends beside the data costs time and shows in no count
// of the data: a peer can change its keys a hundred thousand times a second, or put every octet into a record of its own.
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { AppError } from '../errors.ts'

/** Bytes beside the data: the handshake with its certificates, and what was read and is not decrypted yet. */
const FRAMING_BYTES = 262_144
/** The same for each byte of data: records of 44 bytes on average. */
const FRAMING_SHARE = 0.5
const RECORD_BYTES = 16_384

/**
 * Begins TLS over a connected socket. A peer that sends more beside the data than is allowed gets the connection closed, with AppError
 * `source_protocol_error`.
 */
export function connectOver(raw: Socket, hostname: string, options: ConnectionOptions): TLSSocket {
  const wire = new Wire(raw)
  const socket = connect({ ...options, socket: wire })
  wire.judge = (received) => {
    if (received <= FRAMING_BYTES + socket.bytesRead * (1 + FRAMING_SHARE)) return
    socket.destroy(new AppError('source_protocol_error', `"${hostname}" sent too much beside the data of TLS.`))
  }
  // The error of the network, as a TLS socket that dials by itself has it. After an end there may be data that is not read yet.
  raw.once('error', (error) => socket.destroy(error)).once('close', () => raw.readableEnded || socket.destroy())
  socket.once('close', () => wire.destroy())
  return socket
}

/**
 * Hands a record's length over in each turn of the event loop, and only when TLS asks. TLS over the socket itself would read two
 * megabytes in one turn, which no code here could interrupt.
 */
class Wire extends Duplex {
  judge: (received: number) => void = () => {}
  readonly #raw: Socket
  #piece: Uint8Array = new Uint8Array()
  #received = 0
  #turn: NodeJS.Immediate | undefined

  constructor(raw: Socket) {
    // With autoDestroy the TLS socket would end before its last data is read.
    super({ autoDestroy: false, readableHighWaterMark: 1 })
    this.#raw = raw
    raw.on('data', (piece) => {
      raw.pause()
      this.#piece = piece
      this._read()
    })
    raw.on('end', () => this._read())
  }

  override _read() {
    if (this.#piece.length > 0 || this.#raw.readableEnded) this.#turn ??= setImmediate(() => this.#pass())
    else this.#raw.resume()
  }

  /** All that was passed before is decrypted by now. */
  #pass() {
    this.#turn = undefined
    this.judge(this.#received)
    if (this.destroyed) return
    const passed = this.#piece.subarray(0, RECORD_BYTES)
    this.#piece = this.#piece.subarray(RECORD_BYTES)
    this.#received += passed.length
    this.push(passed.length > 0 ? passed : null)
  }

  override _write(piece: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void) {
    this.#raw.write(piece, done)
  }

  override _final(done: () => void) {
    this.#raw.end(done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void) {
    this.#raw.destroy()
    done(error)
  }
}
