// Bodies that arrive in small pieces. A piece of one octet that is kept until the body is whole takes some hundred octets of memory,
// so a few bodies within every limit of their size would fill the memory of a process.
import { finished, type Readable, Transform, type TransformCallback } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { addressKey } from '../accounts/address-key.ts'
import { AppError, retrySoon } from '../errors.ts'
import type { BodyBudget, Unfinished } from './body-budget.ts'

/** Of several pieces that are kept as one. */
const BLOCK_BYTES = 4096

/** Joins the pieces of every body before a parser keeps them, within the budget of all bodies. */
export function joinPieces(app: FastifyInstance, budget: BodyBudget) {
  app.addHook('preParsing', ({ raw, ip }, _reply, payload: Readable, done) => {
    const hasBody = raw.headers['transfer-encoding'] !== undefined || Number(raw.headers['content-length'] ?? 0) > 0
    // A body that is whole is parsed at once: its pieces are kept by nothing.
    if (!hasBody || raw.complete) return done(null, payload)
    const body = budget.begin(addressKey(ip), () => {
      payload.unpipe(joined)
      // The rest is thrown away until the answer is sent. To destroy it would close the connection before that.
      payload.resume()
      joined.destroy(tooManyBodies())
    })
    const joined = new Joined(body)
    // A parser that has refused the body listens no more.
    joined.on('error', () => {})
    finished(payload, (error) => error && joined.destroy(error))
    done(null, payload.pipe(joined))
  })
}

function tooManyBodies() {
  const message = 'Too many large request bodies are being sent at this moment. Send it again.'
  return new AppError('capacity_exceeded', message, { headers: retrySoon() })
}

/** Passes large pieces on, and copies small ones into blocks. */
class Joined extends Transform {
  readonly #body: Unfinished
  #block = Buffer.alloc(0)
  #length = 0

  constructor(body: Unfinished) {
    super()
    this.#body = body
  }

  override _transform(piece: Buffer, _encoding: BufferEncoding, done: TransformCallback) {
    this.#body.grow(piece.length)
    if (this.destroyed) return done()
    if (this.#length + piece.length > this.#block.length) this.#pass()
    if (piece.length >= BLOCK_BYTES) this.push(piece)
    else this.#keep(piece)
    done()
  }

  override _flush(done: TransformCallback) {
    this.#pass()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void) {
    this.#body.end()
    done(error)
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
