// What the tests of the pool run in its threads. Two flags in shared memory tell the test that a task has begun, and let
// it end one that waits.

export const echo = (value: unknown) => value

export const fail = () => {
  throw new TypeError('as it was thrown')
}

export function measure(bytes: Uint8Array) {
  return { length: bytes.length, sum: bytes.reduce((sum, byte) => sum + byte, 0) }
}

/** Says that it runs, then holds its thread until told to go on. */
export function hold(flags: Int32Array) {
  begin(flags)
  Atomics.wait(flags, 1, 0)
  return 'went on'
}

export function spin(flags: Int32Array) {
  begin(flags)
  for (;;) {
    // Nothing in here ever lets go of the thread.
  }
}

export function hoard() {
  const kept: number[][] = []
  for (;;) kept.push(new Array(100_000).fill(0.5))
}

export const exit = () => process.exit(7)

export const environment = () => Object.keys(process.env)

function begin(flags: Int32Array) {
  Atomics.store(flags, 0, 1)
  Atomics.notify(flags, 0)
}
