// Bodies that arrive in small pieces. A piece of one octet that is kept until the body is whole takes some hundred octets of memory,
// so a few bodies within every limit of their size would fill the memory of a process.
import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import type { FastifyInstance } from 'fastify'

/** Of several pieces that are kept as one. */
const BLOCK_BYTES = 4096

/** Joins the pieces of every body before a parser keeps them. */
export function joinPieces(app: FastifyInstance) {
  app.addHook('preParsing', ({ raw }, _reply, payload: Readable, done) => {
    const hasBody = raw.headers['transfer-encoding'] !== undefined || Number(raw.headers['content-length'] ?? 0) > 0
    // A body that is whole is parsed at once: its pieces are kept by nothing.
    if (!hasBody || raw.complete) return done(null, payload)
    done(
      null,
      pipeline(payload, new Joined(), () => {}),
    )
  })
}

/** Passes large pieces on, and copies small ones into blocks. */
class Joined extends Transform {
  #block = Buffer.alloc(0)
  #length = 0

  override _transform(piece: Buffer, _encoding: BufferEncoding, done: TransformCallback) {
    if (this.#length + piece.length > this.#block.length) this.#pass()
    if (piece.length >= BLOCK_BYTES) this.push(piece)
    else this.#keep(piece)
    done()
  }

  override _flush(done: TransformCallback) {
    this.#pass()
    done()
  }

  #keep(piece: Buffer) {
    if (this.#length === 0) this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
    this.#length += piece.copy(this.#block, this.#length)
  }

  #pass() {
    if (this.#length > 0) this.push(this.#block.subarray(0, this.#length))
    this.#length = 0
  }
}
