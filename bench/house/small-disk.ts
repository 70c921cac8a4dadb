// A disk in memory that is small enough to be filled, mounted on a folder if this user may mount.
import { execFile, spawnSync } from 'node:child_process'
import { open, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface SmallDisk extends AsyncDisposable {
  /** Takes all free space. */
  fill(): Promise<void>
  /** Frees what `fill` took. */
  free(): Promise<void>
}

/** Enough for a cluster, the log of its writes and some minutes of purchases. */
const MEGABYTES = 2560
/** The share that is taken at once. */
const MOST = 0.98
const PIECE = Buffer.alloc(4096)

/** Null if this user may not mount. */
export async function openSmallDisk(folder: string): Promise<SmallDisk | null> {
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${MEGABYTES}m,mode=0711`, 'countersign-house', folder])
  } catch {
    return null
  }
  const unmount = () => void spawnSync('umount', ['--lazy', folder])
  process.once('exit', unmount)
  const ballast = join(folder, 'ballast')
  return {
    async fill() {
      const { bavail, bsize } = await statfs(folder)
      await run('fallocate', ['--length', String(Math.floor(bavail * MOST) * bsize), ballast])
      // Other programs write at the same time, so the rest is taken in small pieces.
      const file = await open(ballast, 'a')
      try {
        while (await file.appendFile(PIECE).then(always, isNotFull));
      } finally {
        await file.close()
      }
    },
    free: () => rm(ballast, { force: true }),
    async [Symbol.asyncDispose]() {
      process.off('exit', unmount)
      await run('umount', ['--lazy', folder])
    },
  }
}

const always = () => true

function isNotFull(error: unknown): boolean {
  if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return false
  throw error
}
