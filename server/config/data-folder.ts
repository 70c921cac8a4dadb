// Makes the folder that DATA_DIR names.
import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

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
