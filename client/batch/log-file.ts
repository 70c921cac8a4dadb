// An append-only file of JSON lines. An appended line is on the disk when `append` resolves; lines that are appended while
// a flush runs share the next flush. When the file is opened, a last line that a crash has truncated is removed; a last
// line that lacks only its line end is kept.
import { constants } from 'node:fs'
import { type FileHandle, open, readFile } from 'node:fs/promises'

/**
 * A line is not a JSON object, and a crash cannot have caused that: the file is another one, or another program has
 * changed it.
 */
export class DamagedFileError extends Error {
  override name = 'DamagedFileError'
}

export class LogFile<Line> implements AsyncDisposable {
  readonly #file: FileHandle
  readonly #path: string
  #waiting: string[] = []
  #flushed: Promise<void> | null = null

  private constructor(file: FileHandle, path: string) {
    this.#file = file
    this.#path = path
  }

  /**
   * Opens the file, or makes it with mode 600, and calls `read` for each line in it. Throws a DamagedFileError. What `read`
   * throws is passed on.
   */
  static async open<Line>(path: string, read: (line: Line) => void): Promise<LogFile<Line>> {
    const file = await open(path, 'a+', 0o600)
    try {
      const { whole, tail } = await readAll(file, path, read)
      if (tail === 'line') await file.appendFile('\n')
      else if (tail === 'torn') await file.truncate(whole)
      return new LogFile<Line>(file, path)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /**
   * Rejects when a write fails, and always after that: lines may be stored partly, and later lines would be read as their
   * continuation.
   */
  append(line: Line): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure)
    this.#waiting.push(`${JSON.stringify(line)}\n`)
    // The flush under way does not cover this line; the next one does.
    this.#flushed ??= this.#flushAfter(this.#running)
    return this.#flushed
  }

  #running: Promise<void> = Promise.resolve()
  #failure: Error | null = null

  #flushAfter(before: Promise<void>): Promise<void> {
    const flush = before.then(async () => {
      this.#flushed = null
      const text = this.#waiting.join('')
      this.#waiting = []
      if (this.#failure) throw this.#failure
      try {
        await this.#file.appendFile(text)
        await this.#file.datasync()
      } catch (error) {
        // The system names no file in the error of a write.
        this.#failure = Object.assign(error as Error, { path: this.#path })
        throw error
      }
    })
    this.#running = flush.catch(() => {})
    return flush
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running
    await this.#file.close()
  }
}

/** Reads such a file as `LogFile.open` does, and throws what that throws. Changes nothing, and there need be no file. */
export async function checkLines<Line>(path: string, read: (line: Line) => void = () => {}): Promise<void> {
  // A pipe to which nothing writes would hold the call.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
      throw error
    },
  )
  try {
    if (file) await readAll(file, path, read)
  } finally {
    await file?.close()
  }
}

interface Ending {
  /** Bytes of the lines that have an end. */
  whole: number
  /** What follows them: a line that lacks only its end, the beginning of one, or nothing. */
  tail: 'line' | 'torn' | null
}

async function readAll<Line>(file: FileHandle, path: string, read: (line: Line) => void): Promise<Ending> {
  const found = await file.stat()
  // Those have no lines, and some have no end.
  if (!found.isFile() && !found.isDirectory()) throw new DamagedFileError(`${path} is no file.`)
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
  const tail = Buffer.concat(rest)
  const line = tail.length === 0 ? null : parseTail<Line>(path, number + 1, tail)
  if (line) read(line)
  return { whole, tail: line ? 'line' : tail.length > 0 ? 'torn' : null }
}

/** The whole lines of such a file, which is not changed; none where there is no file. Throws a DamagedFileError. */
export async function* readLines<Line>(path: string): AsyncGenerator<Line> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return ''
    throw error
  })
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n')
  for (const [n, line] of lines.entries()) if (line !== '') yield parse<Line>(path, n + 1, line)
}

function parse<Line>(path: string, number: number, text: string): Line {
  const line = parseObject(text)
  // The cause would repeat the line, which may be a secret where the file is not what it was taken for.
  if (line === null)
    throw new DamagedFileError(
      `${path}, line ${number}: this is no JSON object. The file was changed, or the disk is faulty.`,
    )
  return line as Line
}

/**
 * Null for the beginning of a line. Text that no crash can leave is not removed: the file may be a key that was named
 * by mistake.
 */
function parseTail<Line>(path: string, number: number, tail: Buffer): Line | null {
  // After a loss of power the end of a file may be zeros.
  const text = tail.toString().replace(/\0+$/, '')
  if (text !== '' && !text.startsWith('{')) return parse<Line>(path, number, text)
  return text.length === tail.toString().length ? (parseObject(text) as Line | null) : null
}

function parseObject(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

const LF = 10
