// Replaces the files that are named on the command line, and checks beforehand what will be written.
import { constants } from 'node:fs'
import { access, lstat, open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from '../arguments.ts'
import { firstError } from './output.ts'

/** A file that cannot be read, or has other contents, is a UsageError. */
export async function readable<T>(file: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    if (cause instanceof SyntaxError || isOfDisk(cause))
      throw new UsageError(`Cannot use ${file}: ${faultOf(cause as Error)}`, { cause })
    throw cause
  }
}

/** Whether the error is of a file or a folder, such as a full disk. */
export function isOfDisk(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string'
}

/** The same as a sentence that names the folder in which it happened, or the file where that is elsewhere. */
export function diskFault(error: NodeJS.ErrnoException, folder: string): string {
  const isInside = error.path === undefined || resolve(error.path).startsWith(resolve(folder))
  return `Cannot use ${isInside ? folder : error.path}: ${faultOf(error)}.`
}

/** What is wrong with a file, without the system call and its arguments, which name a neighbour of the file. */
export function faultOf({ message }: Error): string {
  return message.replace(/, [a-z]+(?: '.*')?$/, '')
}

/**
 * Replaces the file completely, or not at all; mode 600 unless it says otherwise. What is no file, such as /dev/stdout, is written as
 * it is. A UsageError where it cannot be written.
 */
export async function replaceFile(path: string, bytes: Uint8Array | string, mode = 0o600): Promise<void> {
  await readable(path, async () => {
    if (await isSpecial(path)) return await writeFile(path, bytes)
    const next = neighbourOf(path)
    try {
      await writeSynced(next, bytes, mode)
      await rename(next, path)
    } catch (error) {
      await rm(next, { force: true })
      throw firstError(error)
    }
  })
}

/**
 * Writes a file that is not there yet, completely or not at all. A UsageError where it is, or cannot be written. It is made when its
 * bytes are there, so that a stop before that leaves none.
 */
export function writeNew(path: string, bytes: Uint8Array | string, mode = 0o666): Promise<void> {
  return readable(path, async () => {
    await using handle = await open(path, 'wx', mode)
    try {
      await handle.writeFile(bytes)
      await handle.sync()
    } catch (error) {
      await rm(path, { force: true })
      throw error
    }
  })
}

async function writeSynced(path: string, bytes: Uint8Array | string, mode: number): Promise<void> {
  await using handle = await open(path, 'w', mode)
  await handle.writeFile(bytes)
  await handle.chmod(mode)
  await handle.sync()
}

/**
 * Throws a UsageError if one of the files could not be replaced. Nothing is left of the check.
 * A command that may pay calls this, or one of the three below, for each file before it pays.
 */
export function checkReplaceable(...paths: (string | undefined)[]): Promise<void> {
  return checkEach(paths, tryReplacing)
}

/** The same for files that are written or continued in their place. */
export function checkWritable(...paths: (string | undefined)[]): Promise<void> {
  return checkEach(paths, tryWriting)
}

/** The same for files that must not be there yet. */
export function checkNew(...paths: (string | undefined)[]): Promise<void> {
  return checkEach(paths, async (path) => {
    await tryMaking(path)
    const isThere = await lstat(path).then(
      () => true,
      () => false,
    )
    if (isThere) throw Object.assign(new Error('it exists, and is not replaced'), { code: 'EEXIST', syscall: 'open' })
  })
}

/** The same for a folder in which files will be made. It need not be there yet. */
export function checkFolder(path: string): Promise<void> {
  return checkEach([path], async () => {
    let folder = resolve(path)
    while (!(await statOf(folder)) && folder !== dirname(folder)) folder = dirname(folder)
    await tryMaking(join(folder, '.countersign'))
  })
}

async function checkEach(paths: (string | undefined)[], attempt: (path: string) => Promise<void>): Promise<void> {
  if (paths.includes('')) throw new UsageError('The name of a file or folder is empty.')
  for (const path of paths) if (path !== undefined) await readable(path, () => attempt(path))
}

async function tryReplacing(path: string): Promise<void> {
  if (await isSpecial(path)) await access(path, constants.W_OK)
  else await tryMaking(path)
}

async function tryWriting(path: string): Promise<void> {
  const found = await statOf(path)
  if (found && !found.isFile()) return await tryReplacing(path)
  await using _file = await open(path, 'a')
  if (!found) await rm(path, { force: true })
}

/** Makes a neighbour of the file, with more bytes than a full disk takes, and removes it. */
async function tryMaking(path: string): Promise<void> {
  const next = neighbourOf(path)
  try {
    await writeFile(next, Buffer.alloc(TRIED_BYTES), { mode: 0o600 })
  } finally {
    await rm(next, { force: true })
  }
}

/** Whether there is something that is no file. Throws for a folder. */
async function isSpecial(path: string): Promise<boolean> {
  const found = await statOf(path)
  if (found?.isDirectory()) throw Object.assign(new Error('it is a folder'), { code: 'EISDIR', syscall: 'open' })
  return found !== null && !found.isFile()
}

/** Null where there is nothing. */
function statOf(path: string) {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
}

const neighbourOf = (path: string) => `${path}.${process.pid}.new`
const TRIED_BYTES = 4096
