// Processes of a service that are killed and started again: two workers in turn, and the API once.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { type Child, openChild } from './child.ts'
import type { Lab } from './lab.ts'

export interface Killing {
  seconds: number
  killEverySeconds: number
  /** The API is away once, for so long. */
  outageSeconds: number
}

type CrashHarness = Awaited<ReturnType<typeof openCrashHarness>>

/** Two workers and an API, which starts again at the same address: `env` names its port. */
export async function openCrashHarness(lab: Lab, env: Record<string, string>) {
  const startApi = () => openChild(lab, 'server/main.ts', { event: 'listening', env })
  const startWorker = () => openChild(lab, 'workers/main.ts', { event: 'worker_started', env })
  let api = await startApi()
  const workers = await Promise.all([startWorker(), startWorker()])
  return {
    origin: String(api.ready.address),
    async killWorker(place: number) {
      await kill(workers[place]!)
      workers[place] = await startWorker()
    },
    async killApi(seconds: number) {
      await kill(api)
      await pause(seconds * 1000)
      api = await startApi()
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([api, ...workers].map((child) => child[Symbol.asyncDispose]()))
    },
  }
}

async function kill({ process: child }: Child) {
  if (child.exitCode !== null || child.signalCode !== null) throw new Error('a process died by itself')
  const gone = once(child as ChildProcess, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** Kills each worker in turn. Answers how many were killed. @param started by `performance.now()` */
export async function killWorkers(harness: CrashHarness, { seconds, killEverySeconds }: Killing, started: number) {
  let killed = 0
  for (;;) {
    await pause(killEverySeconds * 1000)
    if (performance.now() - started > seconds * 1000) return killed
    await harness.killWorker(killed++ % 2)
  }
}

/** Kills the API in the middle of the time. */
export async function outageOf(harness: CrashHarness, { seconds, outageSeconds }: Killing, started: number) {
  await pause(seconds * 500 - (performance.now() - started))
  await harness.killApi(outageSeconds)
}
