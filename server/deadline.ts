// A deadline that can be cancelled when the work has ended in time. A signal of `AbortSignal.timeout` cannot be cancelled:
// it would create its error, with a stack, long after the work.

export interface Deadline extends Disposable {
  signal: AbortSignal
}

/** Aborts its signal, with a TimeoutError as reason, after so many milliseconds unless it is disposed before. */
export function openDeadline(milliseconds: number): Deadline {
  const passed = new AbortController()
  const timer = setTimeout(
    () => passed.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
    milliseconds,
  ).unref()
  return { signal: passed.signal, [Symbol.dispose]: () => clearTimeout(timer) }
}
