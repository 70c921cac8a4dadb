// The one way to start threads. What runs in one gets neither the environment of its process, which holds the secrets, nor
// its flags.
import { Worker } from 'node:worker_threads'
import { Piscina } from 'piscina'

const BARE = { env: {}, execArgv: [] }

type Options = Omit<NonNullable<ConstructorParameters<typeof Piscina>[0]>, keyof typeof BARE>

/** A pool of threads that run tasks `T` to results `R`. */
export function openPool<T, R>(options: Options): Piscina<T, R> {
  return new Piscina<T, R>({ ...options, ...BARE })
}

/** One thread that runs the module `file`. */
export function startThread(file: URL): Worker {
  return new Worker(file, BARE)
}
