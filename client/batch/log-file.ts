// An append-only file of JSON lines. What was appended is on the disk when `append` resolves; lines that are appended while
// a flush runs share the next one. A last line that a crash has torn is cut off when the file is opened.
import { type FileHandle, open } from 'node:fs/promises'

/** A line that is not the last one is no JSON: the file was changed by something else. */
export class DamagedFileError extends Error {
  override name = 'DamagedFileError'
}

export class LogFile<Line> implements AsyncDisposable {
  readonly #file: FileHandle
  #waiting: string[] = []
  #flushed: Promise<void> | null = null

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /**
   * Opens the file, or makes it with mode 600, and calls `read` for each line in it. Throws a DamagedFileError. What `read`
   * throws is passed on.
   */
  static async open<Line>(path: string, read: (line: Line) => void): Promise<LogFile<Line>> {
    const file = await open(path, 'a+', 0o600)
    try {
      let number = 0
      let whole = 0
      let rest: Buffer[] = []
      for await (const chunk of file.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Buffer>) {
        let from = 0
        for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, from)) {
          const bytes = Buffer.concat([...rest, chunk.subarray(from, end)])
          rest = []
          from = end + 1
          whole += bytes.length + 1
          read(parse<Line>(path, ++number, bytes.toString()))
        }
        if (from < chunk.length) rest.push(chunk.subarray(from))
      }
      if (rest.length > 0) await file.truncate(whole)
      return new LogFile<Line>(file)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** Rejects when the disk refuses, and then the lines may be there in part. */
  append(line: Line): Promise<void> {
    this.#waiting.push(`${JSON.stringify(line)}\n`)
    // The flush under way does not cover this line; the next one does.
    this.#flushed ??= this.#flushAfter(this.#running)
    return this.#flushed
  }

  #running: Promise<void> = Promise.resolve()

  #flushAfter(before: Promise<void>): Promise<void> {
    const flush = before.then(async () => {
      this.#flushed = null
      const text = this.#waiting.join('')
      this.#waiting = []
      await this.#file.appendFile(text)
      await this.#file.datasync()
    })
    this.#running = flush.catch(() => {})
    return flush
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running
    await this.#file.close()
  }
}

function parse<Line>(path: string, number: number, text: string): Line {
  try {
    return JSON.parse(text) as Line
  } catch (cause) {
    throw new DamagedFileError(
      `${path}, line ${number}: this is no JSON. The file was changed, or the disk is faulty.`,
      {
        cause,
      },
    )
  }
}

const LF = 10
