// A lock that one process holds on a file or folder, because two runs that count the same money separately would overspend
// it.
import { readFileSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'

/** Another process holds the lock. */
export class LockedError extends Error {
  override name = 'LockedError'
}

/**
 * Takes the lock at this path until it is disposed. The lock of a process that ended without releasing it, for example
 * after `kill -9`, is taken over. Throws a LockedError.
 */
export async function lock(path: string): Promise<AsyncDisposable> {
  if (await make(path)) return held(path)
  if (isAlive(readHolder(path))) throw locked(path)
  // Only one process at a time checks and removes: if two found the same dead holder, the slower one would remove the lock
  // that the faster one has just made.
  const guard = `${path}.takeover`
  if (!(await make(guard))) throw locked(guard)
  try {
    if (isAlive(readHolder(path))) throw locked(path)
    await rm(path, { force: true })
    if (!(await make(path))) throw locked(path)
    return held(path)
  } finally {
    await rm(guard, { force: true })
  }
}

/** False where the file is there already. */
async function make(path: string): Promise<boolean> {
  try {
    await using file = await open(path, 'wx', 0o600)
    await file.writeFile(String(process.pid))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function held(path: string): AsyncDisposable {
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) }
}

function locked(path: string): LockedError {
  const holder = readHolder(path)
  return new LockedError(
    `Another run uses this${holder ? ` (process ${holder})` : ''}. If there is none, remove ${path}.`,
  )
}

/** Null where the file holds no process id: its writer may be between making and writing it. */
function readHolder(path: string): number | null {
  try {
    const pid = Number(readFileSync(path, 'utf8'))
    return Number.isSafeInteger(pid) && pid > 0 ? pid : null
  } catch {
    return null
  }
}

function isAlive(pid: number | null): boolean {
  if (pid === null || pid === process.pid) return pid === null
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
