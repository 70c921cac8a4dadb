// Secrets that the command line reads from files. They are never arguments, which other users of the machine can list.
import { type FileHandle, open } from 'node:fs/promises'
import { UsageError } from '../arguments.ts'
import { faultOf } from './files.ts'

/** Permission bits of all but the owner. */
const OTHERS = 0o077

/**
 * Reads a secret without the white space around it. A file that others may read or write, an empty one, and one that cannot
 * be read are UsageErrors. Windows has no such permission bits; there they are not checked.
 */
export async function readSecretFile(file: string, what: string): Promise<string> {
  await using handle = await opened(file, what)
  // The mode of the open file, so that no other file can replace it after this check.
  const found = await handle.stat()
  if (found.isDirectory()) throw new UsageError(`Cannot read ${what} from ${file}: it is a folder`)
  const mode = found.mode & 0o777
  if (mode & OTHERS && process.platform !== 'win32')
    throw new UsageError(
      `${file} holds ${what}, and other users may use it (mode ${mode.toString(8)}). Close it: chmod 600 ${file}`,
    )
  const secret = (await handle.readFile('utf8').catch((cause) => unusable(file, cause))).trim()
  if (secret === '') throw new UsageError(`${file} is empty, where ${what} should be.`)
  return secret
}

/** Throws a UsageError for what is no recovery token. It is never quoted: it may be another secret. */
export function checkRecoveryToken(file: string, token: string): string {
  if (/^crt_\S+$/.test(token)) return token
  throw new UsageError(`${file} does not hold a recovery token, which begins with crt_.`)
}

async function opened(file: string, what: string): Promise<FileHandle> {
  return open(file, 'r').catch((cause) => unusable(file, cause, what))
}

function unusable(file: string, cause: Error, what = 'the secret'): never {
  throw new UsageError(`Cannot read ${what} from ${file}: ${faultOf(cause)}`, { cause })
}
