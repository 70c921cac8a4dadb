// Starts and controls the process that generates load.
import { once } from 'node:events'
import { openChild } from './child.ts'
import type { Lab } from './lab.ts'
import type { Load, LoadReport } from './load.ts'

export interface Generator extends AsyncDisposable {
  pid: number
  /** Answers per second. Throws if an answer has another status. */
  run(load: Load): Promise<number>
}

export async function openGenerator(lab: Lab): Promise<Generator> {
  const child = await openChild(lab, 'bench/load.ts', { event: 'load_ready', ipc: true })
  return {
    pid: child.pid,
    async run(load) {
      const answered = once(child.process, 'message')
      child.process.send(load)
      const [report] = (await answered) as [LoadReport]
      if ('error' in report) throw new Error(`load: ${report.error}`)
      return report.rate
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  }
}
