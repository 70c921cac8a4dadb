// The runner of a process whose operator can drain it: a drain closes it, as at the end of the process, and it is opened
// again when the operator wants the process to take jobs again. The process itself keeps running.
import type { Presence } from '../server/operate/presence.ts'
import type { Work } from './context.ts'
import { openRunner, type Runner } from './runner.ts'

/** Starts taking jobs, and obeys the presence of this process until disposed. */
export async function openDrainableRunner(work: Work, presence: Pick<Presence, 'follow'>): Promise<Runner> {
  const died = Promise.withResolvers<never>()
  died.promise.catch(() => {})
  let runner: Runner | undefined
  const begin = async () => {
    runner = await openRunner(work)
    runner.died.catch(died.reject)
  }
  await begin()
  const following = presence.follow(async (drains) => {
    work.log.info({ event: drains ? 'drain_asked' : 'resume_asked' })
    if (drains) {
      const stopping = runner
      runner = undefined
      await stopping?.[Symbol.asyncDispose]()
    } else if (!runner) await begin()
  })
  return {
    died: died.promise,
    async [Symbol.asyncDispose]() {
      await following[Symbol.asyncDispose]()
      await runner?.[Symbol.asyncDispose]()
    },
  }
}
