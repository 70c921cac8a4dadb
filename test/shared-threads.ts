// One pool of threads for all services of a test process. A thread loads and compiles its code when it starts, which takes
// longer than the rest of a service's first purchase.
import { openThreads, type Threads } from '../server/threads/pool.ts'

let pool: Threads | undefined

/** The same pool at each call. Its idle threads do not keep the process alive. */
export function sharedThreads(): Threads {
  pool ??= openThreads()
  return pool
}
