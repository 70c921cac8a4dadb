// A process that has one reader read inputs of one size, one after the other, with the heap that it has in the product:
// `node test/reader-memory.ts NAME HEAP SIZE [INPUT...]`. It prints what each took: milliseconds of the processor, and the most memory that
// the process held so far. Where the heap does not suffice, the process ends with the status 1, and the last input is the one that did it.
//
// The growth of memory is not fitted. Most of what a process holds is garbage that the engine has not collected yet, so the peak grows more
// slowly than the work: with exponents below 0.4 for two reports in HTML, from 256 kB to 4 MB. A fit would find nothing. That the heap of the
// product suffices at the limit is what can fail.
import { writeSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { readPeak } from './peak-memory.ts'

/**
 * `thread`: that of the service's threads; what runs in its processes themselves has more. `client`: of the command line, of programs with
 * the SDK, and of a page in a browser. It is what Node takes where it has no flags and the machine 2 GB.
 */
export type Heap = 'thread' | 'client'

export interface Taken {
  input: string
  /** Missing for the input that is being read. */
  ms?: number
  megabytes?: number
  /** Elements of the longest array that grew while a thread read it. */
  longest?: number
}

const CLIENT_HEAP = { maxOldGenerationSizeMb: 512 }

async function readAll(name: string, heap: string, size: number, chosen: readonly string[]): Promise<void> {
  // A client reads one file. A thread reads one page after another, and has the garbage of the page before.
  setFlagsFromString('--expose-gc')
  const collect = heap === 'client' ? runInNewContext('gc') : () => {}
  const { inputs, read } = (await import('./readers.ts')).readers[name]!
  let longest = 0
  if (heap === 'thread') watchArrays((length) => (longest = Math.max(longest, length)))
  for (const [input, build] of Object.entries(inputs)) {
    if (chosen.length > 0 && !chosen.includes(input)) continue
    collect()
    tell({ input })
    const text = build(size)
    longest = 0
    const before = process.cpuUsage()
    await read(text)
    const { user, system } = process.cpuUsage(before)
    tell({ input, ms: Math.round((user + system) / 1000), megabytes: Math.round(readPeak()), longest })
  }
}

function watchArrays(onPush: (length: number) => void) {
  const { push } = Array.prototype
  Array.prototype.push = function (...items) {
    const length = push.apply(this, items)
    onPush(length)
    return length
  }
}

/** At once: a process that runs out of memory prints nothing more. */
const tell = (taken: Taken) => writeSync(1, `${JSON.stringify(taken)}\n`)

const [name = '', heap = '', size = '', ...chosen]: string[] = isMainThread ? process.argv.slice(2) : workerData
if (isMainThread) {
  // Only the thread loads the readers: what they take counts once.
  const resourceLimits = heap === 'thread' ? (await import('../server/threads/pool.ts')).THREAD_HEAP : CLIENT_HEAP
  const worker = new Worker(import.meta.filename, { workerData: [name, heap, size, ...chosen], resourceLimits })
  worker.on('error', (error) => {
    console.error(error)
    process.exitCode = 1
  })
} else await readAll(name, heap, Number(size), chosen)
