// What every thread of a pool runs: it loads the module of a task and calls its function.

interface Call {
  file: string
  name: string
  argument: unknown
  /** Set to 1 when the module is loaded and the function begins. */
  begun?: Int32Array | undefined
}

export async function call({ file, name, argument, begun }: Call): Promise<unknown> {
  const module: Record<string, unknown> = await import(file)
  const run = module[name]
  if (typeof run !== 'function') throw new Error(`No handler function named "${name}" in ${file}`)
  if (begun) {
    Atomics.store(begun, 0, 1)
    Atomics.notify(begun, 0)
  }
  return run(argument)
}
