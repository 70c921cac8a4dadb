// Waiting for an answer from outside for so long and no longer.

/** What the promise resolves to; null when it takes longer than `ms`. What it throws later is dropped. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null)
  })
  // A rejection that comes after the time has no other handler, and would end the process.
  promise.catch(() => {})
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
