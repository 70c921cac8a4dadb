// Whether work grows no faster than its input, told from processor time.

/** Milliseconds of processor time that this thread spends. */
export async function processorMs(work: () => unknown): Promise<number> {
  const begun = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(begun)
  return (user + system) / 1000
}

/**
 * What is wrong with the growth of some work, from one size to the next; null for nothing. Its time may grow with the exponent
 * 1.15 of the size. Below `LITTLE_MS` time says nothing, and the machine may be `NOISE` times slower at one size than at another.
 * What looks too slow is measured once more, because the first run may have been for the compiler.
 */
export async function growthFault(work: (size: number) => unknown, sizes: readonly number[]): Promise<string | null> {
  let before: number | undefined
  for (const [i, size] of sizes.entries()) {
    let ms = await processorMs(() => work(size))
    if (before !== undefined) {
      const allowed = NOISE * Math.max(LITTLE_MS, before) * (size / sizes[i - 1]!) ** 1.15
      if (ms > allowed) ms = await processorMs(() => work(size))
      if (ms > allowed) return `${before} ms for ${sizes[i - 1]}, ${ms} ms for ${size}`
    }
    before = ms
  }
  return null
}

const NOISE = 3
const LITTLE_MS = 5
