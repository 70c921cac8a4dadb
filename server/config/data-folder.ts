// Makes the folder that DATA_DIR names.
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmdirSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** Makes the folder where it is missing. Throws with the name of the variable. */
export function makeDataFolder(path: string): void {
  try {
    makeFolder(resolve(path))
  } catch (cause) {
    throw new Error(
      `No folder can be made at ${path} (${(cause as Error).message}). Set DATA_DIR to a folder that this user may write.`,
      { cause },
    )
  }
}

/** Throws, with the name of the variable, if nothing can be made in the folder. Nothing is left of the check. */
export function checkDataFolder(path: string): void {
  const tried = join(path, `.tried-${randomBytes(8).toString('hex')}`)
  try {
    mkdirSync(tried)
    rmdirSync(tried)
  } catch (cause) {
    const { code = 'error' } = cause as NodeJS.ErrnoException
    throw new Error(
      `The folder of DATA_DIR, ${path}, cannot be written (${REASONS[code] ?? code}). Let this user write there, or set DATA_DIR to another folder.`,
      { cause },
    )
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'EACCES: permission denied',
  EPERM: 'EPERM: operation not permitted',
  EROFS: 'EROFS: the file system is read-only',
  ENOSPC: 'ENOSPC: no space is left on the device',
}

/** In place of the option `recursive`, which tries without end where a file system has no new folders, as /proc. */
function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
  if (dirname(path) !== path) makeFolder(dirname(path))
  try {
    mkdirSync(path)
  } catch (error) {
    // Another process may have made it in the meantime.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}
