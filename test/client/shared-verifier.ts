// One session of the local verifier's model for all commands that run in the process of a test: to make one takes half a second of the
// processor or more. Each command still reads the weights and checks their digest, and a program of its own makes its own.
import type { Test } from 'tap'
import { InferenceSession } from '../../workers/assessment/local/runtime/ort.wasm.bundle.min.mjs'

/** From now until the end of the test. Only for commands that get the weights of the product. */
export function shareVerifier(t: Test): void {
  const { create } = InferenceSession
  let made: Promise<InferenceSession> | undefined
  let release = async () => {}
  const open = async (...args: Parameters<typeof create>) => {
    const session = await create.apply(InferenceSession, args)
    release = session.release.bind(session)
    return Object.assign(session, { release: async () => {} })
  }
  InferenceSession.create = ((...args: Parameters<typeof create>) => {
    made ??= open(...args)
    return made
  }) as typeof create
  t.teardown(async () => {
    InferenceSession.create = create
    await release()
  })
}
