// The only wrapper for thread pools. Work that would block the event loop runs here. Work that waits for a thread is served in
// the order of lanes.ts, and a limit on the time of a task counts from when a thread begins it.
import { getCompileCacheDir } from 'node:module'
import { availableParallelism } from 'node:os'
import { dirname } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Piscina } from 'piscina'
import { buildLanes, type Lane, OWN_LANE } from './lanes.ts'

export type { Lane } from './lanes.ts'

/** A pool of threads. Each caller names its own thread file and a function exported by it. */
export interface Threads extends AsyncDisposable {
  /**
   * Runs the function `name` of the module `file` in a thread. Argument and result are structured clones. The caller states the
   * type of the result: it is what the function returns. In a pool with `quickMs` a task may be ended and begun again, so
   * its function must have no effect beside its result.
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
  /** Covers waiting and running. */
  signal?: AbortSignal | undefined
  /** Milliseconds that the task may run in its thread; waiting and the start of the thread and its module do not count. */
  runningMs?: number
  /** Milliseconds that the task may wait for a thread. */
  waitingMs?: number
  /** For whom the task is done; by default, for the service itself. */
  lane?: Lane | undefined
  /** Whether the task is known to be slow before it begins: it then waits for one of the threads that slow tasks may hold. */
  isSlow?: boolean
}

/**
 * `aborted` and `timed_out`: by the caller's signal. `ran_too_long`: by `runningMs`. `waited`: by `waitingMs`.
 * `out_of_memory`, `exited`: the task's thread died. `busy`: too many tasks wait. `closed`: the pool was disposed. The
 * task's own thread is lost, and the pool replaces it. Only where a thread that is out of memory asks for more than 16 MB at
 * once, V8 ends the process: no function that runs in a thread may make an array of two million elements (test/readers.test.ts).
 */
export type ThreadErrorCode =
  | 'aborted'
  | 'timed_out'
  | 'ran_too_long'
  | 'waited'
  | 'out_of_memory'
  | 'exited'
  | 'busy'
  | 'closed'

export class ThreadError extends Error {
  override name = 'ThreadError'
  readonly code: ThreadErrorCode

  constructor(code: ThreadErrorCode, cause?: unknown) {
    super(`Thread task: ${code.replaceAll('_', ' ')}`, { cause })
    this.code = code
  }
}

/** Whether the task itself used more time or memory than it may. */
export const isExhausted = (error: unknown): boolean =>
  error instanceof ThreadError && (error.code === 'out_of_memory' || error.code === 'ran_too_long')

/** Whether no thread was free for the task. This says nothing about the task: it may be run later. */
export const isThreadShortage = (error: unknown): boolean =>
  error instanceof ThreadError && (error.code === 'waited' || error.code === 'busy')

/** What callers of work on a page choose for each page. */
export type PageOptions = Pick<RunOptions, 'signal' | 'lane'>

/** The limits on work on a page. The limits on size, depth and nodes end it within about one second. */
export const PAGE_LIMITS = { runningMs: 20_000, waitingMs: 30_000 } as const

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
  /**
   * A task that has run for so many milliseconds is slow. Slow tasks may hold half of the threads: while other tasks wait, a
   * further one is ended, and begins again when one of those threads is free. By default no task is slow.
   */
  quickMs?: number
  /** Gets the error of a thread that died while idle. The pool replaces the thread. */
  onLoss?: (error: unknown) => void
}

/** A task from its call to its end. */
interface Entry {
  task: { file: URL; name: string; argument: unknown }
  lane: Lane
  limits: Pick<RunOptions, 'runningMs' | 'waitingMs'>
  isSlow: boolean
  /** Whether its caller has an answer. */
  isOver: boolean
  /** Set while a thread is its own. */
  run: Run | null
  /** Ends the waiting. */
  patience: NodeJS.Timeout | undefined
  resolve: (result: unknown) => void
  reject: (error: unknown) => void
}

