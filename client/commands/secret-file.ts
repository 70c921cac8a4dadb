// Secrets that the command line reads from files and writes to files. They are never arguments, which other users of the
// machine can list.
import { type FileHandle, open, rm } from 'node:fs/promises'
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

async function opened(file: string, what: string): Promise<FileHandle> {
  return open(file, 'r').catch((cause) => unusable(file, cause, what))
}

function unusable(file: string, cause: Error, what = 'the secret'): never {
  throw new UsageError(`Cannot read ${what} from ${file}: ${faultOf(cause)}`, { cause })
}

/**
 * Makes a new file of mode 600 before `obtain` is called, and writes the secret of what it returns. So a secret that is shown
 * once is not lost because the file cannot be made. An existing file is a UsageError. If `obtain` fails, or what it returns
 * holds no secret, no file is left.
 */
export async function saveSecret<T>(
  file: string,
  obtain: () => Promise<T>,
  secretOf: (value: T) => string | undefined,
): Promise<T> {
  await using handle = await open(file, 'wx', 0o600).catch((cause) => {
    const isThere = (cause as NodeJS.ErrnoException).code === 'EEXIST'
    const why = isThere
      ? `${file} exists and is kept as it is: a secret replaces no file. Name another file.`
      : `Cannot make ${file} for the secret: ${faultOf(cause)}`
    throw new UsageError(why, { cause })
  })
  let isKept = false
  try {
    const value = await obtain()
    const secret = secretOf(value)
    if (secret === undefined) return value
    await handle.writeFile(`${secret}\n`)
    await handle.sync()
    isKept = true
    return value
  } finally {
    if (!isKept) await rm(file)
  }
}
