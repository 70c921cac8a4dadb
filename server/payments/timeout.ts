// A bound on the wait for an outside answer.

/** The value of the promise, or null if it takes longer than `ms`. A later rejection is dropped. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null)
  })
  // A rejection after the timeout has no other handler, and would end the process.
  promise.catch(() => {})
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
