// Signatures of whole batches, on a thread of their own: they are the dearest part of a receipt by far, and no receipt's hash
// covers the signature of the one before, so all of a batch can be made while the event loop answers others.
import type { KeyObject } from 'node:crypto'
import type { Worker } from 'node:worker_threads'
import { startThread } from '../threads/thread.ts'
import { signText } from './format.ts'

/** Signs texts in order; each signature in hex. */
export type Sign = (texts: readonly string[], key: KeyObject) => Promise<string[]> | string[]

export interface Signing extends AsyncDisposable {
  sign: Sign
}

/** From so many on asking a thread costs less than signing here. */
const MANY = 6

export const signHere: Sign = (texts, key) => texts.map((text) => signText(text, key))

/** The thread starts with the first batch that is worth it, which does not wait for it. */
export function openSigning(): Signing {
  let thread: Thread | undefined
  return {
    sign(texts, key) {
      if (texts.length < MANY) return signHere(texts, key)
      if (!thread || thread.ended) thread = openThread()
      return thread.ready ? thread.sign(texts, key) : signHere(texts, key)
    },
    async [Symbol.asyncDispose]() {
      await thread?.worker.terminate()
    },
  }
}

interface Thread {
  worker: Worker
  ready: boolean
  ended: boolean
  sign(texts: readonly string[], key: KeyObject): Promise<string[]>
}

function openThread(): Thread {
  const worker = startThread(new URL('./signing-thread.ts', import.meta.url))
  const asked: PromiseWithResolvers<string[]>[] = []
  const thread: Thread = {
    worker,
    ready: false,
    ended: false,
    sign(texts, key) {
      const answer = Promise.withResolvers<string[]>()
      asked.push(answer)
      worker.postMessage({ texts, key })
      return answer.promise
    },
  }
  const end = (error: Error) => {
    thread.ended = true
    // Their batches do not commit; the next ones are signed by another thread.
    for (const { reject } of asked.splice(0)) reject(error)
  }
  worker.unref()
  worker.once('online', () => {
    thread.ready = true
  })
  worker.on('message', (signatures: string[]) => asked.shift()?.resolve(signatures))
  worker.once('error', end)
  worker.once('exit', (code) => end(new Error(`the signing thread ended with ${code}`)))
  return thread
}