/** One run of a task; a slow task may have two. */
interface Run {
  stop: AbortController
  /** Why the pool has stopped it. */
  stopped: 'ran_too_long' | 'begins_again' | null
  /** Whether it has run for `quickMs`. */
  isOverdue: boolean
}

/** Opens a pool. Disposing ends the tasks that run and those that wait with a ThreadError `closed`. */
export function openThreads({
  minThreads = 1,
  maxThreads = Math.min(4, Math.max(2, availableParallelism() - 1)),
  maxWaiting = MAX_WAITING,
  quickMs,
  onLoss = () => {},
}: ThreadsOptions = {}): Threads {
  const half = Math.max(1, Math.floor(maxThreads / 2))
  const lanes = buildLanes<Entry>()
  const running = new Set<Entry>()
  const pool = openPool({ minThreads, maxThreads, onLoss })
  const closing = new AbortController()

  const count = (has: (entry: Entry) => boolean) => [...running].filter(has).length
  const slowHasRoom = () => count(({ isSlow }) => isSlow) < half
  const freeHasRoom = () => count(({ lane }) => lane.isFree) < half
  const mayRun = (entry: Entry) => (!entry.isSlow || slowHasRoom()) && (!entry.lane.isFree || freeHasRoom())

  /** Gives free threads to waiting tasks, and takes threads from slow tasks while others wait. */
  function advance() {
    while (running.size < maxThreads) {
      const next = lanes.take(mayRun)
      if (!next) return
      void begin(next)
    }
    for (const entry of running) {
      const { run } = entry
      if (!run?.isOverdue || run.stopped || entry.isSlow) continue
      if (slowHasRoom()) {
        entry.isSlow = true
      } else if (lanes.holds((other) => !other.isSlow && (!other.lane.isFree || entry.lane.isFree || freeHasRoom()))) {
        run.stopped = 'begins_again'
        run.stop.abort()
      }
    }
  }

  function wait(entry: Entry) {
    const { waitingMs } = entry.limits
    if (waitingMs !== undefined)
      entry.patience = setTimeout(() => leave(entry, new ThreadError('waited')), waitingMs).unref()
    lanes.add(entry, entry.lane)
  }

  /** The caller has its answer at once: what the thread still does is of no use. */
  function leave(entry: Entry, error: ThreadError) {
    entry.isOver = true
    clearTimeout(entry.patience)
    entry.reject(error)
    lanes.remove(entry, entry.lane)
    entry.run?.stop.abort()
  }

  async function begin(entry: Entry) {
    const run: Run = { stop: new AbortController(), stopped: null, isOverdue: false }
    clearTimeout(entry.patience)
    entry.run = run
    running.add(entry)
    const ending = new DisposableStack()
    const after = (ms: number | undefined, act: () => void) => {
      if (ms !== undefined) ending.adopt(setTimeout(act, ms).unref(), clearTimeout)
    }
    const onBegun = () => {
      ending.defer(lanes.begin(entry.lane))
      after(entry.limits.runningMs, () => {
        run.stopped ??= 'ran_too_long'
        run.stop.abort()
      })
      after(quickMs, () => {
        run.isOverdue = true
        advance()
      })
    }
    try {
      entry.resolve(await pool.run(entry.task, run.stop.signal, onBegun))
    } catch (error) {
      if (run.stopped === 'begins_again' && !entry.isOver) {
        entry.isSlow = true
        wait(entry)
      } else entry.reject(run.stopped === 'ran_too_long' ? new ThreadError('ran_too_long', error) : classify(error))
    } finally {
      entry.run = null
      running.delete(entry)
      ending.dispose()
      advance()
    }
  }

  return {
    async run<T>(file: URL, name: string, argument: unknown, options: RunOptions = {}): Promise<T> {
      const { signal, lane = OWN_LANE, isSlow = false, ...limits } = options
      if (closing.signal.aborted) throw new ThreadError('closed')
      if (signal?.aborted) throw endedBy(signal)
      if (lanes.size >= maxWaiting) throw new ThreadError('busy')
      const { promise, ...answers } = Promise.withResolvers<unknown>()
      const task = { file, name, argument }
      const entry: Entry = {
        ...{ task, lane, limits, ...answers },
        ...{ isSlow, isOver: false, run: null, patience: undefined },
      }
      const close = () => leave(entry, new ThreadError('closed'))
      const abort = () => signal && leave(entry, endedBy(signal))
      closing.signal.addEventListener('abort', close, { once: true })
      signal?.addEventListener('abort', abort, { once: true })
      wait(entry)
      advance()
      try {
        // Unchecked cast: the function is in another module, and the caller states what it returns.
        return (await promise) as T
      } finally {
        closing.signal.removeEventListener('abort', close)
        signal?.removeEventListener('abort', abort)
      }
    },
    get queueSize() {
      return lanes.size
    },
    get threadCount() {
      return pool.threadCount
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      await pool.destroy()
    },
  }
}

