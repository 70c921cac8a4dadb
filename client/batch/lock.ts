// A lock that one process holds on a file or folder, because two runs that count the same money separately would overspend
// it.
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'

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
  if (isHeld(path)) throw locked(path)
  // Only one process at a time checks and removes: if two found the same dead holder, the slower one would remove the lock
  // that the faster one has just made. The guard is a lock too, so it is taken over where its holder was killed.
  const guard = `${path}.takeover`
  if (taking.has(guard)) throw locked(path)
  taking.add(guard)
  try {
    await using _guard = await lock(guard)
    if (isHeld(path)) throw locked(path)
    rmSync(path, { force: true })
    if (!(await make(path))) throw locked(path)
    return held(path)
  } finally {
    taking.delete(guard)
  }
}

/** Throws a LockedError where another process holds the lock at this path. Takes nothing: it may be taken right after. */
export function checkUnlocked(path: string): void {
  if (existsSync(path) && isHeld(path)) throw locked(path)
}

/** The guards that this process takes or holds. One with its number that is not among them was left by a process that ended. */
const taking = new Set<string>()

/**
 * The locks that this process holds. One with its number that is not among them was left by a process that ended. A lock is made or removed
 * in the same step in which it is added here or deleted, or another call would see it in between and take it over.
 */
const own = new Set<string>()

/** The last one of this process that holds the lock, or waits for it. */
const queues = new Map<string, Promise<unknown>>()

/** The same, but waits for other holders, of this process too. Throws a LockedError after a minute, and what the signal says. */
export async function waitForLock(path: string, signal?: AbortSignal): Promise<AsyncDisposable> {
  const name = resolve(path)
  const before = queues.get(name)
  let leave = () => {}
  const turn = new Promise<void>((done) => {
    leave = done
  })
  const queue = Promise.resolve(before).then(() => turn)
  queues.set(name, queue)
  const free = () => {
    leave()
    if (queues.get(name) === queue) queues.delete(name)
  }
  try {
    const end = Date.now() + LONGEST_WAIT_MS
    const late = new LockedError(`Another run uses ${path}.`)
    if (before) await settledBy(before, end, late, signal)
    for (;;) {
      signal?.throwIfAborted()
      const held = await lock(path).catch((error: Error) => {
        if (!(error instanceof LockedError) || Date.now() > end) throw error
      })
      if (held) return { [Symbol.asyncDispose]: async () => held[Symbol.asyncDispose]().then(free, free) }
      await new Promise((later) => setTimeout(later, RETRY_MS))
    }
  } catch (error) {
    free()
    throw error
  }
}

/** Rejects at the end of the time, or when the signal aborts. */
function settledBy(work: Promise<unknown>, end: number, late: Error, signal?: AbortSignal): Promise<void> {
  return new Promise((done, reject) => {
    const stop = () => reject(signal?.reason)
    const timer = setTimeout(() => reject(late), Math.max(0, end - Date.now()))
    signal?.addEventListener('abort', stop, { once: true })
    void work.then(() => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
      done()
    })
  })
}

const LONGEST_WAIT_MS = 60_000
const RETRY_MS = 100

/** False where the file is there already. The file names its holder from the first moment, whenever the process is killed. */
async function make(path: string): Promise<boolean> {
  const draft = `${path}.${process.pid}.${++count}`
  try {
    await writeFile(draft, String(process.pid), { mode: 0o600 })
    linkSync(draft, path)
    own.add(resolve(path))
    return true
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    if (NO_LINKS.has(code)) return makeUnlinked(path)
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

/** Where the file system has no links: a process that is killed in between leaves a lock of nobody. */
function makeUnlinked(path: string): boolean {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx', mode: 0o600 })
    own.add(resolve(path))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

let count = 0
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

function held(path: string): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      rmSync(path, { force: true })
      own.delete(resolve(path))
    },
  }
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

function isHeld(path: string): boolean {
  const pid = readHolder(path)
  return pid === process.pid ? own.has(resolve(path)) : pid === null || isAlive(pid)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
