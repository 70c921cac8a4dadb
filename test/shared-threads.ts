// One pool of threads for all houses of a test process. A thread loads and compiles what it runs when it starts, which costs more
// than all else of a house's first purchase.
import { openThreads, type Threads } from '../server/threads/pool.ts'

let pool: Threads | undefined

/** The same pool at each call. Its idle threads do not keep the process alive. */
export function sharedThreads(): Threads {
  pool ??= openThreads()
  return pool
}