function endedBy({ reason }: AbortSignal): ThreadError {
  return new ThreadError(reason?.name === 'TimeoutError' ? 'timed_out' : 'aborted', reason)
}

/**
 * One and a half times what the largest page within the limits of the parser needs. This limits only the heap: ArrayBuffers are outside
 * it, so each task limits its own.
 */
export const THREAD_HEAP = { maxOldGenerationSizeMb: 160, maxYoungGenerationSizeMb: 32 } as const

/** The threads themselves. Never more tasks are handed over than there may be threads, so none waits for another here. */
function openPool(options: Required<Pick<ThreadsOptions, 'minThreads' | 'maxThreads' | 'onLoss'>>) {
  // The heap of this process already exists. Its flags would also apply to the heaps of threads and override their own
  // limits.
  for (const flag of ['--max-old-space-size=0', '--max-semi-space-size=0', '--min-semi-space-size=0'])
    setFlagsFromString(flag)
  const compiled = getCompileCacheDir()
  // Node makes a folder for its version inside the given folder.
  const compiledFolder = compiled && dirname(compiled)
  const pool = new Piscina<unknown, unknown>({
    // The environment holds the secrets of the process, and its flags may hold a debugger's port. A thread gets only the
    // folder of Node's compile cache, because compilation takes most of its start.
    env: compiledFolder ? { NODE_COMPILE_CACHE: compiledFolder } : {},
    execArgv: [],
    filename: new URL('./thread.ts', import.meta.url).href,
    name: 'call',
    // The service does not read piscina's own histograms.
    recordTiming: false,
    minThreads: options.minThreads,
    maxThreads: options.maxThreads,
    idleTimeout: 60_000,
    // A task that is killed takes its thread along, so no other task may share it.
    concurrentTasksPerWorker: 1,
    // Threads wait for messages and not in Atomics.wait: a thread that waits there is sometimes not ended by `terminate`, and
    // then the pool, and with it the process, would not close.
    atomics: 'disabled',
    resourceLimits: THREAD_HEAP,
  })
  pool.on('error', options.onLoss)
  return {
    /** @param onBegun called when the thread and the module are loaded, and the function begins */
    async run({ file, name, argument }: Entry['task'], signal: AbortSignal, onBegun: () => void): Promise<unknown> {
      const begun = new Int32Array(new SharedArrayBuffer(4))
      const begin = Atomics.waitAsync(begun, 0, 0)
      let isOver = false
      if (begin.async) void begin.value.then(() => isOver || onBegun())
      try {
        return await pool.run({ file: file.href, name, argument, begun }, { signal })
      } finally {
        isOver = true
        // The wait of a task that never began ends here.
        Atomics.notify(begun, 0)
      }
    },
    get threadCount() {
      return pool.threads.length
    },
    destroy: () => pool.destroy(),
  }
}

function classify(error: unknown) {
  if (!(error instanceof Error)) return error
  if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY') return new ThreadError('out_of_memory', error)
  if (error.message.startsWith('worker exited with code')) return new ThreadError('exited', error)
  return error
}
