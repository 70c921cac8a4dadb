// Ed25519 signatures of many texts at a time, made and checked on threads: a batch of the chain is signed while the event
// loop serves others, and a thousand checks take some sixty milliseconds.
import type { KeyObject } from 'node:crypto'
import { AppError } from '../errors.ts'
import { openThreads, ThreadError, type Threads } from '../threads/pool.ts'
import { signText } from './format.ts'
import type { SignedText, SigningTask } from './signature-thread.ts'

const THREAD = new URL('./signature-thread.ts', import.meta.url)

/** Signs texts; each signature in hex, in the order of the texts. */
export type Sign = (texts: readonly string[], key: KeyObject) => Promise<string[]> | string[]

export interface Signing extends AsyncDisposable {
  sign: Sign
}

/** From this number of texts on, a thread costs the event loop less than signing here. */
const THREAD_PAYS = 6

/** Signs on the event loop. */
export const signHere: Sign = (texts, key) => texts.map((text) => signText(text, key))

/**
 * Signs large batches on a thread of its own. No receipt's hash covers the signature of the receipt before, so all of a batch
 * can be signed at once. The thread starts with the first large batch; until it is ready, batches are signed here, because
 * each is signed while the chain's head is locked. A batch whose thread dies fails and does not commit.
 */
export function openSigning(): Signing {
  let threads: Threads | undefined
  let isReady = false
  let preparing: Promise<void> | undefined

  function run(task: SigningTask) {
    threads ??= openThreads({ maxThreads: 1 })
    return threads.run<string[]>(THREAD, 'signTexts', task)
  }

  function prepare(key: KeyObject) {
    const ready = () => {
      isReady = true
    }
    preparing ??= run({ texts: [], key })
      // A failure shows again with the next large batch, which tries again.
      .then(ready, () => {})
      .finally(() => {
        preparing = undefined
      })
  }

  return {
    sign(texts, key) {
      if (texts.length < THREAD_PAYS) return signHere(texts, key)
      if (!isReady) {
        prepare(key)
        return signHere(texts, key)
      }
      return run({ texts, key }).catch((error) => {
        isReady = false
        throw error
      })
    },
    async [Symbol.asyncDispose]() {
      await threads?.[Symbol.asyncDispose]()
      await preparing
    },
  }
}

export interface Verifier extends AsyncDisposable {
  /** One answer for each text. Throws AppError `capacity_exceeded` when too many calls wait. */
  areSigned(texts: readonly SignedText[]): Promise<boolean[]>
}

const MAX_WAITING = 64

/** Checks signatures on threads that start with the first call. They are not the signing thread: checks must not delay the chain. */
export function openVerifier(): Verifier {
  const threads = openThreads({ minThreads: 0, maxThreads: 2, maxWaiting: MAX_WAITING })
  return {
    async areSigned(texts) {
      try {
        return await threads.run<boolean[]>(THREAD, 'areSigned', texts)
      } catch (error) {
        if (!(error instanceof ThreadError) || error.code !== 'busy') throw error
        throw new AppError('capacity_exceeded', 'More is waiting to be verified than can be taken on.', {
          headers: { 'retry-after': '2' },
        })
      }
    },
    [Symbol.asyncDispose]: () => threads[Symbol.asyncDispose](),
  }
}
