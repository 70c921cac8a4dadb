import { availableParallelism } from 'node:os'
import type { Transferable } from 'node:worker_threads'
import { openPool } from './thread.ts'

/**
 * The one pool of threads of a worker process: parsing, normalization, hashing and scoring of page-sized data run here,
 * so that the event loop is never held up. Each caller names its own thread file and a function exported by it.
 */
export interface Threads extends AsyncDisposable {
  /**
   * Runs the function `name` of the module `file` in a thread. Argument and result are structured clones; what `transfer`
   * lists moves instead and is detached here once the task has a thread. The signal covers waiting and running.
   * Rejects with a ThreadError when the task came to no end of its own. What the function itself throws arrives as a
   * clone that has lost its class and its own properties: expected failures belong into the result.
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

/** Whichever it was, at most the task's own thread is lost, and the pool has replaced it. */
export type ThreadErrorCode = 'aborted' | 'timed_out' | 'out_of_memory' | 'exited' | 'busy' | 'closed'

export class ThreadError extends Error {
  override name = 'ThreadError'
  readonly code: ThreadErrorCode

  constructor(code: ThreadErrorCode, cause?: unknown) {
    super(`Thread task: ${code.replaceAll('_', ' ')}`, { cause })
    this.code = code
  }
}

/**
 * `maxThreads` is 2 to 4 by default, after the cores. Each may take up to its heap limit, so memory is what bounds it.
 * A thread that dies while idle is replaced and reported to `onLoss`.
 */
export function openThreads(options: { maxThreads?: number; onLoss?: (error: unknown) => void } = {}): Threads {
  const pool = buildPool(options.maxThreads ?? Math.min(4, Math.max(2, availableParallelism() - 1)))
  pool.on('error', (error: unknown) => options.onLoss?.(error))
  const closing = new AbortController()

  return {
    async run<T>(file: URL, name: string, argument: unknown, { transfer, signal }: RunOptions = {}): Promise<T> {
      if (closing.signal.aborted) throw new ThreadError('closed')
      if (pool.queueSize >= longestQueue) throw new ThreadError('busy')
      const ended = signal ? AbortSignal.any([closing.signal, signal]) : closing.signal
      try {
        const options = { filename: file.href, name, transferList: transfer, signal: ended }
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

function buildPool(maxThreads: number) {
  return openPool<unknown, unknown>({
    // One thread is always warm; the others go after a minute without work and come back within 100 ms.
    minThreads: 1,
    maxThreads,
    idleTimeout: 60_000,
    // A task killed takes its thread along: no other task may share it.
    concurrentTasksPerWorker: 1,
    // Half as much again as the largest page within the limits of the parser needs. Bounds the heap only: ArrayBuffers
    // lie outside it, so each task bounds its own.
    resourceLimits: { maxOldGenerationSizeMb: 160, maxYoungGenerationSizeMb: 32 },
  })
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

/** piscina's own `maxQueue` does not count tasks that carry a signal, and here all do. */
const longestQueue = 1000
