// Work of threads, done in the process that asks for it: for processes that a test starts to kill them. Their pages are a line long, and a
// thread with its code would cost such a process a sixth of what it takes.
import type { Threads } from '../server/threads/pool.ts'
import { call } from '../server/threads/thread.ts'

/** Without limits, and in the order of the calls. */
export const NO_THREADS: Threads = {
  run: <T>(file: URL, name: string, argument: unknown) =>
    call({ file: file.href, name, argument: structuredClone(argument) }) as Promise<T>,
  queueSize: 0,
  threadCount: 0,
  [Symbol.asyncDispose]: async () => {},
}
