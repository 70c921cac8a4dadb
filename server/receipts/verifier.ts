// Checks of many signatures, on threads of their own: a thousand take some sixty milliseconds.
import { AppError } from '../errors.ts'
import { openPool } from '../threads/thread.ts'
import type { SignedText } from './verifying-thread.ts'

export type { SignedText } from './verifying-thread.ts'

export interface Verifier extends AsyncDisposable {
  /** One answer for each. Throws AppError `capacity_exceeded` when too much is waiting already. */
  areSigned(texts: SignedText[]): Promise<boolean[]>
}

const MAX_WAITING = 64

export function openVerifier(): Verifier {
  const threads = openPool<SignedText[], boolean[]>({
    filename: new URL('./verifying-thread.ts', import.meta.url).href,
    minThreads: 0,
    maxThreads: 2,
    idleTimeout: 60_000,
    maxQueue: MAX_WAITING,
  })
  return {
    async areSigned(texts) {
      if (threads.queueSize >= MAX_WAITING)
        throw new AppError('capacity_exceeded', 'More is waiting to be verified than can be taken on.', {
          headers: { 'retry-after': '2' },
        })
      return threads.run(texts)
    },
    async [Symbol.asyncDispose]() {
      await threads.close()
    },
  }
}
