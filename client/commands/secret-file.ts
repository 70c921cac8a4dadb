// Secrets that the command line reads from files. They are never arguments, which other users of the machine can list.
import type { FileHandle } from 'node:fs/promises'
import { UsageError } from '../arguments.ts'
import { faultOf } from './files.ts'
import { bytesOfHandle, openInput } from './input-file.ts'

/** Permission bits of all but the owner. */
const OTHERS = 0o077

/** No secret is as long. The file may be one without an end, named by mistake. */
const MAX_BYTES = 65_536

/**
 * Reads a secret: `parse` gets it without the white space around it, and throws a UsageError for what is none. A file that others may
 * read or write, an empty one, and one that cannot be read are UsageErrors too. Windows has no such permission bits; there they are
 * not checked.
 */
export async function readSecretFile<T>(
  file: string,
  what: string,
  parse: (secret: string) => T | Promise<T>,
): Promise<T> {
  await using handle = await opened(file, what)
  // The mode of the open file, so that no other file can replace it after this check.
  const found = await handle.stat()
  if (found.isDirectory()) throw new UsageError(`Cannot read ${what} from ${file}: it is a folder`)
  const text = await readStart(handle).catch((cause) => unusable(file, cause))
  if (text === null) throw new UsageError(`${file} is too long to be ${what}.`)
  const secret = text.trim()
  if (secret === '') throw new UsageError(`${file} is empty, where ${what} should be.`)
  // Before the mode: another file, named by mistake, need not be closed to others.
  const parsed = await parse(secret)
  const mode = found.mode & 0o777
  if (mode & OTHERS && process.platform !== 'win32')
    throw new UsageError(
      `${file} holds ${what}, and other users may use it (mode ${mode.toString(8)}). Close it: chmod 600 ${file}`,
    )
  return parsed
}

/** Null for more than a secret may have. */
async function readStart(handle: FileHandle): Promise<string | null> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of bytesOfHandle(handle)) {
    length += part.length
    if (length > MAX_BYTES) return null
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

/** Throws a UsageError for what is no recovery token. It is never quoted: it may be another secret. */
export function checkRecoveryToken(file: string, token: string): string {
  if (/^crt_\S+$/.test(token)) return token
  throw new UsageError(`${file} does not hold a recovery token, which begins with crt_.`)
}

async function opened(file: string, what: string): Promise<FileHandle> {
  return openInput(file).catch((cause) => unusable(file, cause, what))
}

function unusable(file: string, cause: Error, what = 'the secret'): never {
  throw new UsageError(`Cannot read ${what} from ${file}: ${faultOf(cause)}`, { cause })
}
