// The tasks that the tests of the pool run in its threads. Two flags in shared memory: the first shows that a task has begun,
// the second lets it end.
import { getHeapStatistics } from 'node:v8'

export const echo = (value: unknown) => value

export const fail = () => {
  throw new TypeError('as it was thrown')
}

export function measure(bytes: Uint8Array) {
  return { length: bytes.length, sum: bytes.reduce((sum, byte) => sum + byte, 0) }
}

/** Sets the first flag, then blocks its thread until the second is set. */
export function hold(flags: Int32Array) {
  begin(flags)
  Atomics.wait(flags, 1, 0)
  return 'went on'
}

export function spin(flags: Int32Array) {
  begin(flags)
  for (;;) {
    // Blocks the thread until it is terminated.
  }
}

export function hoard() {
  const kept: number[][] = []
  for (;;) kept.push(new Array(100_000).fill(0.5))
}

export const heapLimit = () => getHeapStatistics().heap_size_limit

export const exit = () => process.exit(7)

export const environment = () => Object.keys(process.env)

function begin(flags: Int32Array) {
  Atomics.store(flags, 0, 1)
  Atomics.notify(flags, 0)
}
