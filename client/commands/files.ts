// Reads and replaces the files that are named on the command line; `-` is standard input.
import { createReadStream } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { UsageError } from '../arguments.ts'
import { type PinnedKey, parseJson } from '../verification.ts'

export async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  const chunks = (file === '-' ? process.stdin : createReadStream(file))[Symbol.asyncIterator]()
  const next = () => readable(file, () => chunks.next())
  for (let chunk = await next(); !chunk.done; chunk = await next()) yield chunk.value as Buffer
}

/** A file that cannot be read, or has other contents, is a UsageError. */
export async function readable<T>(file: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    const ofFile = cause instanceof SyntaxError || typeof (cause as NodeJS.ErrnoException).syscall === 'string'
    if (ofFile) throw new UsageError(`Cannot use ${file}: ${(cause as Error).message}`, { cause })
    throw cause
  }
}

export async function readKeys(file: string): Promise<PinnedKey[]> {
  const text = (await readInput(file)).toString()
  try {
    const value = parseJson(text) as { keys?: unknown }
    const list = Array.isArray(value) ? value : value.keys
    if (!Array.isArray(list)) throw new TypeError('no list of keys')
    return list as PinnedKey[]
  } catch (cause) {
    throw new UsageError(`${file} does not hold keys as /v1/keys lists them.`, { cause })
  }
}

export async function readInput(file: string): Promise<Buffer> {
  try {
    return file === '-' ? await buffer(process.stdin) : await readFile(file)
  } catch (cause) {
    throw new UsageError(`Cannot read ${file}: ${(cause as Error).message}`, { cause })
  }
}

/** Replaces the file completely, or not at all; mode 600. A UsageError where it cannot be written. */
export async function replaceFile(path: string, bytes: Uint8Array): Promise<void> {
  const next = `${path}.${process.pid}.new`
  await readable(path, async () => {
    await writeFile(next, bytes, { mode: 0o600 })
    await rename(next, path)
  })
}
