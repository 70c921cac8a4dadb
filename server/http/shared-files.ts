// Files that many callers download at once, each read through one descriptor. A caller who does not read would hold a file open otherwise,
// which no limit on connections counts.
import { type FileHandle, open } from 'node:fs/promises'

const PIECE_BYTES = 65_536

export class SharedFiles implements AsyncDisposable {
  readonly #files: readonly URL[]
  readonly #handles = new Map<URL, Promise<FileHandle>>()

  constructor(files: readonly URL[]) {
    this.#files = files
  }

  /** The bytes of the files, one file after the other. Throws what the system throws. */
  async *read(): AsyncGenerator<Uint8Array> {
    for (const file of this.#files) {
      const handle = await this.#open(file)
      for (let at = 0; ; ) {
        const piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
        const { bytesRead } = await handle.read(piece, 0, PIECE_BYTES, at)
        if (bytesRead === 0) break
        at += bytesRead
        yield piece.subarray(0, bytesRead)
      }
    }
  }

  /** A file that cannot be opened is tried again for the next caller. */
  #open(file: URL): Promise<FileHandle> {
    const known = this.#handles.get(file)
    if (known) return known
    const opening = open(file)
    this.#handles.set(file, opening)
    opening.catch(() => this.#handles.delete(file))
    return opening
  }

  /** What is read meanwhile fails. */
  async [Symbol.asyncDispose](): Promise<void> {
    const opened = await Promise.allSettled(this.#handles.values())
    for (const one of opened) if (one.status === 'fulfilled') await one.value.close()
  }
}
