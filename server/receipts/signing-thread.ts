// Signs batches of texts, in the order they come (see signing.ts).
import { type KeyObject, sign } from 'node:crypto'
import { parentPort } from 'node:worker_threads'

interface Batch {
  texts: string[]
  key: KeyObject
}

// A batch that cannot be read ends the thread, and so fails: unanswered it would hold up all that come after it.
parentPort?.once('messageerror', (error) => {
  throw error
})
parentPort?.on('message', ({ texts, key }: Batch) => {
  parentPort?.postMessage(texts.map((text) => sign(null, Buffer.from(text), key).toString('hex')))
})
