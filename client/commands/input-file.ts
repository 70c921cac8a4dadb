// Reads the files that are named on the command line; `-` is standard input. Every one is read here: a device that has no end would fill
// the memory, and a pipe that nothing writes to would hold a thread, with which a process cannot end at a signal.
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { UsageError } from '../arguments.ts'
import { type PinnedKey, parseJson } from '../verification.ts'
import { faultOf, readable } from './files.ts'

/** Of what is kept in memory. */
const MAX_BYTES = 67_108_864
/** Of a device, of which nothing says whether it has an end. */
const MAX_DEVICE_BYTES = 16_777_216
const BLOCK_BYTES = 65_536
/** Between two looks at a pipe that has nothing. */
const LOOK_MS = 20

/** Opens a file to be read without waiting for the other end of a pipe. */
export function openInput(file: string): Promise<FileHandle> {
  return open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
}

/** The bytes of an open file or pipe as they come. Throws what the system throws; for a folder too. */
export async function* bytesOfHandle(handle: FileHandle): AsyncGenerator<Buffer> {
  const isPipe = (await handle.stat()).isFIFO()
  let isBegun = !isPipe
  for (;;) {
    const block = Buffer.allocUnsafe(BLOCK_BYTES)
    const bytesRead = await handle.read(block, 0, block.length, null).then(
      (read) => read.bytesRead,
      (error: NodeJS.ErrnoException) => (error.code === 'EAGAIN' ? null : Promise.reject(error)),
    )
    if (bytesRead) yield block.subarray(0, bytesRead)
    else if (bytesRead === 0 && isBegun) return
    // Until a process has opened the other end, a pipe looks as if it had ended.
    else await pause(LOOK_MS)
    isBegun ||= bytesRead !== 0
  }
}

/** A file or a pipe of any length, such as an export. A UsageError where it cannot be read, and for a device of many bytes. */
export async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  if (file === '-') return yield* readably(file, process.stdin)
  await using handle = await readable(file, () => openInput(file))
  const found = await readable(file, () => handle.stat())
  const chunks = bytesOfHandle(handle)
  yield* found.isFile() || found.isFIFO()
    ? readably(file, chunks)
    : bounded(file, readably(file, chunks), MAX_DEVICE_BYTES)
}

/** The same, with UsageErrors. */
async function* readably(file: string, given: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = given[Symbol.asyncIterator]()
  const next = () => readable(file, () => chunks.next())
  for (let chunk = await next(); !chunk.done; chunk = await next()) yield chunk.value
}

async function* bounded(file: string, chunks: AsyncIterable<Buffer>, most: number): AsyncGenerator<Buffer> {
  let length = 0
  for await (const chunk of chunks) {
    length += chunk.length
    if (length > most) throw tooLong(file, most)
    yield chunk
  }
}

/** All of it. A UsageError where it cannot be read, or is too long for the memory. */
export async function readInput(file: string): Promise<Buffer> {
  try {
    return await readWhole(file)
  } catch (cause) {
    if (cause instanceof UsageError) throw cause
    throw new UsageError(`Cannot read ${file}: ${faultOf(cause as Error)}`, { cause })
  }
}

/** The same as text, and null where there is no such file. Throws what the system throws, and a UsageError for what is too long. */
export async function readIfThere(file: string): Promise<string | null> {
  return await readWhole(file).then(String, (error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' ? null : Promise.reject(error),
  )
}

async function readWhole(file: string): Promise<Buffer> {
  if (file === '-') return await collect(file, process.stdin)
  await using handle = await openInput(file)
  if ((await handle.stat()).size > MAX_BYTES) throw tooLong(file, MAX_BYTES)
  return await collect(file, bytesOfHandle(handle))
}

async function collect(file: string, chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const chunk of bounded(file, chunks, MAX_BYTES)) parts.push(chunk)
  return Buffer.concat(parts)
}

function tooLong(file: string, most: number) {
  return new UsageError(`Cannot read ${file}: it has more than ${most.toLocaleString('en')} bytes, or no end.`)
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
