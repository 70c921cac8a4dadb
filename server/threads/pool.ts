// The only wrapper for thread pools. Work that would block the event loop runs here.
import { getCompileCacheDir } from 'node:module'
import { availableParallelism } from 'node:os'
import { dirname } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import type { Transferable } from 'node:worker_threads'
import { Piscina } from 'piscina'

/** A pool of threads. Each caller names its own thread file and a function exported by it. */
export interface Threads extends AsyncDisposable {
  /**
   * Runs the function `name` of the module `file` in a thread. Argument and result are structured clones; what `transfer`
   * lists moves instead and is detached here once the task has a thread. The signal covers waiting and running. The caller
   * states the type of the result: it is what the function returns.
   * Rejects with a ThreadError when the task was ended. What the function itself throws arrives as a clone that has lost
   * its class and its own properties: expected failures belong in the result.
   */
  run<T>(file: URL, name: string, argument: unknown, options?: RunOptions): Promise<T>
  /** Tasks that wait for a thread. */
  readonly queueSize: number
  /** Threads that are alive, idle ones included. */
  readonly threadCount: number
}

export interface RunOptions {
  transfer?: Transferable[]
  signal?: AbortSignal
}

/**
 * `aborted` and `timed_out`: by the caller's signal. `out_of_memory`, `exited`: the task's thread died. `busy`: too many tasks
 * wait. `closed`: the pool was disposed. At most the task's own thread is lost, and the pool replaces it.
 */
export type ThreadErrorCode = 'aborted' | 'timed_out' | 'out_of_memory' | 'exited' | 'busy' | 'closed'

export class ThreadError extends Error {
  override name = 'ThreadError'
  readonly code: ThreadErrorCode

  constructor(code: ThreadErrorCode, cause?: unknown) {
    super(`Thread task: ${code.replaceAll('_', ' ')}`, { cause })
    this.code = code
  }
}

const MAX_WAITING = 1000

export interface ThreadsOptions {
  /** Threads that stay alive without work; 1 by default. The others end after a minute without work. */
  minThreads?: number
  /**
   * 2 to 4 by default, depending on the number of cores. Each may take up to its heap limit, so memory bounds this
   * number.
   */
  maxThreads?: number
  /** Tasks that may wait for a thread, MAX_WAITING by default. Beyond it `run` rejects with `busy`. */
  maxWaiting?: number
  /** Gets the error of a thread that died while idle. The pool replaces the thread. */
  onLoss?: (error: unknown) => void
}

/** Opens a pool. Disposing ends the tasks that run and those that wait with a ThreadError `closed`. */
export function openThreads({
  minThreads = 1,
  maxThreads = Math.min(4, Math.max(2, availableParallelism() - 1)),
  maxWaiting = MAX_WAITING,
  onLoss = () => {},
}: ThreadsOptions = {}): Threads {
  // The heap of this process already exists. Its flags would also apply to the heaps of threads and override their own
  // limits.
  for (const flag of ['--max-old-space-size=0', '--max-semi-space-size=0']) setFlagsFromString(flag)
  const compiled = getCompileCacheDir()
  // Node makes a folder for its version inside the given folder.
  const compiledFolder = compiled && dirname(compiled)
  const pool = new Piscina<unknown, unknown>({
    // The environment holds the secrets of the process, and its flags may hold a debugger's port. A thread gets only the
    // folder of Node's compile cache, because compilation takes most of its start.
    env: compiledFolder ? { NODE_COMPILE_CACHE: compiledFolder } : {},
    execArgv: [],
    // The service does not read piscina's own histograms.
    recordTiming: false,
    minThreads,
    maxThreads,
    idleTimeout: 60_000,
    // A task that is killed takes its thread along, so no other task may share it.
    concurrentTasksPerWorker: 1,
    // Threads wait for messages and not in Atomics.wait: a thread that waits there is sometimes not ended by `terminate`, and
    // then the pool, and with it the process, would not close.
    atomics: 'disabled',
    // One and a half times what the largest page within the limits of the parser needs. This limits only the heap:
    // ArrayBuffers are outside it, so each task limits its own.
    resourceLimits: { maxOldGenerationSizeMb: 160, maxYoungGenerationSizeMb: 32 },
  })
  pool.on('error', onLoss)
  const closing = new AbortController()

  return {
    async run<T>(file: URL, name: string, argument: unknown, { transfer, signal }: RunOptions = {}): Promise<T> {
      if (closing.signal.aborted) throw new ThreadError('closed')
      // piscina's own `maxQueue` does not count tasks that carry a signal, and here all do.
      if (pool.queueSize >= maxWaiting) throw new ThreadError('busy')
      const ended = signal ? AbortSignal.any([closing.signal, signal]) : closing.signal
      try {
        const options = { filename: file.href, name, transferList: transfer, signal: ended }
        // Unchecked cast: the function is in another module, and the caller states what it returns.
        return (await pool.run(argument, options)) as T
      } catch (error) {
        throw classify(error, ended, closing.signal)
      }
    },
    get queueSize() {
      return pool.queueSize
    },
    get threadCount() {
      return pool.threads.length
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      await pool.destroy()
    },
  }
}

function classify(error: unknown, ended: AbortSignal, closing: AbortSignal) {
  if (!(error instanceof Error)) return error
  if (closing.aborted) return new ThreadError('closed', error)
  if (error.name === 'AbortError' && ended.aborted) {
    return new ThreadError(ended.reason?.name === 'TimeoutError' ? 'timed_out' : 'aborted', error)
  }
  if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY') return new ThreadError('out_of_memory', error)
  if (error.message.startsWith('worker exited with code')) return new ThreadError('exited', error)
  return error
}
